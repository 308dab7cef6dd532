"""Measures: hand values, the known cases, reference tools and two official scripts restated from their description."""

import math
from collections import OrderedDict

import ir_measures
import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from crumb_nb.metrics import CRUMB_MEASURES, LONGMEMEVAL_MEASURES, Measure, Scores, as_measure, evaluate, rank_of_first
from crumb_nb.official import crumb_eval_max_p, turn_to_session
from crumb_nb.protocols import Protocol
from crumb_nb.records import DataError, Qrels, Run

IDS = ["a", "b", "B", "d1", "d10", "d2", "é/文", "文", "#x:0", "z", "10", "9"]
PARITY = ("nDCG", "nDCG@1", "nDCG@3", "nDCG@10", "R@1", "R@5", "R@100", "P@1", "P@5", "P@10", "RR", "AP", "AP@3")


def trec_name(measure: str) -> str:
    "pytrec_eval's name of a measure."
    family, _, k = measure.partition("@")
    return {"nDCG": "ndcg_cut_", "R": "recall_", "P": "P_", "AP": "map_cut_"}[family] + k if k else {"nDCG": "ndcg", "RR": "recip_rank", "AP": "map"}[family]


@st.composite
def collections(draw, labels=st.integers(-2, 4), distinct=False):
    "Qrels and a run over a few queries: partial runs, unjudged queries, ties (unless distinct), empty results."
    qrels, run = {}, {}
    for n in range(draw(st.integers(1, 3))):
        query = f"q{n}"
        judged = draw(st.lists(st.sampled_from(IDS), min_size=1, unique=True))
        qrels[query] = {d: draw(labels) for d in judged}
        if draw(st.integers(0, 5)):
            found = draw(st.lists(st.sampled_from(IDS), min_size=0, unique=True))
            score = st.floats(-8, 8, width=32, allow_nan=False) if draw(st.booleans()) else st.sampled_from([0.0, 0.5, -0.25, 1.0])
            if distinct:
                values = draw(st.lists(st.integers(-50, 50), min_size=len(found), max_size=len(found), unique=True))
                run[query] = {d: v / 4 for d, v in zip(found, values)}
            else:
                run[query] = {d: draw(score) for d in found}
    if draw(st.booleans()):
        run["unjudged"] = {"a": 1.0}
    return qrels, run


# ---- parity with reference tools ------------------------------------------------------------------------------------------------------------


@settings(max_examples=600)
@given(collections())
def test_parity_with_pytrec_eval(case):
    "Ties, partial runs, graded and negative labels, scores exact in 32 bits: the same values to 1e-9, in both modes that rank like trec_eval."
    qrels, run = case
    safe = {q: d for q, d in qrels.items() if max(d.values()) >= 0}  # pytrec_eval writes outside its memory when all labels of a query are negative
    reference = pytrec_eval.RelevanceEvaluator(safe, {"ndcg", "ndcg_cut.1,3,10", "recall.1,5,100", "P.1,5,10", "recip_rank", "map", "map_cut.3"}).evaluate({q: d for q, d in run.items() if d})
    for mode in ("exact", "trec_eval"):
        ours = evaluate(run, qrels, PARITY, mode=mode)
        assert list(ours.values.index) == list(qrels)
        for query in qrels:
            for measure in PARITY:
                expected = reference[query][trec_name(measure)] if query in reference else 0.0
                assert ours.values.loc[query, measure] == pytest.approx(expected, abs=1e-9), (query, measure)


@settings(max_examples=100)
@given(collections(labels=st.integers(0, 1), distinct=True), st.integers(1, 5))
def test_rr_at_k_agrees_with_ir_measures_without_ties(case, k):
    qrels, run = case
    reference = {m.query_id: m.value for m in ir_measures.iter_calc([ir_measures.parse_measure(f"RR@{k}")], qrels, run)}
    ours = evaluate(run, qrels, [f"RR@{k}"])[f"RR@{k}"]
    for query, value in ours.items():
        assert value == pytest.approx(reference.get(query, 0.0), abs=1e-9)


@settings(max_examples=100)
@given(collections(labels=st.integers(0, 3), distinct=True), st.integers(1, 5))
def test_judged_agrees_with_ir_measures(case, k):
    qrels, run = case
    run = {q: d for q, d in run.items() if d}
    reference = {m.query_id: m.value for m in ir_measures.iter_calc([ir_measures.parse_measure(f"Judged@{k}")], qrels, run)}
    ours = evaluate(run, qrels, [f"Judged@{k}"])[f"Judged@{k}"].to_dict()
    assert ours == pytest.approx({q: v for q, v in reference.items() if q in ours}) and set(ours) == set(run) & set(qrels)


