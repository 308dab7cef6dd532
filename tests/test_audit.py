"""The audit finds by itself what is known about the published tables, and says where arithmetic cannot tell."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crumb_nb.audit import Cell, PublishedTable, audit, ceiling_all, chance_of_fit, check_ceilings, check_denominators, fits, least_share, open_table, possible_hits, published_tables, read_table, sensitivity
from crumb_nb.records import DataError

GOLD = {1: 170, 2: 229, 3: 39, 4: 18, 5: 11, 6: 3}


def found(findings, check, verdict, *words):
    return [f for f in findings if f.check == check and f.verdict == verdict and all(w in f.text for w in words)]


@given(st.integers(1, 3000), st.integers(1, 5), st.data())
def test_a_true_share_always_fits(n, d, data):
    h = data.draw(st.integers(0, n))
    assert h in possible_hits(f"{h / n:.{d}f}", n)


@given(st.integers(1, 400), st.integers(0, 999))
def test_possible_hits_equal_brute_force(n, thousandths):
    printed = f"{thousandths / 1000:.3f}"
    brute = [h for h in range(n + 1) if abs(h / n - float(printed)) <= 0.0005 + 1e-12]
    assert possible_hits(printed, n) == brute


@pytest.mark.parametrize("printed, n, hits", [
    (".2411", 419, [101]), (".8329", 419, [349]), (".9212", 419, [386]), (".9666", 419, [405]), (".8735", 419, [366]),
    (".8460", 1526, [1291]), (".8460", 1532, [1296]), (".8460", 1534, []), (".8460", 1540, []), (".8460", 1978, []), (".5795", 1534, [889]), ("1.0", 7, [7]), ("0.5", 10, [5]), ("0.5", 1, []), ("0", 1, [0]),
])
def test_published_figures(printed, n, hits):
    "Whole questions, as counted in the protocols; half a question does not exist."
    assert possible_hits(printed, n) == hits


def test_chance_of_fit():
    "4 % of four-decimal values fit 419, 15 % fit 1,526, 20 % fit 1,978."
    assert [round(chance_of_fit(n, 4), 2) for n in (419, 1526, 1978)] == [0.04, 0.15, 0.2]
    assert chance_of_fit(1000, 2) == 1.0  # two decimals never exclude a thousand
    assert fits("0.50", [3])[0] == {"n": 3, "hits": [], "possible": False, "chance": 4 / 101}


def test_bounds_from_gold():
    assert round(least_share(366, GOLD, 419), 4) == 0.4790 and least_share(3, {2: 3}, 3) == 0.5 and least_share(0, {1: 1}, 1) == 0
    assert ceiling_all(5, GOLD) == 467 / 470 and math.isclose(ceiling_all(1, GOLD), 170 / 470)
    with pytest.raises(ValueError, match="4 hits among 3"):
        least_share(4, {1: 3}, 3)


def test_the_longmemeval_page():
    findings = audit(open_table("longmemeval_recall_page"))
    assert found(findings, "denominator", "consistent", "419") and found(findings, "denominator", "consistent", "419")[0].chance < 1e-15
    assert found(findings, "denominator", "impossible", "17 of 18", "470", "fitting: 0.9809"), "only .9809 fits 470 too"
    assert found(findings, "denominator", "impossible", "18 of 18", "500"), "none fits 500"
    assert found(findings, "definition", "contradicted", "strict measure", "0.4790", "0.2411")
    assert len(found(findings, "by construction", "contradicted")) == 2
    assert found(findings, "comparison", "contradicted", "in 1 of 9 pairs", "0.9809 against 0.9666")
    assert found(findings, "structure", "contradicted", "k=30") and found(findings, "structure", "cannot tell", "k=50")
    assert not found(findings, "order", "impossible")


def test_the_locomo_page():
    findings = audit(open_table("locomo_recall_page"))
    assert {f.text.split("over ")[1].split(":")[0] for f in findings if f.check == "denominator" and f.verdict == "impossible"} == {"1534", "1540", "1978"}
    assert len(found(findings, "denominator", "consistent")) == 2  # 1,526 and 1,532
    assert found(findings, "rule", "impossible", "889", "611")
    assert found(findings, "structure", "consistent", "k=50", "32")
    assert "[impossible] rule" in "\n".join(map(str, findings))


def test_a_changed_last_digit_is_noticed_where_arithmetic_allows():
    "Every counted cell of the page moved by one in the last digit becomes impossible over 419; nDCG cells cannot tell."
    table = open_table("longmemeval_recall_page")
    rows = sensitivity(table, 419)
    assert {row["noticed"] for row, cell in zip(rows, table.cells) if cell.family != "ndcg_any"} == {"both"}
    assert {row["noticed"] for row, cell in zip(rows, table.cells) if cell.family == "ndcg_any"} == {"none"}
    for n, cell in enumerate(table.cells):
        if cell.family == "ndcg_any":
            continue
        moved = replace(cell, printed=f"{cell.value + 0.0001:.4f}")
        changed = replace(table, cells=(*table.cells[:n], moved, *table.cells[n + 1 :]))
        assert found(check_denominators(changed), "denominator", "impossible", "over 419")
    one = PublishedTable("t", "s", (Cell("recall_any@5", "0.333"),), (300,))
    assert sensitivity(one, 300)[0]["noticed"] == "both" and sensitivity(PublishedTable("t", "s", (Cell("recall_any@5", "0.50"),), (90,)), 90)[0]["noticed"] in ("one", "none")


def table(*cells, **changes):
    return replace(PublishedTable("t", "s", tuple(Cell(m, v, s) for m, v, s in cells), (10,), GOLD), **changes)


def test_impossible_orders_depths_and_ceilings():
    findings = audit(table(("recall_any@5", "0.50", {}), ("recall_all@5", "0.60", {}), ("recall_any@10", "0.40", {}), ("R@5", "0.70", {})))
    assert found(findings, "order", "impossible", "recall_any@5", "recall_all@5") and found(findings, "order", "impossible", "R@5")
    assert found(findings, "depth", "impossible", "recall_any@5 is 0.50 but recall_any@10 only 0.40")
    assert found(check_ceilings(table(("recall_all@1", "0.40", {}))), "ceiling", "impossible", "0.3617")
    assert found(check_ceilings(table(gold={})), "ceiling", "cannot tell")
    assert found(check_denominators(table(("nDCG@5", "0.4", {}))), "denominator", "cannot tell")


@pytest.mark.parametrize("cells, gold", [
    ([("recall_all@1", "0.6667", {})], {1: 2, 2: 1}),  # 2 of 3 questions have one gold document, and 2/3 is printed .6667
    ([("recall_any@5", "0.97", {}), ("R@5", "0.9749", {}), ("recall_all@5", "0.9749", {})], {1: 3}),  # all three may be .9749
    ([("recall_any@5", "0.9749", {}), ("recall_any@10", "0.97", {})], {1: 3}),
    ([("recall_any@5", "0.9", {}), ("recall_all@5", "1", {})], {1: 3}),  # both may be .95
    ([("recall_any@5", "0.98", {"asked": 5, "reranker": "on"}), ("recall_any@5", "0.9809", {"asked": 5, "reranker": "off"})], {1: 3}),
])
def test_rounding_accuses_nobody(cells, gold):
    "A printed figure is an interval; there are true figures in these that agree."
    findings = audit(table(*cells, gold=gold))
    assert {f.verdict for f in findings if f.check in ("order", "depth", "ceiling", "by construction")} == {"consistent"}


@pytest.mark.parametrize("check, cells, gold", [
    ("ceiling", [("recall_all@1", "0.6668", {})], {1: 2, 2: 1}),  # at least .66675, above 2/3
    ("order", [("recall_any@5", "0.97", {}), ("recall_all@5", "0.9751", {})], {1: 3}),  # at most .975 against at least .97505
    ("order", [("R@5", "0.9748", {}), ("recall_all@5", "0.9750", {})], {1: 3}),
    ("depth", [("recall_any@5", "0.9751", {}), ("recall_any@10", "0.97", {})], {1: 3}),
    ("by construction", [("recall_any@5", "0.9809", {"asked": 5, "reranker": "on"}), ("recall_any@5", "0.9808", {"asked": 5, "reranker": "off"})], {1: 3}),  # one figure is printed in one way
    ("by construction", [("recall_any@5", "0.97", {"asked": 5, "reranker": "on"}), ("recall_any@5", "0.9809", {"asked": 5, "reranker": "off"})], {1: 3}),
    ("by construction", [("recall_any@5", "0.99", {"asked": 5, "reranker": "on"}), ("recall_any@5", "0.9809", {"asked": 5, "reranker": "off"})], {1: 3}),
])
def test_what_is_more_than_rounding_is_found(check, cells, gold):
    findings = audit(table(*cells, gold=gold))
    assert found(findings, check, "contradicted" if check == "by construction" else "impossible")


@pytest.mark.parametrize("printed, verdict", [("0.5", "consistent"), ("0.4", "contradicted"), ("0.45", "contradicted")])
def test_a_share_below_its_bound_by_rounding_only(printed, verdict):
    "Ten hits, one of them on a question with one gold document and nine on such with two, force a share of (1 + 9/2) / 10 = .55: .5 may be a rounded .55, .4 and .45 may not."
    gold = {1: 1, 2: 9}
    claim = {"check": "definition", "measure": "recall_all", "n": 10, "says": "share"}
    findings = audit(table(("recall_any@5", "1.0", {}), ("recall_all@5", printed, {}), gold=gold, claims=(claim,)))
    assert {f.verdict for f in findings if f.check == "definition"} - {"consistent"} == ({verdict} - {"consistent"})


def test_claims_that_hold_are_not_reported_as_wrong():
    same = {"check": "worse_everywhere", "factor": "reranker", "worse": "on", "better": "off"}
    cells = [("recall_any@5", "0.5", {"asked": 10, "reranker": "on"}), ("recall_any@5", "0.6", {"asked": 10, "reranker": "off"})]
    findings = audit(table(*cells, claims=(same, {"check": "rule", "rule": "r", "value": "0.5", "n": 10, "ceiling": 6}, {"check": "rule", "rule": "r", "value": "0.55", "n": 10, "ceiling": 6},
                                           {"check": "definition", "measure": "recall_all", "n": 10, "says": "share"}, {"check": "structural", "k": [50], "mean": 47.5})))
    assert found(findings, "comparison", "consistent", "all 1 pairs") and found(findings, "rule", "consistent", "5 of 10")
    assert found(findings, "rule", "impossible", "no whole number") is not None and found(findings, "structure", "cannot tell")
    undecided = audit(table(("recall_all@5", "0.55", {}), gold={}, claims=({"check": "definition", "measure": "recall_all", "n": 7, "says": "share"},)))
    assert found(undecided, "definition", "cannot tell")


@pytest.mark.parametrize("text, words", [
    ("[", "no YAML"), ("[1]", "mapping"), ("title: t", "mapping"),
    ("{title: t, source: s, denominators: [1], cells: [{measure: recall@5, value: '1'}]}", "cell 1.*unknown measure"),
    ("{title: t, source: s, denominators: [1], cells: [{measure: recall_any@5, value: 0.5}]}", "cell 1.*must be text"),
    ("{title: t, source: s, denominators: [1], cells: [{measure: recall_any@5, value: high}]}", "not a number"),
    ("{title: t, source: s, denominators: [1], cells: [{measure: recall_any@5, value: '1.5'}]}", "between 0 and 1"),
    ("{title: t, source: s, denominators: [1], cells: [{measure: recall_any@5}]}", "measure and value"),
    ("{title: t, source: s, denominators: [1], cells: [], claims: [{check: magic}]}", "unknown check 'magic'"),
])
def test_broken_tables(tmp_path, text, words):
    (tmp_path / "t.yaml").write_text(text)
    with pytest.raises(DataError, match=words):
        read_table(tmp_path / "t.yaml")


def test_names_and_paths(tmp_path):
    assert set(published_tables()) == {"longmemeval_recall_page", "locomo_recall_page"}
    with pytest.raises(DataError, match="tables in the package: locomo_recall_page"):
        open_table("no_such_table")
    with pytest.raises(DataError, match="cannot be read"):
        read_table(tmp_path / "none.yaml")
    (tmp_path / "t.yaml").write_text("{title: t, source: s, denominators: [4], cells: [{measure: recall_any@5, value: '0.25'}]}")
    assert audit(open_table(tmp_path / "t.yaml"))[0].verdict == "consistent"
    with pytest.raises(ValueError, match="positive"):
        possible_hits("0.5", 0)
