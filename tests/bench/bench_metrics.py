"""Measures against pytrec_eval: 500 queries × 1,000 documents, nDCG@10, R@100 and AP, the same values in the same process."""

import time
from collections.abc import Callable

import numpy as np

QUERIES, DOCUMENTS, UNIVERSE, JUDGED = 500, 1000, 100_000, 40
MEASURES = {"nDCG@10": "ndcg_cut_10", "R@100": "recall_100", "AP": "map"}


def synthetic(seed: int = 0) -> tuple[dict, dict]:
    "Qrels and a run as nested dicts; scores are exact in 32 bits, some judged documents are not returned."
    rng = np.random.default_rng(seed)
    run, qrels = {}, {}
    for n in range(QUERIES):
        docs = [f"doc{d}" for d in rng.choice(UNIVERSE, DOCUMENTS, replace=False)]
        scores = rng.normal(size=DOCUMENTS).astype(np.float32).astype(float).tolist()
        run[f"q{n}"] = dict(zip(docs, scores))
        judged = [docs[i] for i in rng.choice(DOCUMENTS, JUDGED, replace=False)] + [f"unseen{i}" for i in range(5)]
        qrels[f"q{n}"] = dict(zip(judged, rng.integers(0, 4, len(judged)).tolist()))
    return qrels, run


def best_of(function: Callable, times: int = 5) -> tuple[float, object]:
    "Shortest wall time of several calls, and the last result."
    best, result = float("inf"), None
    for _ in range(times):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def rows() -> list[dict]:
    "Rows of the bench table: what was timed, seconds, the reference's seconds, ratio, largest difference of any per-query value."
    import pytrec_eval

    from crumb_nb.metrics import evaluate
    from crumb_nb.records import Qrels, Run

    qrels, run = synthetic()
    theirs, reference = best_of(lambda: pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "recall.100", "map"}).evaluate(run))
    columns, labels = Run.from_dict(run), Qrels.from_dict(qrels)
    ours, scores = best_of(lambda: evaluate(columns, labels, MEASURES))
    reading, _ = best_of(lambda: (Run.from_dict(run), Qrels.from_dict(qrels)), 3)
    gap = float(max(abs(scores[m][q] - reference[q][name]) for m, name in MEASURES.items() for q in run))
    what = f"metrics against pytrec_eval: {QUERIES} queries × {DOCUMENTS:,} documents, {', '.join(MEASURES)}"
    return [
        {"row": what, "seconds": round(ours, 4), "reference": round(theirs, 4), "ratio": round(ours / theirs, 3), "largest difference": gap, "bar": "at most pytrec_eval's time, differences below 1e-9", "holds": bool(ours <= theirs and gap < 1e-9)},
        {"row": "the same with the run and labels first turned from dicts into columns", "seconds": round(ours + reading, 4), "reference": round(theirs, 4), "ratio": round((ours + reading) / theirs, 3), "largest difference": gap, "bar": "", "holds": True},
        _resampling(),
    ]


def _resampling() -> dict:
    "Ten thousand resamples over 500 questions: interval and randomisation test of one pair."
    import pandas as pd

    from crumb_nb.stats import bootstrap_ci, paired_randomization

    rng = np.random.default_rng(0)
    a, b = (pd.Series(rng.random(500), index=[f"q{i}" for i in range(500)]) for _ in range(2))
    seconds, _ = best_of(lambda: (bootstrap_ci(a), paired_randomization(a, b)), 3)
    return {"row": "bootstrap interval and paired randomisation, 10,000 resamples × 500 queries", "seconds": round(seconds, 4), "reference": 1.0, "ratio": round(seconds, 3), "largest difference": 0.0, "bar": "about a second", "holds": seconds <= 1.5}


if __name__ == "__main__":
    for row in rows():
        print(row)