@settings(max_examples=100)
@given(collections(labels=st.sampled_from([0.0, 0.25, 0.5, 1.5, 2.0])))
def test_float_labels_equal_rescaled_whole_labels(case):
    "Linear gain: nDCG does not change when all labels are multiplied by four, and pytrec_eval agrees on the whole numbers."
    qrels, run = case
    whole = {q: {d: int(4 * v) for d, v in docs.items()} for q, docs in qrels.items()}
    measures = ("nDCG@3", "nDCG@10", "R@5", "AP")
    assert np.allclose(evaluate(run, qrels, measures).values, evaluate(run, whole, measures).values, atol=1e-12)
    reference = pytrec_eval.RelevanceEvaluator(whole, {"ndcg_cut.3"}).evaluate({q: d for q, d in run.items() if d})
    for query, values in reference.items():
        assert evaluate(run, qrels, ["nDCG@3"]).values.loc[query, "nDCG@3"] == pytest.approx(values["ndcg_cut_3"], abs=1e-9)


@settings(max_examples=100)
@given(collections(), st.randoms(use_true_random=False))
def test_order_of_rows_and_queries_never_matters(case, random):
    qrels, run = case
    shuffled = {q: dict(random.sample(list(run[q].items()), len(run[q]))) for q in random.sample(list(run), len(run))}
    assert evaluate(run, qrels, PARITY).values.equals(evaluate(shuffled, qrels, PARITY).values)


@settings(max_examples=100)
@given(collections(labels=st.floats(0, 4)))
def test_bounds(case):
    "Nothing leaves [0, 1]; all ≤ share ≤ any; a longer look finds no less."
    qrels, run = case
    values = evaluate(run, qrels, [*PARITY, "recall_any@5", "recall_all@5", "ndcg_any@5", "RR@3"]).values
    assert ((values >= 0) & (values <= 1 + 1e-12)).all().all()
    assert (values["recall_all@5"] <= values["R@5"] + 1e-12).all() and (values["R@5"] <= values["recall_any@5"] + 1e-12).all()
    assert (values["R@1"] <= values["R@5"]).all() and (values["RR@3"] <= values["RR"]).all()


# ---- the official logic of the benchmarks, restated ------------------------------------------------------------------------------------------


def longmemeval_says(ranking: list[str], gold: set[str], haystack: list[str], k: int) -> tuple[float, float, float]:
    "any, all and nDCG of LongMemEval: the first document counts in full, the i-th later one (counted from 1) is divided by log2(i + 1)."

    def gain_sum(relevant: list[bool]) -> float:
        total = 0.0
        for place, hit in enumerate(relevant[:k]):
            total += hit if place == 0 else hit / math.log2(place + 1)
        return total

    top = ranking[:k]
    best = gain_sum(sorted((d in gold for d in haystack), reverse=True))
    ndcg = gain_sum([d in gold for d in ranking]) / best if best else 0.0
    return float(any(d in top for d in gold)), float(all(d in top for d in gold)), ndcg


@settings(max_examples=100)
@given(st.permutations(IDS), st.sets(st.sampled_from(IDS)), st.integers(1, 12))
def test_longmemeval_official(ranking, gold, k):
    run, qrels = {"q": {d: -float(i) for i, d in enumerate(ranking)}}, {"q": dict.fromkeys(sorted(gold), 1)}
    scores = evaluate(run, qrels, [f"recall_any@{k}", f"recall_all@{k}", f"ndcg_any@{k}"], mode="longmemeval_official")
    if not gold:  # its helper would say any 0 and all 1; its scripts leave such questions out
        assert len(scores.frame) == 0 and scores.aggregate()["n"].tolist() == [0, 0, 0]
    else:
        assert scores.values.loc["q"].tolist() == pytest.approx(list(longmemeval_says(list(ranking), gold, IDS, k)))


