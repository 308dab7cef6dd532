"""Exact dense search against faiss in the same run, a million vectors from disk, a warm cache, and growth over three decades of corpus size."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from drawing import growth_panels

VECTORS, DIM, QUERIES, ASKED = 200_000, 384, 200, 1_000
GROWTH = (1_000, 10_000, 100_000, 1_000_000)


def against_faiss(vectors: int = VECTORS) -> list[dict]:
    "Seconds for a batch of queries by both, in turn, and their ratio; ours includes float64 rescoring and the making of a run."
    try:
        import faiss
    except ImportError:
        return [{"what": "dense: ours / faiss IndexFlatIP", "note": "faiss is not installed (extra `bench`)"}]
    from crumb_nb.retrievers.dense import DenseIndex
    from crumb_nb.retrievers.embeddings import unit

    rng = np.random.default_rng(0)
    index = DenseIndex.from_vectors([f"d{n}" for n in range(vectors)], rng.standard_normal((vectors, DIM), dtype=np.float32))
    asking, names = rng.standard_normal((QUERIES, DIM), dtype=np.float32), [f"q{n}" for n in range(QUERIES)]
    flat = faiss.IndexFlatIP(DIM)
    flat.add(index.vectors)
    ours, theirs = [], []
    for _ in range(5):
        start = time.perf_counter()
        run = index.search_vectors(names, asking, ASKED)
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        _, found = flat.search(unit(asking), ASKED)
        theirs.append(time.perf_counter() - start)
    same = np.mean([len({f"d{n}" for n in row} & set(run.to_dict()[q])) / ASKED for q, row in zip(names[:5], found)])
    case = f"{vectors:,} × {DIM}, {QUERIES} queries, {ASKED:,} asked"
    rows = [{"what": f"dense search: {name}", "case": case, "seconds": round(median(value), 3)} for name, value in (("crumb_nb", ours), ("faiss IndexFlatIP", theirs))]
    share = median(ours) / median(theirs)
    ratio = {"what": "dense: ours / faiss IndexFlatIP, medians", "ratio": round(share, 3), "same_documents": round(float(same), 4), "bar": "at most 1", "holds": share <= 1}
    return [*rows, ratio]


WRITE = """
import sys
import numpy as np
size, dim = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(0)
out = np.lib.format.open_memmap(sys.argv[3], mode="w+", dtype=np.float32, shape=(size, dim))
for a in range(0, size, 50_000):
    part = rng.standard_normal((min(50_000, size - a), dim), dtype=np.float32)
    out[a : a + len(part)] = part / np.linalg.norm(part, axis=1, keepdims=True)
out.flush()
"""

SEARCH = """
import json, sys, time
import numpy as np
from crumb_nb.retrievers.dense import Dense, DenseIndex

def own():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return float("nan")

import threading
import torch
vectors = np.load(sys.argv[1], mmap_mode="c")
size, dim = vectors.shape
base = own()
ids = np.array([f"d{n}" for n in range(size)], dtype=object)
index = DenseIndex(Dense(model="vectors"), ids, vectors, np.arange(size + 1), {})
asking = np.random.default_rng(1).standard_normal((200, dim), dtype=np.float32)
peak, running = [base], [True]
def watch():
    while running[0]:
        peak.append(own())
        time.sleep(0.005)
threading.Thread(target=watch, daemon=True).start()
start = time.perf_counter()
index.search_vectors([f"q{n}" for n in range(200)], asking, 1000)
batch = time.perf_counter() - start
seconds = []
for n in range(20):
    start = time.perf_counter()
    index.search_vectors(["q"], asking[[n]], 100)
    seconds.append(time.perf_counter() - start)
running[0] = False
p50, p95 = np.percentile(seconds, [50, 95]) * 1000
print(json.dumps({"batch_of_200_s": round(batch, 2), "memory_above_mapping_mb": round(max(peak) - base, 1), "index_mb": round(vectors.nbytes / 1e6, 1), "p50_ms": round(p50, 2), "p95_ms": round(p95, 2)}))
"""


def growth(sizes=GROWTH) -> list[dict]:
    "Memory-mapped vectors from disk: time of a batch, latency of single queries, private memory above the mapping; each size in a process of its own."
    out = []
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            path = str(Path(folder) / "vectors.npy")
            subprocess.run([sys.executable, "-c", WRITE, str(size), str(DIM), path], check=True)
            done = subprocess.run([sys.executable, "-c", SEARCH, path], capture_output=True, text=True, check=True)
            row = {"what": "dense growth, from disk", "documents": size, **json.loads(done.stdout)}
            out.append(row | {"bar": "within 1,024 MB above the mapping", "holds": row["memory_above_mapping_mb"] <= 1024})
    return out


def warm_cache(texts: int = 200) -> list[dict]:
    "Encoding with an empty and with a filled cache: texts that went through the model, seconds."
    from crumb_nb.retrievers.embeddings import EmbeddingCache, embed, load_encoder

    encoder, out = load_encoder(), []
    rng = np.random.default_rng(0)
    passages = [" ".join(f"word{v}" for v in rng.integers(0, 5000, 60)) for _ in range(texts)]
    encoder.encode(["warm up"])
    with tempfile.TemporaryDirectory() as folder:
        for state in ("empty", "filled"):
            start = time.perf_counter()
            made = embed(passages, encoder, EmbeddingCache(folder))
            seconds = time.perf_counter() - start
            rate = round(float(np.minimum(made.tokens, encoder.limit).sum()) / seconds) if made.encoded else None
            row = {"what": f"embedding cache: {state}", "case": f"{texts} texts", "encoded": made.encoded, "seconds": round(seconds, 3), "tokens_per_s": rate}
            out.append(row | ({"bar": "a warm run encodes nothing", "holds": made.encoded == 0} if state == "filled" else {"bar": "", "holds": True}))
    return out


def rows(sizes=GROWTH) -> list[dict]:
    "The ratio against faiss, the cache, then one row per corpus size."
    return against_faiss() + warm_cache() + growth(sizes)


def figure(rows: list[dict]):
    "Growth with the size of the corpus."
    measured = [row for row in rows if "documents" in row]
    return growth_panels(measured, {"200 queries at once, seconds": ["batch_of_200_s"], "memory above the mapping, MB": ["memory_above_mapping_mb"], "vectors, MB": ["index_mb"], "one query, ms": ["p50_ms", "p95_ms"]})
