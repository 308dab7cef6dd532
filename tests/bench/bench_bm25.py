"""BM25 search against raw bm25s and rank_bm25 on the same corpus in the same run, and how it grows over three decades of corpus size."""

import json
import subprocess
import sys
import time

import numpy as np

DOCUMENTS, LENGTH, QUERY_WORDS, QUERIES, ASKED = 20_000, 200, 8, 200, 100
GROWTH = (1_000, 10_000, 100_000)


def words_at_random(count: int, length: int, seed: int) -> list[list[str]]:
    "`count` texts of `length` words, frequencies falling as in language (Zipf), 50,000 words."
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, 50_001)
    drawn = rng.choice(50_000, (count, length), p=share / share.sum())
    return [[f"w{v}" for v in row] for row in drawn]


def queries_at_random(count: int, seed: int) -> list[list[str]]:
    "Queries of eight words drawn evenly from the 5,000 most frequent, the first 50 left out."
    drawn = np.random.default_rng(seed).integers(50, 5_000, (count, QUERY_WORDS))
    return [[f"w{v}" for v in row] for row in drawn]


def best_of(action, times: int = 5) -> float:
    "Seconds of the fastest of several calls."
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def against_libraries() -> list[dict]:
    "Milliseconds per query of the three, and the two ratios; each library is given tokens, ours text, which it tokenises in the time measured."
    import bm25s
    from rank_bm25 import BM25Okapi

    from crumb_nb.records import corpus_frame, queries_frame
    from crumb_nb.retrievers.bm25 import BM25

    docs, asking = words_at_random(DOCUMENTS, LENGTH, 0), queries_at_random(QUERIES, 1)
    index = BM25().index(corpus_frame([f"d{n}" for n in range(DOCUMENTS)], [" ".join(d) for d in docs]))
    frame = queries_frame([f"q{n}" for n in range(QUERIES)], [" ".join(q) for q in asking])
    raw, reference = bm25s.BM25(), BM25Okapi(docs)
    raw.index(docs, show_progress=False)
    index.search(frame, ASKED)
    ours, theirs = [], []
    for _ in range(5):  # in turn, so that a busy moment of the machine falls on both
        ours.append(best_of(lambda: index.search(frame, ASKED), 1))
        theirs.append(best_of(lambda: raw.retrieve(asking, k=ASKED, show_progress=False), 1))
    okapi = best_of(lambda: [np.argsort(-reference.get_scores(q))[:ASKED] for q in asking[:5]], 2) / 5
    per_query = {"crumb_nb": min(ours) / QUERIES, "bm25s": min(theirs) / QUERIES, "rank_bm25": okapi}
    case = f"{DOCUMENTS:,} documents of {LENGTH} words, {QUERY_WORDS}-word queries, {ASKED} asked"
    rows = [{"what": f"bm25 search: {name}", "case": case, "ms_per_query": round(1000 * value, 4)} for name, value in per_query.items()]
    rows.append({"what": "bm25: ours / bm25s", "case": case, "ratio": round(per_query["crumb_nb"] / per_query["bm25s"], 3), "at_most": 1.3})
    rows.append({"what": "bm25: rank_bm25 / ours", "case": case, "ratio": round(per_query["rank_bm25"] / per_query["crumb_nb"], 1), "at_least": 75})
    return rows


GROW = """
import json, resource, sys, time
import numpy as np
sys.path.insert(0, sys.argv[2])
from bench_bm25 import queries_at_random, words_at_random
from crumb_nb.records import corpus_frame, queries_frame
from crumb_nb.retrievers.bm25 import BM25
size = int(sys.argv[1])
corpus = corpus_frame([f"d{n}" for n in range(size)], [" ".join(d) for d in words_at_random(size, 200, 0)])
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
index = BM25().index(corpus)
built = time.perf_counter() - start
queries = queries_frame([f"q{n}" for n in range(200)], [" ".join(q) for q in queries_at_random(200, 1)])
index.search(queries.iloc[:5], 100)
seconds = []
for n in range(len(queries)):
    start = time.perf_counter()
    index.search(queries.iloc[[n]], 100)
    seconds.append(time.perf_counter() - start)
p50, p95 = np.percentile(seconds, [50, 95]) * 1000
peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 1024
print(json.dumps({"index_s": round(built, 2), "peak_mb": round(peak, 1), "index_mb": round(index.nbytes / 1e6, 1), "p50_ms": round(p50, 3), "p95_ms": round(p95, 3)}))
"""


def growth(sizes=GROWTH) -> list[dict]:
    "Index time, peak memory beyond the corpus, index size and latency of single queries, each size in a process of its own."
    from pathlib import Path

    out = []
    for size in sizes:
        done = subprocess.run([sys.executable, "-c", GROW, str(size), str(Path(__file__).parent)], capture_output=True, text=True, check=True)
        out.append({"what": "bm25 growth", "documents": size, **json.loads(done.stdout)})
    return out


def rows(sizes=GROWTH) -> list[dict]:
    "Ratios against the libraries, then one row per corpus size."
    return against_libraries() + growth(sizes)


if __name__ == "__main__":
    for row in rows():
        print(row)