def widened_says(ranking: list[str], gold: set[str], k: int) -> tuple[float, float, float]:
    "Turn → session as the official script has it: turns are `<session>_<turn>`; a non-evidence turn of a gold session got another session name."
    gold_sessions = {t.rpartition("_")[0] for t in gold}

    def session(turn: str) -> str:
        name = turn.rpartition("_")[0]
        return "noans" + name if name in gold_sessions and turn not in gold else name

    names = [session(t) for t in ranking]
    depth = k
    while depth <= len(names) and len(set(names[:depth])) < k:
        depth += 1
    # from here on a list of session names, repeats and all, is scored at the widened depth
    hit = [n in gold_sessions for n in names]

    def gain_sum(relevant: list[bool]) -> float:
        return sum(r if i == 0 else r / math.log2(i + 1) for i, r in enumerate(relevant[:depth]))

    top = set(names[:depth])
    return float(bool(gold_sessions & top)), float(gold_sessions <= top), gain_sum(hit) / gain_sum(sorted(hit, reverse=True))


TURNS = [f"s{s}_{t}" for s in range(4) for t in range(3)]


@settings(max_examples=100)
@given(st.permutations(TURNS), st.sets(st.sampled_from(TURNS), min_size=1), st.integers(1, 6))
def test_turn_to_session_official(ranking, gold, k):
    parents = {t: t.rpartition("_")[0] for t in TURNS}
    run, qrels = {"q": {t: -float(i) for i, t in enumerate(ranking)}}, {"q": dict.fromkeys(sorted(gold), 1), "nothing": {}}
    scores = turn_to_session(run, qrels, parents, ks=[k])
    assert list(scores.values.index) == ["q"]
    assert scores.values.loc["q"].tolist()[:3] == pytest.approx(list(widened_says(list(ranking), gold, k)))


def test_turn_to_session_edges():
    parents = {"x1": "x", "x2": "x", "y1": "y"}
    gold = {"q": {"x1": 1}, "missing": {"y1": 1}}
    scores = turn_to_session({"q": {"x2": 2.0, "x1": 1.0}}, gold, parents, ks=[3])
    assert scores.values.loc["q"].tolist() == [1.0, 1.0, 1.0, 2.0]  # fewer sessions than k: the whole list; ranks 1 and 2 weigh the same
    assert scores.values.loc["missing"].tolist() == [0.0, 0.0, 0.0, 0.0]
    same = turn_to_session({"q": {"x2": 2.0, "x1": 1.0}}, gold, parents, ks=[1], other_turns="same")
    assert same.values.loc["q", ["recall_all@1", "depth@1"]].tolist() == [1.0, 1.0] and same.values.loc["missing", "ndcg_any@1"] == 0
    with pytest.raises(DataError, match="separate"):
        turn_to_session({}, gold, parents, other_turns="other")


def crumb_eval_says(rows, labels, binary, measures, max_p):
    """What CRUMB's tool computes, from its description: passages reduced by what precedes ':', labels through int(), nDCG on the graded
    and the rest on the binary labels, both from relevance 1 on; 32-bit scores with larger ids first, but RR@k on full scores, smaller ids first."""
    out = {}
    graded = {q: {d: int(v) for d, v in docs.items()} for q, docs in labels.items()}
    flat = {q: {d: int(v) for d, v in docs.items()} for q, docs in (binary or labels).items()}
    for measure in measures:
        family, _, depth = measure.partition("@")
        k = int(depth) if depth else 10**9
        values = []
        for query in labels:
            items = rows.get(query, [])
            if max_p:
                best = OrderedDict()
                for doc, score in sorted(items, key=lambda item: item[1], reverse=True):
                    best.setdefault(doc.split(":")[0], (doc, score))
                items = list(best.values())
            if family == "RR" and depth:
                ranked = [d for d, _ in sorted(items, key=lambda item: (-item[1], item[0]))]
            else:
                ranked = [d for d, _ in sorted(((d, float(np.float32(s))) for d, s in items), key=lambda item: (item[1], item[0]), reverse=True)]
            relevant = {d for d, v in flat[query].items() if v >= 1}
            hits = [d in relevant for d in ranked[:k]]
            gains = [max(graded[query].get(d, 0), 0) for d in ranked[:k]]
            ideal = sorted((max(v, 0) for v in graded[query].values()), reverse=True)[:k]
            dcg = lambda gs: sum(g / math.log2(i + 2) for i, g in enumerate(gs))  # noqa: E731
            values.append({
                "nDCG": lambda: dcg(gains) / dcg(ideal) if dcg(ideal) else 0.0,
                "P": lambda: sum(hits) / k,
                "R": lambda: sum(hits) / len(relevant) if relevant else 0.0,
                "RR": lambda: 1 / (hits.index(True) + 1) if any(hits) else 0.0,
            }[family]())
        out[measure] = sum(values) / len(values)
    return out


