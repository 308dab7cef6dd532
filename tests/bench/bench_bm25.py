"""BM25 search against raw bm25s and rank_bm25 on the same corpus in the same run, and how it grows over three decades of corpus size."""

import json
import subprocess
import sys
import time
from statistics import median

import numpy as np
from drawing import growth_panels

DOCUMENTS, LENGTH, QUERY_WORDS, QUERIES, ASKED = 20_000, 200, 8, 200, 100
GROWTH = (1_000, 10_000, 100_000, 1_000_000)


def words_at_random(count: int, length: int, seed: int) -> list[list[str]]:
    "`count` texts of `length` words, frequencies falling as in language (Zipf), 50,000 words."
    rng = np.random.default_rng(seed)
    bounds = np.cumsum(1.0 / np.arange(1, 50_001))
    words = np.array([f"w{v}" for v in range(50_000)], dtype=object)
    blocks = (min(10_000, count - done) for done in range(0, count, 10_000))
    return [row for size in blocks for row in words[np.searchsorted(bounds, rng.random((size, length)) * bounds[-1])].tolist()]


def queries_at_random(count: int, seed: int) -> list[list[str]]:
    "Queries of eight words drawn evenly from the 5,000 most frequent, the first 50 left out."
    drawn = np.random.default_rng(seed).integers(50, 5_000, (count, QUERY_WORDS))
    return [[f"w{v}" for v in row] for row in drawn]


def seconds_of(action) -> float:
    "Seconds of one call."
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


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
    for _ in range(7):  # in turn, so that a busy moment of the machine falls on both
        ours.append(seconds_of(lambda: index.search(frame, ASKED)))
        theirs.append(seconds_of(lambda: raw.retrieve(asking, k=ASKED, show_progress=False)))
    okapi = median(seconds_of(lambda: [np.argsort(-reference.get_scores(q))[:ASKED] for q in asking[:5]]) for _ in range(3)) / 5
    per_query = {"crumb_nb": median(ours) / QUERIES, "bm25s": median(theirs) / QUERIES, "rank_bm25": okapi}
    to_bm25s, to_rank_bm25 = per_query["crumb_nb"] / per_query["bm25s"], per_query["rank_bm25"] / per_query["crumb_nb"]
    case = f"{DOCUMENTS:,} documents of {LENGTH} words, {QUERY_WORDS}-word queries, {ASKED} asked"
    rows = [{"what": f"bm25 search: {name}", "case": case, "ms_per_query": round(1000 * value, 4)} for name, value in per_query.items()]
    rows.append({"what": "bm25: ours / bm25s, medians", "ratio": round(to_bm25s, 3), "bar": "at most 1.3", "holds": to_bm25s <= 1.3})
    rows.append({"what": "bm25: rank_bm25 / ours, medians", "ratio": round(to_rank_bm25, 1), "bar": "at least 75", "holds": to_rank_bm25 >= 75})
    return rows


GROW = """
import json, sys, threading, time
import numpy as np
sys.path.insert(0, sys.argv[2])
from bench_bm25 import queries_at_random, words_at_random
from crumb_nb.records import corpus_frame, queries_frame
from crumb_nb.retrievers.bm25 import BM25
size = int(sys.argv[1])
texts = [" ".join(d) for block in range(0, size, 10_000) for d in words_at_random(min(10_000, size), 200, block)]
corpus = corpus_frame([f"d{n}" for n in range(size)], texts)


def own():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return float("nan")


def watch():
    while running[0]:
        peak.append(own())
        time.sleep(0.005)


BM25().index(corpus.iloc[:10])  # libraries are loaded before memory is watched
base, peak, running = own(), [0.0], [True]
threading.Thread(target=watch, daemon=True).start()
start = time.perf_counter()
index = BM25().index(corpus)
built = time.perf_counter() - start
running[0] = False
queries = queries_frame([f"q{n}" for n in range(200)], [" ".join(q) for q in queries_at_random(200, 1)])
index.search(queries.iloc[:5], 100)
seconds = []
for n in range(len(queries)):
    start = time.perf_counter()
    index.search(queries.iloc[[n]], 100)
    seconds.append(time.perf_counter() - start)
p50, p95 = np.percentile(seconds, [50, 95]) * 1000
print(json.dumps({"index_s": round(built, 2), "peak_mb": round(max(peak) - base, 1), "index_mb": round(index.nbytes / 1e6, 1), "p50_ms": round(p50, 3), "p95_ms": round(p95, 3)}))
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


def figure(rows: list[dict]):
    "Growth with the size of the corpus."
    measured = [row for row in rows if "documents" in row]
    return growth_panels(measured, {"index, seconds": ["index_s"], "peak beyond the corpus, MB": ["peak_mb"], "index, MB": ["index_mb"], "one query, ms": ["p50_ms", "p95_ms"]})
