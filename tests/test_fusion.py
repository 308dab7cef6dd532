"""Fusion, aggregation and autocut: hand values, and orders that must not matter."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crumb_nb.protocols import Protocol
from crumb_nb.records import DataError, Run, corpus_frame, queries_frame
from crumb_nb.retrievers.autocut import autocut, cut_point
from crumb_nb.retrievers.bm25 import BM25
from crumb_nb.retrievers.fusion import AGGREGATIONS, aggregate, from_lists, minmax_sum, rrf, zscore_sum

FEW = settings(max_examples=max(30, settings.default.max_examples // 5))  # these build an index or run a tokenizer per example

IDS = st.sampled_from("abcdef")
LISTS = st.dictionaries(IDS, st.floats(-5, 5, width=32), max_size=6)
RUNS = st.lists(st.fixed_dictionaries({}, optional={"q1": LISTS, "q2": LISTS}), min_size=1, max_size=4)
FUSIONS = pytest.mark.parametrize("fuse", [rrf, minmax_sum, zscore_sum])


# ---- known faults


def test_fu01_ranks_start_at_one_and_absence_adds_nothing():
    fused = rrf([from_lists({"q": ["p", "q", "r"]}), from_lists({"q": ["s", "t", "r"]})], k=60)
    assert fused.frame()["doc_id"].tolist() == ["r", "s", "p", "t", "q"]
    assert fused.to_dict()["q"] == {"p": 1 / 61, "q": 1 / 62, "r": 2 / 63, "s": 1 / 61, "t": 1 / 62}


def test_fu02_a_repeated_document_counts_once_at_its_best_rank():
    left = from_lists({"q": ["p", "p", "q"]})
    scores = rrf([left, from_lists({"q": ["q"]})]).to_dict()["q"]
    assert scores["p"] == 1 / 61 and scores["q"] == 1 / 62 + 1 / 61 > scores["p"]  # places close up: q is second in the first list
    assert left.info["repeats"] == 1


def test_fu04_a_lexical_list_without_a_hit_changes_nothing():
    corpus = corpus_frame(["d0", "d1", "d2", "d3"], ["red fox", "blue fox", "green owl", "grey owl"])
    lexical = BM25().index(corpus).search(queries_frame(["q"], ["zzz"]), 4)
    fused = rrf([lexical, from_lists({"q": ["d1", "d0"]})])
    assert fused.to_dict()["q"] == {"d1": 1 / 61, "d0": 1 / 62}


def test_the_case_file_says_the_same(cases):
    case = cases["FU01"]
    fused = rrf([from_lists({"q": ids}) for ids in case["input"]["lists"]], k=case["input"]["k"])
    assert fused.frame()["doc_id"].tolist() == case["expected"]["order"]
    for doc_id, fraction in case["expected"]["scores"].items():
        top, bottom = map(int, fraction.split("/"))
        assert fused.to_dict()["q"][doc_id] == pytest.approx(top / bottom, abs=1e-15)
    case = cases["FU02"]
    scores = rrf([from_lists({"q": ids}) for ids in case["input"]["lists"]], k=case["input"]["k"]).to_dict()["q"]
    assert scores["p"] == 1 / 61 and scores["q"] > scores["p"]


# ---- what must not matter


@FUSIONS
@FEW
@given(runs=RUNS, data=st.data())
def test_the_order_of_inputs_never_matters(fuse, runs, data):
    made = [Run.from_dict(r) for r in runs]
    weights = data.draw(st.lists(st.floats(-2, 2), min_size=len(made), max_size=len(made)))
    order = data.draw(st.permutations(range(len(made))))
    one, two = fuse(made, weights=weights), fuse([made[n] for n in order], weights=[weights[n] for n in order])
    assert one.frame().equals(two.frame()) and set(one.query_ids) == set(two.query_ids) == set().union(*runs)


@FUSIONS
def test_shuffled_rows_never_matter(fuse):
    rng = np.random.default_rng(0)
    runs = [Run.from_dict({"q": {f"d{n}": float(rng.normal()) for n in range(50)}}) for _ in range(3)]
    shuffled = [Run.from_dict({"q": {d: run.to_dict()["q"][d] for d in rng.permutation(list(run.to_dict()["q"]))}}) for run in runs]
    assert fuse(runs) == fuse(shuffled)


@FUSIONS
def test_a_query_a_run_does_not_have_is_an_empty_list_and_counted(fuse):
    fused = fuse([Run.from_dict({"q1": {"a": 1.0, "b": 0.5}}), Run.from_dict({"q2": {"a": 1.0}, "q1": {}})])
    assert fused.info["missing_queries"] == 1 and fused.frame()["doc_id"].tolist()[:2] == ["a", "b"]
    assert len(fuse([Run.from_dict({"q": {}}), Run.from_dict({"q": {}})])) == 0


def test_refusals():
    run = Run.from_dict({"q": {"a": 1.0}})
    with pytest.raises(DataError, match="nothing to fuse"):
        rrf([])
    for wrong in ([1.0, 2.0], [float("nan")], []):
        with pytest.raises(ValueError, match="one finite number per run"):
            rrf([run], weights=wrong)
    with pytest.raises(ValueError, match="k=-1"):
        rrf([run], k=-1)
    with pytest.raises(ValueError, match="absent"):
        zscore_sum([run], absent="mean")


# ---- hand values


def test_ties_in_a_list_are_ranked_by_the_rule():
    flat = Run.from_dict({"q": {"a": 1.0, "b": 1.0}})
    assert rrf([flat]).to_dict()["q"] == {"b": 1 / 61, "a": 1 / 62}
    assert set(rrf([flat], ties="hash").to_dict()["q"].values()) == {1 / 61, 1 / 62}


def test_minmax_by_hand():
    one, two = Run.from_dict({"q": {"a": 4.0, "b": 2.0}}), Run.from_dict({"q": {"a": -1.0, "c": -3.0}})
    # absent documents: 0 in the first list; -3, the lowest and below 0, in the second
    assert minmax_sum([one, two]).to_dict()["q"] == {"a": 1 + 1, "b": 0.5 + 0, "c": 0 + 0}
    assert minmax_sum([one, two], absent="lowest").to_dict()["q"] == {"a": 2.0, "b": 0.0, "c": 0.0}
    assert minmax_sum([one, two], weights=[2, 0.5]).to_dict()["q"]["a"] == 2.5


def test_zscore_by_hand():
    one = Run.from_dict({"q": {"a": 3.0, "b": 1.0}, "r": {"a": 5.0, "b": 5.0}})
    two = Run.from_dict({"q": {"a": 1.0, "b": 2.0, "c": 3.0}, "r": {"a": 5.0, "b": 5.0}})
    first, second = np.array([3, 1, 0]), np.array([1, 2, 3])
    z = (first - first.mean()) / first.std() + 2 * (second - 2) / second.std()
    scores = zscore_sum([one, two], weights=[1, 2]).to_dict()
    assert [scores["q"][d] for d in "abc"] == pytest.approx(z.tolist())
    assert scores["r"] == {"a": 0.0, "b": 0.0}


@given(LISTS.filter(bool), st.floats(0.5, 4), st.floats(-3, 3))
def test_zscore_of_one_list_keeps_its_order_under_scaling(scores, factor, shift):
    "A positive factor changes no order; where every document is in the list, neither does a shift."
    rounded = {d: round(v, 2) for d, v in scores.items()}
    run, scaled = (Run.from_dict({"q": {d: v * f + s for d, v in rounded.items()}}) for f, s in ((1, 0), (factor, shift)))
    a, b = zscore_sum([run]).to_dict()["q"], zscore_sum([scaled]).to_dict()["q"]
    assert all(abs(a[d] - b[d]) < 1e-6 for d in a)


# ---- aggregation


def test_aggregations_by_hand():
    run = Run.from_dict({"q": {"d:0": 1.0, "d:1": 3.0, "d:2": 2.0, "e:1": 2.5, "f": 2.5}, "none": {}})
    parents = {"d:0": "d", "d:1": "d", "d:2": "d", "e:0": "e", "e:1": "e", "f": None}
    expected = {"max": {"d": 3.0, "e": 2.5, "f": 2.5}, "first": {"d": 1.0, "f": 2.5}, "mean": {"d": 2.5, "e": 2.5, "f": 2.5}, "sum": {"d": 6.0, "e": 2.5, "f": 2.5}}
    for how in AGGREGATIONS:
        made = aggregate(run, parents, how, m=2)
        assert made.to_dict() == {"q": expected[how], "none": {}} and made.info["left_out"] == (how == "first")
    assert aggregate(run, parents, "mean").to_dict()["q"]["d"] == 2.0
    assert aggregate(run, parents, asked=2).frame()["doc_id"].tolist() == ["d", "f"]


@given(st.dictionaries(st.tuples(IDS, st.integers(0, 3)), st.floats(-5, 5), max_size=12), st.integers(1, 4))
def test_aggregations_against_plain_python(scores, m):
    run = Run.from_dict({"q": {f"{d}:{n}": v for (d, n), v in scores.items()}})
    parents = {f"{d}:{n}": d for d in "abcdef" for n in range(4)}
    groups = {}
    for (d, _), v in scores.items():
        groups.setdefault(d, []).append(v)
    plain = {"max": max, "sum": sum, "mean": lambda v: float(np.mean(sorted(v)[::-1][:m]))}
    for how, f in plain.items():
        assert aggregate(run, parents, how, m=m).to_dict()["q"] == pytest.approx({d: f(v) for d, v in groups.items()})
    assert aggregate(run, parents, "first").to_dict()["q"] == {d: v for (d, n), v in scores.items() if n == 0}


def test_ids_are_opaque_in_aggregation():
    run = Run.from_dict({"q": {"x:y:0": 1.0, "x": 2.0}})
    assert aggregate(run, {"x:y:0": "x:y", "x": float("nan")}).to_dict()["q"] == {"x:y": 1.0, "x": 2.0}  # NaN in a frame means none


def test_aggregate_refuses():
    run = Run.from_dict({"q": {"a": 1.0}})
    with pytest.raises(ValueError, match="how"):
        aggregate(run, {"a": "d"}, "median")
    with pytest.raises(ValueError, match="m=0"):
        aggregate(run, {"a": "d"}, "mean", m=0)
    with pytest.raises(DataError, match="no entry"):
        aggregate(run, {})


def test_the_cut_comes_after_aggregation():
    run = Run.from_dict({"q": {"d:0": 9.0, "d:1": 8.0, "e:0": 1.0}})
    parents = {"d:0": "d", "d:1": "d", "e:0": "e"}
    assert len(aggregate(run, parents).cut(2)) == 2 > len(aggregate(run.cut(2), parents))


# ---- autocut


@pytest.mark.parametrize(
    "scores, jumps, least, expected",
    [
        ([9.0, 8.8, 8.7, 2.0, 1.9], 1, 1, 3),
        ([5.0, 4.0, 3.0, 2.0], 1, 1, 4),  # straight: no fall
        ([1.0, 1.0, 1.0], 1, 1, 3),  # flat
        ([9.0, 1.0], 1, 1, 2),  # two points are always straight
        ([9.0, 8.9, 5.0, 4.9, 1.0, 0.9], 1, 1, 2),
        ([9.0, 8.9, 5.0, 4.9, 1.0, 0.9], 2, 1, 4),
        ([9.0, 8.9, 5.0, 4.9, 1.0, 0.9], 9, 1, 6),  # fewer falls than asked for
        ([9.0, 1.0, 0.9, 0.8], 1, 2, 4),
        ([9.0, 1.0, 0.9, 0.8], 1, 1, 1),
        ([], 1, 1, 0),
    ],
)
def test_cut_points(scores, jumps, least, expected):
    assert cut_point(np.array(scores), jumps, least) == expected


@given(st.lists(st.floats(-10, 10), max_size=20), st.integers(1, 3), st.integers(0, 4))
def test_a_cut_list_is_a_prefix(values, jumps, least):
    run = Run.from_dict({"q": {f"{n:02d}": v for n, v in enumerate(values)}})
    cut = autocut(run, jumps, least)
    full = run.frame()["doc_id"].tolist()
    assert cut.frame()["doc_id"].tolist() == full[: len(cut)] and len(cut) >= min(least, len(full))
    assert cut.info["autocut_removed"] == len(run) - len(cut)


def test_a_protocol_that_fixes_k_refuses_autocut():
    run = Run.from_dict({"q": {"a": 9.0, "b": 1.0, "c": 0.9}})
    protocol = Protocol(name="toy", unit="session", counted="session", gold_rule="evidence", measures=("R@5",), k=(5,), asked=10)
    with pytest.raises(DataError, match="fixes k"):
        autocut(run, protocol=protocol)
    assert len(autocut(run, protocol=protocol.with_(autocut=True))) == 1
    for wrong in (dict(jumps=0), dict(least=-1)):
        with pytest.raises(ValueError, match="jumps"):
            autocut(run, **wrong)


def test_all_orders_of_three_lists_tie_alike():
    lists = [from_lists({"q": ids}) for ids in (["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"])]
    assert {tuple(rrf(list(order)).frame()["doc_id"]) for order in itertools.permutations(lists)} == {("c", "b", "a")}