@settings(max_examples=100)
@given(collections(labels=st.sampled_from([0.0, 0.5, 1.0, 1.9, 2.0])), st.booleans(), st.booleans())
def test_crumb_eval_mode(case, max_p, with_binary):
    labels, run = case
    binary = {q: {d: float(v >= 1.9) for d, v in docs.items()} for q, docs in labels.items()} if with_binary else None
    expected = crumb_eval_says({q: list(d.items()) for q, d in run.items()}, labels, binary, CRUMB_MEASURES, max_p)
    reduced = crumb_eval_max_p(Run.from_dict(run)) if max_p else run
    ours = evaluate(reduced, labels, CRUMB_MEASURES, binary_qrels=binary, mode="crumb_eval").aggregate()
    assert dict(zip(ours["measure"], ours["value"])) == pytest.approx(expected, abs=1e-9)


def test_crumb_eval_defaults_agree_with_its_provider():
    "ir_measures, which the tool calls, on its own nine default measures; one tie that its two RR rules resolve differently."
    qrels = {"q": {"t": 1, "m": 0}, "r": {"x": 2, "y": 1}}
    run = {"q": {"m": 5.0, "k": 5.0, "t": 5.0}, "r": {"y": 3.0, "n": 2.0, "x": 1.0}}
    theirs = ir_measures.calc_aggregate([ir_measures.parse_measure(m) for m in CRUMB_MEASURES], qrels, run)
    ours = evaluate(run, qrels, CRUMB_MEASURES, mode="crumb_eval")
    assert {str(m): v for m, v in theirs.items()} == pytest.approx({m: ours.mean(m) for m in CRUMB_MEASURES}, abs=1e-9)
    assert ours.values.loc["q", "RR"] == 1.0 and ours.values.loc["q", "RR@10"] == pytest.approx(1 / 3)


def test_crumb_eval_max_p_scores_zero_on_passage_ids():
    "The kept item keeps its passage id, so documents are never met; in a tie the first row stays; an empty run stays empty."
    run = Run.from_dict({"q": {"A:1": 1.0, "A:0": 1.0, "B": 0.5}, "none": {}})
    assert crumb_eval_max_p(run).to_dict() == {"q": {"A:1": 1.0, "B": 0.5}, "none": {}}
    assert evaluate(crumb_eval_max_p(run), {"q": {"A": 1}}, ["R@10"], mode="crumb_eval").mean("R@10") == 0.0
    assert len(crumb_eval_max_p(Run.from_dict({"q": {}}))) == 0


# ---- the known cases: expected values pass, and the wrong values of other tools are not what we give -----------------------------------------


def test_ties_by_descending_id():  # EV01
    import itertools

    for order in itertools.permutations(["m", "k", "t"]):
        scores = evaluate({"q": dict.fromkeys(order, 5.0)}, {"q": {"t": 1}}, ["RR", "nDCG@10", "P@1"])
        assert scores.values.loc["q"].tolist() == [1.0, 1.0, 1.0]
        assert scores.info["gold_in_ties"] == 1
    assert [d for d in Run.from_dict({"q": dict.fromkeys("mkt", 5.0)}).frame()["doc_id"]] == ["t", "m", "k"]


@pytest.mark.parametrize(
    "qrels, run, expected, n",
    [
        ({"q1": {"d1": 1}, "q2": {"d1": 1}}, {"q1": {"d1": 1.0}}, {"nDCG@10": 0.5, "RR": 0.5, "R@100": 0.5}, 2),
        ({"q1": {"d1": 1}, "q2": {"d1": 0}}, {"q1": {"d1": 1.0}, "q2": {"d1": 1.0}, "qX": {"d1": 1.0}}, {"nDCG@10": 0.5, "P@10": 0.05, "RR": 0.5, "R@100": 0.5}, 2),
        ({"a": {"d": 1}}, {"z": {"d": 1.0}}, {"nDCG@10": 0.0, "RR": 0.0}, 1),
        ({"q1": {"d1": 1}, "q2": {}}, {"q1": {"d1": 1.0}, "q2": {"d1": 1.0}}, {"nDCG@10": 0.5}, 2),
        ({"q1": {"d1": 1}}, {}, {"nDCG@10": 0.0}, 1),
    ],
)
def test_mean_is_over_judged_queries(qrels, run, expected, n):  # EV03
    out = evaluate(run, qrels, list(expected)).aggregate()
    assert dict(zip(out["measure"], out["value"])) == pytest.approx(expected)
    assert set(out["n"]) == {n}


