"""The embedded collections are what they say: schema, gold, counts, near-misses, originality, and passages that can be rebuilt."""

import json
import re
import shutil
from collections import Counter
from functools import cache

import pytest

from crumb_nb.chunkers.build_mini import build_task
from crumb_nb.chunkers.contextual import count_tokens
from crumb_nb.datasets.crumb import CRUMB_TASKS, load_crumb, mini_folder, read_query_rows
from crumb_nb.datasets.mini import MINI_NAMES, load_mini
from crumb_nb.provenance import package_path
from crumb_nb.records import read_jsonl

TASKS = sorted(CRUMB_TASKS)
FULL = [name for name in TASKS if CRUMB_TASKS[name].full_documents]
SINGLE = [name for name in TASKS if not CRUMB_TASKS[name].full_documents]
REWRITES = ("query_as_reasoning_steps", "query_to_answer_cot", "query_to_doc_cot")


def rows(task, name):
    return [row for _, row in read_jsonl(mini_folder() / CRUMB_TASKS[task].folder / name)]


def documents(task):
    return {r["document_id"]: r["document_content"] for r in rows(task, "full_document_corpus.jsonl" if CRUMB_TASKS[task].full_documents else "passage_corpus.jsonl")}


def queries(task, split):
    return read_query_rows(mini_folder() / CRUMB_TASKS[task].folder / split / "query_labels.jsonl")


# ---------------------------------------------------------------- CRUMB layout

@pytest.mark.parametrize("task", TASKS)
def test_rows_have_all_fields(task):
    info = CRUMB_TASKS[task]
    for split in ("eval", "val"):
        for row in rows(task, f"{split}/query_labels.jsonl"):
            assert set(row) == {"query_id", "query_content", "instruction", "passage_qrels", "passage_binary_qrels", "full_document_qrels", "use_max_p", "metadata"}
            assert row["use_max_p"] is info.max_p and isinstance(row["metadata"], str) and bool(row["passage_binary_qrels"]) == info.binary
            assert all(isinstance(item["label"], float) for name in ("passage_qrels", "full_document_qrels") for item in row[name])
    assert sum(row["instruction"] is None for row in rows(task, "eval/query_labels.jsonl")) == 1, "one null instruction"


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("split", ["eval", "val"])
def test_gold_resolves_and_labels_zero_occur(task, split):
    levels = ["passage", "full_document"] if task in FULL else ["passage"]
    for level in levels:
        made = load_crumb(task, split, level)
        assert not made.missing_gold() and all(made.qrels.relevant().values()), "every query has a relevant document that is there"
        assert (made.qrels.relevance == 0).any()
    if task in ("clinical_trial", "paper_retrieval"):
        assert len(set(made.qrels.relevance.tolist())) >= 3, "graded"


