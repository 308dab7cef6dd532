"""How long a LongMemEval file of S's size takes to load, and how much memory: a synthetic file of 277 MB, each load in a process of its own."""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

QUESTIONS, SESSIONS, TURNS, USER_WORDS, ASSISTANT_WORDS = 500, 48, 10, 39, 299
LOAD = """
import json, resource, sys, time
from crumb_nb.datasets.longmemeval import load_longmemeval
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
start = time.perf_counter()
collection = load_longmemeval(sys.argv[1], **json.loads(sys.argv[2]))
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
text = sum(map(len, collection.corpus["text"])) / 1e6
print(json.dumps({"seconds": round(seconds, 2), "peak_mb": round(peak - base), "text_mb": round(text, 1), "documents": len(collection.corpus), "questions": len(collection.queries)}))
"""


def write_synthetic(path: Path, seed: int = 0, questions: int = QUESTIONS) -> int:
    "A file in LongMemEval's format with random words; its size in bytes."
    rng = random.Random(seed)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(5000)]
    sentences = [" ".join(rng.choices(words, k=13)) + ". " for _ in range(20000)]
    turn = lambda role, n, evidence: {"role": role, "content": "".join(rng.choices(sentences, k=n // 13)), **({"has_answer": evidence} if evidence is not None else {})}
    with open(path, "w", encoding="utf-8") as file:
        for q in range(questions):
            gold = rng.randrange(SESSIONS)
            sessions = [[turn(("user", "assistant")[n % 2], (USER_WORDS, ASSISTANT_WORDS)[n % 2], n == 0 if s == gold else None) for n in range(TURNS)] for s in range(SESSIONS)]
            row = {
                "question_id": f"q{q}", "question_type": "multi-session", "question": sentences[q], "answer": words[q], "question_date": "2023/05/30 (Tue) 23:40",
                "answer_session_ids": [f"answer_{q}"], "haystack_dates": [f"2023/05/{1 + s % 28:02} (Mon) 10:00" for s in range(SESSIONS)],
                "haystack_session_ids": [f"answer_{q}" if s == gold else f"s{q}_{s}" for s in range(SESSIONS)], "haystack_sessions": sessions,
            }  # fmt: skip
            file.write(("[" if q == 0 else ", ") + json.dumps(row))
        file.write("]")
    return path.stat().st_size


def measure(path: Path, **options) -> dict:
    "Seconds and peak memory beyond the imports for one load, in a fresh process."
    done = subprocess.run([sys.executable, "-c", LOAD, str(path), json.dumps(options)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def rows(questions: int = QUESTIONS) -> list[dict]:
    "One row per way to load the file: what, file_mb, seconds, peak_mb (beyond imports), text_mb (what the caller keeps), documents, questions."
    out = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "longmemeval_synthetic.json"
        size = write_synthetic(path, questions=questions) / 1e6
        for what, options in (("sessions, user_only", {}), ("turns, user_only", {"granularity": "turn"}), ("sessions, all turns", {"corpus": "all"})):
            out.append({"what": f"load_longmemeval: {what}", "file_mb": round(size, 1), **measure(path, **options)})
    return out


if __name__ == "__main__":
    for row in rows():
        print(row)