def test_labels_are_never_truncated_silently():  # EV04
    qrels, run = {"q": {"a": 0.5, "b": 1.0}}, {"q": {"a": 2.0, "b": 1.0}}
    measures = ["nDCG@10", "R@100", "P@1", "RR"]
    assert evaluate(run, qrels, measures).values.loc["q"].tolist() == pytest.approx([0.859719, 1.0, 1.0, 1.0], abs=1e-6)
    assert evaluate(run, qrels, measures, mode="crumb_eval").values.loc["q"].tolist() == pytest.approx([0.63093, 1.0, 0.0, 0.5], abs=1e-6)
    with pytest.raises(DataError, match="'a' is not whole.*use mode='exact'"):
        evaluate(run, qrels, measures, mode="trec_eval")


def test_gain_is_linear_and_negative_labels_gain_nothing():  # EV05
    scores = evaluate({"q": {"d3": 3.0, "d2": 2.0, "d1": 1.0}}, {"q": {"d1": 2, "d2": 1, "d3": -1}}, ["nDCG@10", "RR", "R@100", "P@1"])
    assert scores.values.loc["q"].tolist() == pytest.approx([0.619906, 0.5, 1.0, 0.0], abs=1e-6)
    linear = evaluate({"q": {"d2": 2.0, "d1": 1.0}}, {"q": {"d1": 2, "d2": 1}}, ["nDCG@10"]).mean("nDCG@10")
    assert linear == pytest.approx(0.859719, abs=1e-6) and linear != pytest.approx(0.796708, abs=1e-3)  # the exponential gain


def test_a_document_counts_once():  # EV06
    with pytest.raises(ValueError, match="'q'.*'x'"):
        Run.from_rows(["q", "q", "q"], ["x", "y", "x"], [0.9, 0.5, 0.1])
    once = evaluate({"q": {"x": 2.0}}, {"q": {"x": 1}}, ["R@100", "nDCG@10", "P@10"])
    assert once.values.loc["q"].tolist() == [1.0, 1.0, 0.1]


def test_scores_keep_their_width():  # EV08
    run, qrels = {"q": {"a": 1.00000001, "b": 1.0}}, {"q": {"a": 1}}
    assert evaluate(run, qrels, ["RR"]).mean("RR") == 1.0
    assert evaluate(run, qrels, ["RR"], mode="trec_eval").mean("RR") == 0.5
    assert pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)["q"]["recip_rank"] == 0.5


@pytest.mark.parametrize("kind", [float, lambda v: int(v * 10), np.float32, np.float64])
def test_order_comes_from_the_score_of_any_type(kind):  # EV09
    assert evaluate({"q": {"a": kind(0.2), "b": kind(0.9)}}, {"q": {"b": 1}}, ["RR"]).mean("RR") == 1.0


def test_discounts_of_longmemeval_and_trec_eval():  # LM01
    expected = {"X....": (1.0, 1.0), ".X...": (1.0, 0.63093), "..X..": (0.63093, 0.5), "X.X..": (0.815465, 0.919721), ".X.X.": (0.75, 0.650921)}
    for row, values in expected.items():
        run = {"q": {f"d{i}": -float(i) for i in range(5)}}
        qrels = {"q": {f"d{i}": 1 for i, c in enumerate(row) if c == "X"}}
        assert evaluate(run, qrels, ["ndcg_any@5", "nDCG@5"]).values.loc["q"].tolist() == pytest.approx(values, abs=1e-6)


def test_questions_without_gold_are_left_out_by_name():  # LM02
    qrels = {"a": {"s1": 1, "s2": 1}, "b_abs": {}, "c": {}}
    run = {"a": {"s1": 3.0, "s9": 2.0, "s2": 1.0}, "b_abs": {"s1": 1.0}, "c": {"s1": 1.0}}
    out = evaluate(run, qrels, ["recall_any@2", "recall_all@2", "R@2"], mode="longmemeval_official").aggregate()
    assert out["value"].tolist() == [1.0, 0.0, 0.5] and out["n"].tolist() == [1, 1, 1]
    over_three = evaluate(run, qrels, ["recall_any@2", "recall_all@2"]).aggregate()
    assert over_three["value"].tolist() == pytest.approx([1 / 3, 0.0])  # no free recall_all for questions without gold: never the 0.6667 of the helper