@pytest.mark.parametrize("task", TASKS)
def test_counts(task):
    docs = documents(task)
    assert len(docs) >= (24 if task in FULL else 40)
    assert len(queries(task, "eval")) >= 10 and len(queries(task, "val")) >= 8
    ids = [q.query_id for split in ("eval", "val") for q in queries(task, split)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("task", FULL)
def test_full_documents_are_long_headed_and_varied(task):
    docs = documents(task)
    words = {d: len(t.split()) for d, t in docs.items()}
    assert all(250 <= n <= 900 for n in words.values()), {d: n for d, n in words.items() if not 250 <= n <= 900}
    assert sum(n > 512 for n in count_tokens(docs.values(), special=True)) >= 8
    levels = {d: _heading_levels(t) for d, t in docs.items()}
    assert all(len(found) >= 2 for found in levels.values()), {d: v for d, v in levels.items() if len(v) < 2}
    text = docs.values()
    assert sum(bool(re.search(r"^\|.*\|$", t, re.M)) for t in text) >= 3, "tables"
    assert sum(bool(re.search(r"^(```|~~~)[^\n]*\n(?:(?!^(?:```|~~~)).*\n)*?#", t, re.M)) for t in text) >= 2, "fenced code with a #"
    assert sum(bool(re.search(r"^\S.*\n(===+|---+)$", t, re.M)) for t in text) >= 2, "setext headings"
    assert sum(t.startswith("---\n") for t in text) >= 2, "front matter"
    assert sum(bool(re.search(r"^([-*]|\d+\.) ", t, re.M)) for t in text) >= 3, "lists"


def _heading_levels(text):
    "Heading levels outside fences, ATX and setext."
    from crumb_nb.chunkers.handlers import read_outline  # the same parser the chunker uses
    from markdown_it import MarkdownIt

    body = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
    assert read_outline is not None
    return {token.tag for token in MarkdownIt().parse(body) if token.type == "heading_open"}


@pytest.mark.parametrize("task", SINGLE)
def test_short_documents(task):
    sizes = {d: max(len(t.split()), len(t.splitlines())) for d, t in documents(task).items()}
    small = {d: n for d, n in sizes.items() if not 30 <= n <= 260}
    assert not small, small


@pytest.mark.parametrize("task", TASKS)
def test_near_misses_fail_one_named_constraint(task):
    for split in ("eval", "val"):
        for query in queries(task, split):
            misses = json.loads(query.metadata)["near_misses"]
            labels = query.full_document if task in FULL else query.passage
            assert len(misses) >= 2, query.query_id
            for miss in misses:
                assert labels.get(miss["id"]) == 0.0, f"{query.query_id}: {miss['id']} is judged, and not relevant"
                assert miss["fails"].strip()


@pytest.mark.parametrize("task", ["legal_qa", "stack_exchange"])
def test_gold_spans_lie_in_relevant_documents(task):
    docs = documents(task)
    for split in ("eval", "val"):
        for query in queries(task, split):
            spans = json.loads(query.metadata)["spans"]
            assert {s["doc_id"] for s in spans} == {d for d, label in query.full_document.items() if label > 0}
            assert all(re.search(r"\w", docs[s["doc_id"]][s["start"] : s["end"]]) for s in spans)


def test_set_operators():
    for split in ("eval", "val"):
        found = Counter(json.loads(q.metadata)["operator"] for q in queries("set_operation_entity_retrieval", split))
        assert set(found) == {"AND", "OR", "NOT"} and min(found.values()) >= 3


def test_paper_binary_labels_are_grades_of_two_and_more():
    for split in ("eval", "val"):
        for query in queries("paper_retrieval", split):
            assert query.passage_binary == {d: float(label >= 2) for d, label in query.passage.items()}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("rewriting", REWRITES)
def test_rewrites_cover_every_query(task, rewriting):
    made = {row["id"]: row for row in rows(task, f"queries_gemma_3_27b_{rewriting}.jsonl")}
    asked = {q.query_id: q.text for split in ("eval", "val") for q in queries(task, split)}
    assert set(made) == set(asked)
    for query_id, row in made.items():
        assert set(row) == {"content", "id", "metadata", "original_item"} and row["content"].strip()
        assert {"full_generation", "prompt"} <= set(row["metadata"])


@pytest.mark.parametrize("task", FULL)
def test_passages_can_be_rebuilt(task, tmp_path):
    "The committed passages and passage labels are those that the build command makes from the documents."
    info = CRUMB_TASKS[task]
    shutil.copytree(mini_folder() / info.folder, tmp_path / info.folder)
    (tmp_path / info.folder / "passage_corpus.jsonl").unlink()
    build_task(info, tmp_path)
    for name in ("passage_corpus.jsonl", "eval/query_labels.jsonl", "val/query_labels.jsonl"):
        assert (tmp_path / info.folder / name).read_bytes() == (mini_folder() / info.folder / name).read_bytes(), f"{name}: run `make mini-data`"


@pytest.mark.parametrize("task", FULL)
def test_passages_fit_512_tokens(task):
    assert max(count_tokens(load_crumb(task, level="passage").corpus["text"], special=True)) <= 512


# ---------------------------------------------------------------- memory formats

def test_longmemeval_collection():
    questions = json.loads(package_path("data", "longmemeval", "longmemeval_mini.json").read_text(encoding="utf-8"))
    sessions = {i for q in questions for i in q["haystack_session_ids"]}
    types = Counter(q["question_type"] for q in questions)
    assert len(questions) >= 24 and len(sessions) >= 60 and len(types) == 6
    assert all(14 <= len(q["haystack_session_ids"]) <= 20 and q["haystack_dates"] == sorted(q["haystack_dates"]) for q in questions)
    assert sum(q["question_id"].endswith("_abs") for q in questions) == 2
    assert {len(q["answer_session_ids"]) for q in questions if not q["question_id"].endswith("_abs")} == {1, 2, 3}
    assert any(len(set(q["haystack_session_ids"])) < len(q["haystack_session_ids"]) for q in questions), "a repeated filler session"
    gold = {i for q in questions for i in q["answer_session_ids"]}
    assert any("answer" in i for i in sessions - gold), "a non-gold id that contains 'answer'"
    assert all(set(q["answer_session_ids"]) <= set(q["haystack_session_ids"]) for q in questions)
    official = load_mini("longmemeval")
    assert len(official.qrels.query_ids) == 25 and len(load_mini("longmemeval", questions="answerable", gold="answer_sessions").qrels.query_ids) == 27


def test_locomo_collection():
    "Every defect of the real file occurs: counts by the same rules as PROTOCOLS section 3."
    data = json.loads(package_path("data", "locomo", "locomo_mini.json").read_text(encoding="utf-8"))
    qa = [q for c in data for q in c["qa"]]
    strict = [q for q in qa if any(re.fullmatch(r"D\d+:\d+", e) for e in q["evidence"])]
    assert (len(data), len(qa), len(strict)) == (2, 100, 97) and Counter(q["category"] for q in qa) == {1: 18, 2: 24, 3: 10, 4: 33, 5: 15}
    assert sum(isinstance(q.get("answer"), int) for q in qa) == 2 and any(not q["evidence"] for q in qa)
    assert any(";" in e for q in qa for e in q["evidence"]) and any("D" == e for q in qa for e in q["evidence"])
    for conversation in data:
        sessions = [k for k in conversation["conversation"] if re.fullmatch(r"session_\d+", k)]
        assert len(sessions) >= 8 and all(len(conversation["conversation"][k]) >= 12 for k in sessions)
        assert conversation["observation"] and conversation["session_summary"]
        assert any("blip_caption" in turn for k in sessions for turn in conversation["conversation"][k])


# ---------------------------------------------------------------- long documents and the small ones

def test_long_documents():
    made = load_mini("documents")
    words = made.corpus["text"].str.split().str.len()
    assert len(made.corpus) >= 12 and words.between(2000, 5000).all(), words.to_dict()
    assert len(made.queries) >= 30 and not made.protocol.left_out
    assert any("\r\n" in t for t in made.corpus["text"])


def test_small_collections_load():
    beir, trec = load_mini("beir"), load_mini("trec")
    assert len(beir.corpus) >= 10 and len(beir.queries) >= 5 and (beir.qrels.relevance == 0).any()
    assert len(trec.corpus) >= 10 and len(trec.queries) >= 5
    names = [p.name for p in package_path("data", "sources").iterdir()]  # Python ends in .py.txt: it is data, not a module
    assert {"py", "java"} < {name.removesuffix(".txt").rsplit(".")[-1] for name in names} and len(names) >= 6
    for name in MINI_NAMES:
        assert load_mini(name).licence == "CC BY 4.0"
    with pytest.raises(ValueError, match="choose one of"):
        load_mini("trec9")


# ---------------------------------------------------------------- originality

@cache
def everything():
    texts = {f"{task}/{d}": t for task in TASKS for d, t in documents(task).items()}
    texts |= {f"documents/{d}": t for d, t in load_mini("documents").corpus["text"].items()}
    questions = json.loads(package_path("data", "longmemeval", "longmemeval_mini.json").read_text(encoding="utf-8"))
    for q in questions:
        for i, session in zip(q["haystack_session_ids"], q["haystack_sessions"]):
            texts[f"longmemeval/{i}"] = " ".join(turn["content"] for turn in session)
    return texts


def _phrase(gram):
    "Not mostly numbers and single letters, as in tables and code."
    return sum(len(w) > 1 and not w.isdigit() for w in gram) > 4


def test_no_eight_words_stand_in_two_documents():
    "No templates: a sequence of eight words belongs to one document."
    seen: dict[tuple[str, ...], str] = {}
    shared = []
    for name, text in everything().items():
        words = re.findall(r"\w+", text.lower())
        for n in range(len(words) - 7):
            gram = tuple(words[n : n + 8])
            if not _phrase(gram):
                continue
            owner = seen.setdefault(gram, name)
            if owner != name:
                shared.append((owner, name, " ".join(gram)))
    assert not shared, shared[:5]


@pytest.mark.real_data
def test_nothing_is_taken_from_the_real_data(shared_data):
    "No eight-word sequence of an embedded text occurs in the test data."
    grams = {tuple(words[n : n + 8]) for text in everything().values() for words in [re.findall(r"[a-z]+", text.lower())] for n in range(len(words) - 7) if _phrase(words[n : n + 8])}
    hits = []
    for path in sorted(shared_data.rglob("*")):
        if path.suffix in (".json", ".jsonl", ".md") and path.name != "README.md":
            words = re.findall(r"[a-z]+", path.read_text(encoding="utf-8").lower())
            hits += [(path.name, " ".join(words[n : n + 8])) for n in range(len(words) - 7) if tuple(words[n : n + 8]) in grams]
    assert not hits, hits[:5]
