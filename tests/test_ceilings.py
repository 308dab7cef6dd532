"""Chance and ceilings: every formula against all orders of small cases, every cell note against a count by hand."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crumb_nb.ceilings import Case, cases, estimate_random, expected_random, random_value, structural_ceiling, structural_cells, structural_notes, structural_report
from crumb_nb.metrics import evaluate
from crumb_nb.protocols import Protocol
from crumb_nb.records import Collection, DataError, Qrels, corpus_frame, queries_frame

MEASURES = ("nDCG", "nDCG@2", "R@2", "P@3", "P@9", "RR", "RR@2", "AP", "AP@2", "recall_any@2", "recall_all@2", "recall_all@4", "ndcg_any@3", "Judged@2")


def collection(labels, docs="abcde", scope=None, parents=None, binary=None, **rules) -> Collection:
    "A toy collection from labels."
    protocol = Protocol(**{"name": "toy", "unit": "document", "counted": "document", "gold_rule": "label > 0", "measures": ("R@2",), "k": (1, 2), **rules})
    docs = list(docs)
    return Collection("toy", corpus_frame(docs, ["x"] * len(docs), parents), queries_frame(list(labels), ["?"] * len(labels)), Qrels.from_dict(labels), protocol, None if binary is None else Qrels.from_dict(binary), scope=scope)


@settings(max_examples=60)
@given(st.integers(1, 4), st.lists(st.sampled_from([0.0, 1.0, 2.5]), max_size=4), st.lists(st.sampled_from([1.0, 2.0]), max_size=2), st.one_of(st.none(), st.integers(1, 4)))
def test_formulas_equal_the_mean_over_all_orders(n, labels, lost, asked):
    docs = "abcd"[:n]
    judged = dict(zip(docs, labels)) | {f"lost{i}": v for i, v in enumerate(lost)}
    case = cases({"q": judged}, {"q": docs})["q"]
    runs = {str(i): {d: -float(r) for r, d in enumerate(order[:asked])} for i, order in enumerate(itertools.permutations(docs))}
    everything = evaluate(runs, {q: judged for q in runs}, MEASURES).values
    for measure in MEASURES:
        assert random_value(measure, case, asked) == pytest.approx(everything[measure].mean(), abs=1e-12), measure
    ceiling = structural_ceiling({"q": judged}, MEASURES[:-1], candidates={"q": docs}, asked=asked).values.loc["q"]
    worst = structural_ceiling({"q": judged}, MEASURES[:-1], candidates={"q": docs}, asked=asked, best=False).values.loc["q"]
    for measure in MEASURES[:-1]:
        assert ceiling[measure] == pytest.approx(everything[measure].max(), abs=1e-12), measure
        assert worst[measure] == pytest.approx(everything[measure].min(), abs=1e-12), measure


def test_a_million_candidates_lose_no_precision():
    "Three relevant among a million: the first hundred hold one with probability 3·10⁻⁴ less a little; the formulas keep twelve digits."
    case = Case(10**6, (1.0, 1.0, 1.0))
    exact = 1 - math.comb(10**6 - 3, 100) / math.comb(10**6, 100)
    assert random_value("recall_any@100", case) == pytest.approx(exact, rel=1e-9)
    assert random_value("recall_all@100", case) == pytest.approx(math.comb(100, 3) / math.comb(10**6, 3), rel=1e-12)
    assert random_value("R@100", case) == pytest.approx(1e-4, rel=1e-12)


def test_no_candidates_and_tokens():
    empty = Case(0, (), (1.0,))
    assert random_value("R@5", empty) == 0.0 and math.isnan(random_value("Judged@5", empty)) and math.isnan(random_value("Tokens@5", Case(3, ())))
    toy = collection({"q": {"a": 1}}, scope={"q": ["a", "b"]})
    chance = expected_random(toy, ["Tokens@1", "Tokens@9", "Judged@1"], tokens={"a": 10, "b": 20, "c": 1, "d": 1, "e": 1})
    assert chance.values.loc["q"].tolist() == [15.0, 30.0, 0.5]
    ceiling = structural_ceiling(toy, ["Judged@1", "Tokens@1", "R@1"])
    assert ceiling.aggregate()["n"].tolist() == [0, 0, 1]


def test_labels_alone_need_candidates():
    with pytest.raises(DataError, match="give candidates="):
        expected_random({"q": {"a": 1}}, ["R@1"])
    with pytest.raises(DataError, match="2 judged documents but only 1"):
        expected_random({"q": {"a": 1, "b": 0}}, ["R@1"], candidates=1)
    assert expected_random(Qrels.from_dict({"q": {"a": 1}}), ["R@1"], candidates=10)["R@1"].tolist() == [0.1]


def test_aggregated_candidates_are_parents():
    "Five passages of two documents: two candidates; the gold rule names documents."
    toy = collection({"q": {"A": 1}}, docs=["A:0", "A:1", "A:2", "A:3", "B:0"], parents=["A"] * 4 + ["B"], unit="passage", counted="full_document", aggregate="max")
    assert cases(toy)["q"] == Case(2, (1.0,), (), 1)
    exact = expected_random(toy, ["recall_any@1"]).mean("recall_any@1")
    estimate, error = estimate_random(toy, ["recall_any@1"], samples=300, seed=3)
    assert exact == 0.5 and abs(estimate.mean("recall_any@1") - 0.8) < 4 * error["recall_any@1"]  # four of five passages are A's: documents are not uniform
    again, _ = estimate_random(toy, ["recall_any@1"], samples=300, seed=3)
    assert again.values.equals(estimate.values) and estimate.info == {"samples": 300, "seed": 3}


def test_binary_labels_for_binary_measures_and_dropped_questions():
    toy = collection({"q": {"a": 1, "b": 3}, "none": {"a": 0}}, binary={"q": {"b": 1}, "none": {}}, no_relevant="drop")
    chance = expected_random(toy, ["nDCG@1", "R@1"])
    assert chance["R@1"].to_dict() == {"q": 0.2}
    assert chance["nDCG@1"]["q"] == pytest.approx(4 / 5 / 3) and "none" not in chance["nDCG@1"]
    assert expected_random(toy, ["R@1"], no_relevant="zero")["R@1"].to_dict() == {"q": 0.2, "none": 0.0}


def test_cells_fixed_by_structure():
    toy = collection({"q": {"a": 1}, "r": {"a": 1}}, scope={"q": ["a", "b"], "r": ["a", "b", "c"]})
    cells = structural_cells(toy, ["R@1", "R@2", "R@3", "RR", "P@4"]).set_index("measure")
    assert cells["fixed"].to_dict() == {"R@1": 0, "R@2": 1, "R@3": 2, "RR": 0, "P@4": 2}
    assert cells["dashed"].to_dict() == {"R@1": False, "R@2": False, "R@3": True, "RR": False, "P@4": True}
    assert cells.loc["R@2", "note"] == "R@2 is fixed by structure for 1 of 2 questions" and cells.loc["R@1", "note"] == ""
    assert not structural_cells(collection({}), ["R@1"])["dashed"].any()


def test_report_and_notes():
    labels = {"ok": {"a": 1}, "outside": {"d": 1}, "absent": {"nowhere": 1}, "crowded": {"a": 1, "b": 1}, "none": {"a": 0}}
    toy = collection(labels, scope={q: ["a", "b", "c"] if q != "none" else ["a"] for q in labels})
    report = structural_report(toy, known_wrong=["ok", "not asked"])
    assert report["not_in_corpus"].to_dict() == {"ok": 0, "outside": 0, "absent": 1, "crowded": 0, "none": 0}
    assert report["not_in_scope"].to_dict() == {"ok": 0, "outside": 1, "absent": 0, "crowded": 0, "none": 0}
    assert report.loc["crowded", "all_from"] == 2 and report.loc["crowded", "ceiling_recall_all@1"] == 0 and report.loc["crowded", "ceiling_R@1"] == 0.5
    assert np.isnan(report.loc["absent", "all_from"]) and report.loc["ok", "full_from"] == 3
    assert structural_notes(report) == [
        "1 of 5 questions cite a document that is not in the corpus",
        "1 of 5 questions cite a document outside their scope",
        "1 of 5 questions have a citation known to be wrong",
        "at k = 1, 1 of 5 questions have more than 1 relevant documents: recall_all@1 is 0 for every system",
        "at k = 1, 1 of 5 questions return all their candidates",
        "at k = 2, 1 of 5 questions return all their candidates",
    ]
    assert list(structural_report(toy, ks=()).columns) == ["candidates", "relevant", "not_in_corpus", "not_in_scope", "known_wrong", "full_from", "all_from"]


def test_random_order_on_locomo_sessions(shared_data):
    "A random order of a conversation's sessions has an evidence session in the first ten for .439 of the 1,526 questions."
    from crumb_nb.datasets.locomo import load_locomo

    toy = load_locomo(shared_data / "locomo" / "locomo10.json", unit="session")
    queries = [q for q in toy.protocol.judged(toy) if q in set(toy.qrels.query_ids)]
    chance = expected_random(toy, ["recall_any@10"], queries=queries)
    assert len(queries) == 1526 and round(chance.mean("recall_any@10"), 3) == 0.439