def test_every_eval_case_of_the_shared_file(cases):
    "The same through the file itself, wrong values included."
    for name in ("EV01", "EV04", "EV05", "EV08"):
        assert cases[name]["area"] == "eval"
    for part, given_ in cases["EV03"]["input"].items():
        expected = cases["EV03"]["expected"][part]
        scores = evaluate(given_["run"], given_["qrels"], list(expected["metrics"]))
        assert {m: scores.mean(m) for m in expected["metrics"]} == pytest.approx(expected["metrics"]) and scores.info["judged"] == expected["n_queries"]
    ev04 = cases["EV04"]
    wrong = ev04["wrong"]["silent_truncation"]
    exact = evaluate(ev04["input"]["run"], ev04["input"]["qrels"], list(wrong))
    assert all(exact.mean(m) != pytest.approx(v) for m, v in wrong.items() if v != 1.0)
    for part, expected in cases["EV05"]["expected"].items():
        if part in cases["EV05"]["input"]:
            scores = evaluate(cases["EV05"]["input"][part]["run"], cases["EV05"]["input"][part]["qrels"], list(expected))
            assert {m: scores.mean(m) for m in expected} == pytest.approx(expected, abs=1e-6)
    for row, expected in cases["LM01"]["expected"].items():
        relevance = cases["LM01"]["input"]["relevance_in_rank_order"][row]
        run, qrels = {"q": {str(i): -float(i) for i in range(5)}}, {"q": {str(i): r for i, r in enumerate(relevance)}}
        assert evaluate(run, qrels, ["ndcg_any@5", "nDCG@5"]).values.loc["q"].tolist() == pytest.approx([expected["longmemeval"], expected["standard"]], abs=1e-6)


# ---- mutations: each small change of a rule must move a number that a test pins down ---------------------------------------------------------

