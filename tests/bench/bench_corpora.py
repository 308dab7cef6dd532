"""A corpus of a million passages of 1 KB: conversion to parquet once, then reading by column; seconds and peak memory."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PASSAGES, CHARACTERS = 1_000_000, 1_000

CHILD = """
import json, resource, sys, time
from crumb_nb.datasets.corpora import convert_corpus, load_corpus, read_parts
import pandas, pyarrow.parquet
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
if sys.argv[2] == "convert":
    convert_corpus(sys.argv[1])
    kept = 0
else:
    frame = read_parts(convert_corpus(sys.argv[1]), columns=sys.argv[2].split(","))
    kept = sum(map(sys.getsizeof, frame["text"])) + sum(map(sys.getsizeof, frame.index)) + sum(map(sys.getsizeof, frame["parent_id"])) + 8 * 4 * len(frame)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": round(seconds, 1), "peak_mb": (peak - before) // 1024, "kept_mb": kept // 2**20}))
"""


def write(path: Path, passages: int) -> None:
    "Passages in CRUMB's layout with four passages per document; texts differ from each other, sizes are equal."
    filler = "a passage of plain words that stand for text and compress about as text does "
    body = (filler * (CHARACTERS // len(filler) + 1))[: CHARACTERS - 20]
    with open(path, "w", encoding="utf-8") as file:
        for n in range(passages):
            file.write(json.dumps({"document_id": f"doc{n // 4}:{n % 4}", "document_content": f"{n * 7919 % 1_000_003:020d}{body}", "parent_id": f"doc{n // 4}", "metadata": "{}"}) + "\n")


def rows(passages: int = PASSAGES) -> list[dict]:
    "Rows of the bench table: conversion, reading ids and parents, reading texts; peak beyond imports, and beyond what the caller keeps."
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "passage_corpus.jsonl"
        write(path, passages)
        size = path.stat().st_size // 2**20
        out = []
        for what, argument in (("converted to parquet", "convert"), ("parents read", "parent_id"), ("texts and parents read", "text,parent_id")):
            done = subprocess.run([sys.executable, "-c", CHILD, str(path), argument], capture_output=True, text=True, check=True, env={**os.environ, "CRUMB_NB_CACHE": folder})
            facts = json.loads(done.stdout)
            beyond = facts["peak_mb"] - facts["kept_mb"]
            out.append({"row": f"corpus of {passages:,} passages ({size:,} MB): {what}", "seconds": facts["seconds"], "peak MB": facts["peak_mb"], "kept MB": facts["kept_mb"], "beyond kept MB": beyond, "bar": "under 1,024 MB beyond what the caller keeps", "holds": beyond < 1024})
        return out