MUTANTS = {
    "gain 2^label - 1": lambda ranked, labels: sum((2 ** labels.get(d, 0) - 1) / math.log2(i + 2) for i, d in enumerate(ranked)),
    "discount from rank 2": lambda ranked, labels: sum(labels.get(d, 0) / math.log2(max(i + 1, 2)) for i, d in enumerate(ranked)),
    "ideal only of what came back": None,
    "binary gain": lambda ranked, labels: sum((labels.get(d, 0) > 0) / math.log2(i + 2) for i, d in enumerate(ranked)),
    "no discount": lambda ranked, labels: sum(labels.get(d, 0) for d in ranked),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_of_ndcg_are_told_apart(name):
    "The five-document example of the notebook separates nDCG from each of its common mutations."
    ranked, labels = ["d1", "d2", "d3", "d4", "d5"], {"d1": 0, "d2": 2, "d4": 1, "d9": 1}
    run = {"q": {d: -float(i) for i, d in enumerate(ranked)}}
    right = evaluate(run, {"q": labels}, ["nDCG@5"]).mean("nDCG@5")
    mutant = MUTANTS[name]
    best = sorted(labels, key=labels.get, reverse=True)
    if mutant is None:
        mutant = lambda order, _: sum(labels.get(d, 0) / math.log2(i + 2) for i, d in enumerate(order))  # noqa: E731
        best = [d for d in best if d in ranked]
    assert abs(mutant(ranked, labels) / mutant(best, labels) - right) > 0.01


@pytest.mark.parametrize(
    "mutation, measure, mutated",
    [
        ("P over what came back", "P@10", 2 / 5),
        ("R over min(k, relevant)", "R@2", 1 / 2),
        ("AP over relevant documents found", "AP", 1 / 2),
        ("rank counted from 0", "RR", 1.0),
        ("recall_all as share", "recall_all@5", 2 / 3),
        ("Judged over k", "Judged@10", 3 / 10),
    ],
)
def test_mutants_of_the_other_measures_are_told_apart(mutation, measure, mutated):
    run = {"q": {f"d{i}": -float(i) for i in range(1, 6)}}
    value = evaluate(run, {"q": {"d1": 0, "d2": 2, "d4": 1, "d9": 1}}, [measure]).mean(measure)
    assert value != pytest.approx(mutated, abs=1e-3), mutation


# ---- the rest of the interface -----------------------------------------------------------------------------------------------------------------


def test_names():
    assert as_measure(as_measure("nDCG@10")) == Measure("nDCG", 10) and str(Measure("AP")) == "AP"
    for name, hint in {"MRR@10": "RR here", "ndcg@10": "nDCG here", "recall@5": "R here", "R": "needs a depth", "R@0": "unknown", "nonsense": "unknown", "": "unknown"}.items():
        with pytest.raises(DataError, match=hint):
            as_measure(name)
    assert len(CRUMB_MEASURES) == 9 and len(LONGMEMEVAL_MEASURES) == 18


def test_protocol_supplies_what_is_not_said():
    protocol = Protocol(name="p", unit="session", counted="session", gold_rule="x", measures=("recall_any@1",), mode="longmemeval_official", ties="hash", left_out={"out": "abstention"})
    qrels = {"q": {"a": 1}, "out": {"a": 1}, "none": {}}
    scores = evaluate({"q": {"a": 1.0}, "out": {}}, qrels, protocol=protocol)
    assert scores.measures == ["recall_any@1"] and scores["recall_any@1"].to_dict() == {"q": 1.0}
    exact = evaluate({"q": {"a": 1.0}}, qrels, "RR", protocol=protocol, mode="exact", no_relevant="zero")
    assert exact["RR"].to_dict() == {"q": 1.0, "none": 0.0}
    assert evaluate({"q": {"a": 1.0}}, {"q": {"a": 1}}).measures == ["nDCG@10", "R@100"]


def test_binary_measures_of_the_protocol_decide_which_labels_count():
    graded, binary = {"q": {"a": 1, "b": 3}}, {"q": {"b": 1}}
    run = {"q": {"a": 2.0, "b": 1.0}}
    default = evaluate(run, graded, ["RR", "P@1", "nDCG@10"], binary_qrels=binary)
    assert default.values.loc["q", ["RR", "P@1"]].tolist() == [0.5, 0.0]
    only_p = Protocol(name="p", unit="passage", counted="passage", gold_rule="x", measures=("RR", "P@1"), binary_measures=("P",))
    assert evaluate(run, graded, protocol=only_p, binary_qrels=binary).values.loc["q"].tolist() == [1.0, 0.0]


def test_each_measure_has_its_own_denominator():
    graded, binary = {"q": {"a": 1}, "r": {"a": 1}}, {"q": {"a": 1}, "r": {}}
    out = evaluate({"q": {"a": 1.0}}, graded, ["nDCG@10", "R@10", "Judged@10"], binary_qrels=binary, no_relevant="drop").aggregate()
    assert out["n"].tolist() == [2, 1, 1] and out["value"].tolist() == [0.5, 1.0, 1.0]


def test_queries_choose_and_order_what_is_counted():
    qrels, run = {"a": {"d": 1}, "b": {"d": 1}, "c": {"d": 1}}, {"b": {"d": 1.0}}
    assert evaluate(run, qrels, ["RR"], queries=["c", "b"])["RR"].to_dict() == {"c": 0.0, "b": 1.0}
    with pytest.raises(DataError, match="no judgement"):
        evaluate(run, qrels, ["RR"], queries=["x"])
    with pytest.raises(DataError, match="listed twice"):
        evaluate(run, qrels, ["RR"], queries=["a", "a"])


def test_refusals():
    for arguments, message in [
        (dict(mode="trec"), "unknown value 'trec'"),
        (dict(no_relevant="keep"), "unknown value 'keep'"),
        (dict(measures=[]), "nothing to measure"),
        (dict(measures=["AP"], mode="crumb_eval"), "has no such measure"),
        (dict(measures=["nDCG@10"], mode="longmemeval_official"), "has no such measure"),
        (dict(measures=["Tokens@5"]), "needs tokens"),
        (dict(measures=["Tokens@5"], tokens={"b": 1}), "no token count"),
        (dict(measures=["RR"], ties="random"), "choose one of"),
    ]:
        with pytest.raises(ValueError, match=message):
            evaluate({"q": {"a": 1.0, "z": 1.0}}, {"q": {"a": 1}}, **arguments)


def test_tokens_returned_at_k():
    run, tokens = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}, "r": {}}, {"a": 10, "b": 5, "c": 1}
    scores = evaluate(run, {"q": {"a": 1}, "r": {"a": 1}}, ["Tokens@1", "Tokens@2", "Tokens@10"], tokens=pd.Series(tokens))
    assert scores.values.loc["q"].tolist() == [10, 15, 16] and scores.values.loc["r"].tolist() == [0, 0, 0]


def test_info_counts_what_a_mean_hides():
    qrels = {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 0}}
    assert evaluate({"a": {"x": 1.0, "y": 1.0}, "zz": {"x": 1.0}}, qrels, ["RR"]).info == {"judged": 3, "without_result": 2, "without_relevant": 1, "unjudged_ignored": 1, "gold_in_ties": 1}


def test_hash_ties_hide_the_meaning_of_ids():
    "Ids that carry gold do not win ties under 'hash': the order is that of the digest, the same on every machine."
    import hashlib

    ids = ["answer_1", "b", "c", "d"]
    first = max(ids, key=lambda i: hashlib.sha256(i.encode()).hexdigest())
    for i in ids:
        assert evaluate({"q": dict.fromkeys(ids, 1.0)}, {"q": {i: 1}}, ["P@1"], ties="hash").mean("P@1") == float(i == first)


def test_groups():
    scores = Scores(pd.DataFrame({"B@1": [1.0, 0.0, np.nan], "A@1": [0.5, 0.5, 1.0]}, index=["x", "y", "z"]))
    out = scores.by(pd.Series({"x": "one", "y": "one", "z": "two"}))
    assert out.to_dict("list") == {"group": ["one", "one", "two"], "measure": ["B@1", "A@1", "A@1"], "value": [0.5, 0.5, 1.0], "n": [2, 2, 1]}
    with pytest.raises(DataError, match="no group"):
        scores.by({"x": "one"})


def test_frame_is_long_and_complete():
    frame = evaluate({"q": {"a": 1.0}}, {"q": {"a": 1}, "r": {"b": 1}}, ["RR", "Judged@1"]).frame
    assert frame.to_dict("list") == {"query_id": ["q", "r", "q"], "measure": ["RR", "RR", "Judged@1"], "value": [1.0, 0.0, 1.0]}


def test_rank_of_first():
    out = rank_of_first({"q": {"a": 1.0, "b": 2.0}, "e": {}}, {"q": {"a": 1}, "e": {"a": 1}})
    assert out["q"] == 2 and np.isnan(out["e"])
    assert rank_of_first(Run.from_dict({"q": {"a": 1.0}}), Qrels.from_dict({"q": {"a": 1}, "r": {"a": 1}}), queries=["r"]).isna().all()


def test_empty_sides():
    assert evaluate({}, {}, ["RR"]).aggregate()["n"].tolist() == [0] and math.isnan(evaluate({}, {}, ["RR"]).mean("RR"))
    assert evaluate({"q": {}}, {"q": {}}, ["RR", "nDCG@10", "recall_all@5"]).values.loc["q"].tolist() == [0, 0, 0]


def test_more_queries_than_sixteen_bits():
    "The narrow sort key gives way to the wide one; rows are grouped right either way."
    n = 70_000
    ids = [f"q{i}" for i in range(n)]
    run = Run.from_rows(ids + ids, ["a"] * n + ["b"] * n, [1.0] * n + [2.0] * n)
    qrels = Qrels.from_rows(ids, ["a"] * n, [1.0] * n)
    assert evaluate(run, qrels, ["RR"]).mean("RR") == 0.5


def test_counts_of_longmemeval_on_real_labels(shared_data):
    "470 of 500 questions have gold sessions that are not abstentions; three of them cannot reach recall_all at 5."
    import json

    rows = json.loads((shared_data / "longmemeval" / "longmemeval_gold_500q.json").read_text(encoding="utf-8"))
    gold = {r["question_id"]: dict.fromkeys(r["answer_session_ids"], 1) for r in rows if not r["question_id"].endswith("_abs")}
    assert len(rows) == 500 and len(gold) == 470
    oracle = {q: {d: -float(i) for i, d in enumerate(docs)} for q, docs in gold.items()}
    scores = evaluate(oracle, gold, ["recall_all@5", "recall_all@6", "recall_any@1"], mode="longmemeval_official")
    assert scores["recall_all@5"].sum() == 467 and scores["recall_all@6"].sum() == 470 and scores["recall_any@1"].sum() == 470
