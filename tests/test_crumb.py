"""CRUMB's layout: labels, levels, MaxP, errors; streaming corpora that survive an interruption."""

import json

import pytest

from crumb_nb.datasets.corpora import _SCHEMA, convert_corpus, load_corpus, read_parts
from crumb_nb.datasets.crumb import CRUMB_TASKS, crumb_task, load_crumb, parse_query_row, read_query_rows, task_of_run, with_instruction
from crumb_nb.datasets.profiles import counting_note
from crumb_nb.records import DataError, write_jsonl

ROW = {"query_id": "7", "query_content": "x", "instruction": None, "passage_qrels": [{"id": "p:1", "label": 1.0}], "passage_binary_qrels": [], "full_document_qrels": [], "use_max_p": False, "metadata": '{"k": 1}'}
DOC = {"document_id": "p:1", "document_content": "t", "parent_id": None, "metadata": "{}"}

# documents, eval queries, val queries, eval labels, val labels of the stand-in folders, as their README counts them
STANDINS = {
    "legal_qa": (95, 300, 147, 300, 147), "clinical_trial": (1384, 18, 3, 198, 3), "tip_of_the_tongue": (2679, 198, 35, 198, 35),
    "set_operation_entity_retrieval": (46, 212, 38, 424, 76), "stack_exchange": (749, 300, 112, 300, 112), "code_retrieval": (664, 300, 100, 300, 100),
    "paper_retrieval": (4174, 42, 8, 5319, 925), "theorem_retrieval": (354, 300, 112, 300, 112),
}


def folder(tmp_path, rows, corpus, task="scientific_paper", name="passage_corpus.jsonl", split="eval"):
    write_jsonl(tmp_path / task / name, corpus)
    write_jsonl(tmp_path / task / split / "query_labels.jsonl", rows)
    return tmp_path


@pytest.mark.real_data
@pytest.mark.parametrize("task", CRUMB_TASKS)
def test_stand_in_folders_have_the_counts_of_their_readme(shared_data, task):
    documents, eval_queries, val_queries, eval_labels, val_labels = STANDINS[task]
    for split, queries, labels in (("eval", eval_queries, eval_labels), ("val", val_queries, val_labels)):
        made = load_crumb(task, split, "full_document", source=shared_data / "crumb_standins", notes=("stand-in, not CRUMB",))
        assert (len(made.corpus), len(made.queries), len(made.qrels)) == (documents, queries, labels)
        assert not made.missing_gold() and made.notes[0] == "stand-in, not CRUMB"
        assert (made.binary_qrels is not None) == (task == "paper_retrieval")


def test_row_of_the_known_case(tmp_path, cases):
    "Case CR01: ids stay strings, a null instruction is empty, metadata is parsed from its string, the folder is scientific_paper."
    case = cases["CR01"]["input"]
    made = load_crumb("paper_retrieval", source=folder(tmp_path, [case["row"]], case["corpus"]))
    assert made.qrels.to_dict() == {"7": {"p:1": 1.0}} and made.queries.at["7", "instruction"] == ""
    assert made.binary_qrels is None  # empty list: judged on passage_qrels with label > 0
    assert json.loads(made.queries.at["7", "metadata"]) == {"k": 1}


def test_binary_labels_fall_back_row_by_row(tmp_path):
    rows = [{**ROW, "query_id": "a", "passage_qrels": [{"id": "p:1", "label": 3.0}], "passage_binary_qrels": [{"id": "p:1", "label": 0.0}]}, {**ROW, "query_id": "b", "passage_qrels": [{"id": "p:1", "label": 2.0}]}]
    made = load_crumb("paper_retrieval", source=folder(tmp_path, rows, [DOC]))
    assert made.binary_qrels.to_dict() == {"a": {"p:1": 0.0}, "b": {"p:1": 1.0}}
    assert made.qrels.to_dict()["a"] == {"p:1": 3.0} and "R" in made.protocol.binary_measures


def test_max_p_counts_documents_by_parent_not_by_id(tmp_path):
    "The passage id says d9, the parent field says d1: the field decides."
    corpus = [{**DOC, "document_id": "d9:0", "parent_id": "d1"}, {**DOC, "document_id": "d9:1", "parent_id": "d1"}]
    rows = [{**ROW, "full_document_qrels": [{"id": "d1", "label": 2.0}], "use_max_p": True, "metadata": '{"operator": "NOT"}'}]
    base = folder(tmp_path, rows, corpus, task="set_operation_entity_retrieval")
    made = load_crumb("set_operation_entity_retrieval", source=base)
    assert made.protocol.aggregate == "max" and set(made.parents().values()) == {"d1"} and made.qrels.to_dict() == {"7": {"d1": 2.0}}
    assert made.queries.at["7", "group"] == "NOT"
    plain = load_crumb("set_operation_entity_retrieval", source=base, max_p=False)
    assert plain.protocol.aggregate is None and plain.qrels.to_dict() == {"7": {"p:1": 1.0}} and plain.missing_gold() == {"7": ["p:1"]}
    assert counting_note([made, plain], {made.name: "SOER"}).split("; ") == ["documents are counted by their best passage (MaxP) in SOER", "the passages themselves are counted in SOER"]


def test_full_documents_of_a_single_collection_are_its_passages(tmp_path):
    made = load_crumb("paper_retrieval", level="full_document", source=folder(tmp_path, [ROW], [DOC]))
    assert list(made.corpus.index) == ["p:1"] and "single collection" in made.notes[0]


@pytest.mark.parametrize("change, words", [
    ({"query_id": 7}, ["query_id", "int"]),
    ({"query_content": None}, ["query_content", "NoneType"]),
    ({"instruction": 3}, ["instruction", "int"]),
    ({"metadata": "{"}, ["metadata", "JSON"]),
    ({"metadata": "[1]"}, ["metadata", "JSON"]),
    ({"passage_qrels": [{"id": "p:1", "label": "1"}]}, ["label", "str"]),
    ({"passage_qrels": [{"id": 1, "label": 1}]}, ["id", "int"]),
    ({"passage_qrels": [{"label": 1}]}, ["id", "missing"]),
    ({"passage_qrels": ["p:1"]}, ["passage_qrels", "object"]),
    ({"passage_qrels": {"p:1": 1}}, ["passage_qrels", "dict"]),
    ({"full_document_qrels": [{"id": "p", "label": 1}, {"id": "p", "label": 0}]}, ["two labels", "'p'"]),
])
def test_broken_query_rows_name_file_line_and_field(tmp_path, change, words):
    base = folder(tmp_path, [{**ROW, **change}], [DOC])
    with pytest.raises(DataError) as caught:
        load_crumb("paper_retrieval", source=base)
    assert all(word in str(caught.value) for word in ["query_labels.jsonl:1", *words])


def test_equal_doubled_labels_are_one_and_metadata_may_be_an_object(tmp_path):
    query = parse_query_row({**ROW, "passage_qrels": [{"id": "p", "label": 1}, {"id": "p", "label": 1.0}], "metadata": {"b": 1, "a": "é"}})
    assert query.passage == {"p": 1.0} and query.metadata == '{"a": "é", "b": 1}'
    assert parse_query_row({**ROW, "metadata": None}).metadata == "{}"


def test_missing_and_doubled_things_are_named(tmp_path):
    with pytest.raises(ValueError, match="belongs to paper_retrieval"):
        crumb_task("scientific_paper")
    with pytest.raises(ValueError, match="split"):
        load_crumb("legal_qa", "test")
    with pytest.raises(ValueError, match="level"):
        load_crumb("legal_qa", level="chunk")
    with pytest.raises(DataError, match="no folder 'legal_qa'"):
        load_crumb("legal_qa", source=tmp_path)
    base = folder(tmp_path, [ROW, ROW], [DOC])
    with pytest.raises(DataError, match=r"query_labels.jsonl:2: id '7'.*twice"):
        load_crumb("paper_retrieval", source=base)
    write_jsonl(base / "scientific_paper" / "eval" / "query_labels.jsonl", [])
    with pytest.raises(DataError, match="no query"):
        read_query_rows(base / "scientific_paper" / "eval" / "query_labels.jsonl")
    full = folder(tmp_path, [ROW], [DOC], task="legal_qa", name="full_document_corpus.jsonl")
    with pytest.raises(DataError, match="full documents but no passages"):
        load_crumb("legal_qa", source=full)
    (full / "legal_qa" / "full_document_corpus.jsonl").unlink()
    with pytest.raises(DataError, match="corpus is missing"):
        load_crumb("legal_qa", source=full)


def test_task_of_a_run():
    assert task_of_run("paper_retrieval_bm25").name == "paper_retrieval" and task_of_run("x", "legal_qa").name == "legal_qa"
    with pytest.raises(ValueError, match="starts with no task"):
        task_of_run("bm25")


def test_instruction_template():
    assert with_instruction("a {query} b", "do {instruction}") == "Instruct: do {instruction}\nQuery: a {query} b"
    with pytest.raises(ValueError, match="must hold"):
        with_instruction("a", "b", "{query}")


# ---------------------------------------------------------------- corpora

def corpus_file(path, n):
    write_jsonl(path, ({"document_id": f"d{i}:0", "document_content": f"text {i} \u2028 文", "parent_id": f"d{i}" if i % 2 else None, "metadata": json.dumps({"i": i})} for i in range(n)))
    return path


def test_parquet_gives_the_same_corpus(tmp_path, cache_dir):
    path = corpus_file(tmp_path / "c.jsonl", 25)
    direct, converted = load_corpus(path), load_corpus(path, large=1)
    assert direct.equals(converted)
    slim = read_parts(convert_corpus(path), columns=["text"])
    assert slim["text"].equals(direct["text"]) and set(slim["metadata"]) == {"{}"}


def test_an_interrupted_conversion_goes_on(tmp_path, monkeypatch):
    path = corpus_file(tmp_path / "c.jsonl", 25)
    from crumb_nb.datasets import corpora

    seen = []

    def stops_at(limit):
        def crumb_row(row, p, line):
            seen.append(line)
            if line == limit:
                raise KeyboardInterrupt
            return corpora.crumb_row(row, p, line)
        return crumb_row

    with pytest.raises(KeyboardInterrupt):
        convert_corpus(path, stops_at(18), folder=tmp_path / "k", part_rows=5)
    with pytest.raises(DataError, match="no finished conversion"):
        read_parts(next((tmp_path / "k").iterdir()))
    seen.clear()
    target = convert_corpus(path, stops_at(None), folder=tmp_path / "k", part_rows=5)
    assert seen[0] == 16, "lines 1 to 15 were safe in three parts"
    assert read_parts(target).equals(load_corpus(path)) and len(list(target.glob("*.part*"))) == 0
    seen.clear()
    convert_corpus(path, stops_at(None), folder=tmp_path / "k", part_rows=5)
    assert not seen, "a finished conversion is not read again"


def test_a_damaged_conversion_is_refused(tmp_path):
    target = convert_corpus(corpus_file(tmp_path / "c.jsonl", 25), folder=tmp_path / "k", part_rows=10)
    part = target / "part-00001.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[:-20])
    with pytest.raises(DataError, match="damaged"):
        read_parts(target)
    part.unlink()
    with pytest.raises(DataError, match="2 parts found, 3 written"):
        read_parts(target)
    assert _SCHEMA.names == ["doc_id", "text", "parent_id", "metadata"]


@pytest.mark.parametrize("text, words", [
    (b"", ["empty"]),
    (b'{"document_id": "a", "document_content": "x"}\n{"document_id": "a", "document_content": "y"}\n', ["'a'", "twice"]),
    (b'{"document_id": "a"}\n', [":1", "document_content", "missing"]),
    (b'{"document_id": "a", "document_content": "x", "parent_id": 3}\n', [":1", "parent_id"]),
    (b'{"document_id": "a", "document_content": "x", "metadata": 3}\n', [":1", "metadata"]),
    (b'{"document_id": "a", "docu', [":1", "truncated"]),
])
def test_broken_corpora(tmp_path, text, words):
    (tmp_path / "c.jsonl").write_bytes(text)
    with pytest.raises(DataError) as caught:
        load_corpus(tmp_path / "c.jsonl")
    assert all(word in str(caught.value) for word in ["c.jsonl", *words])


def test_bom_and_crlf_are_tolerated(tmp_path):
    (tmp_path / "c.jsonl").write_bytes(b'\xef\xbb\xbf{"document_id": "a", "document_content": "x\\r\\ny"}\r\n')
    assert load_corpus(tmp_path / "c.jsonl").at["a", "text"] == "x\r\ny"
    with pytest.raises(DataError, match="cannot be read"):
        load_corpus(tmp_path / "none.jsonl")


# ---------------------------------------------------------------- the hub

HUB_SCRIPT = """
import sys
from crumb_nb.datasets import crumb
crumb.CRUMB_REPOSITORY = sys.argv[1]
made = crumb.load_crumb(sys.argv[2], source="hub", level="passage")
print(made.qrels.to_dict(), list(made.corpus.index), made.licence)
"""


def hub(repository, task, cache):
    "Load a task through `datasets` in a process without network."
    import os
    import subprocess
    import sys

    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(cache / "hf"), "CRUMB_NB_CACHE": str(cache)}
    return subprocess.run([sys.executable, "-c", HUB_SCRIPT, str(repository), task], capture_output=True, text=True, env=environment)


def test_the_hub_path_reads_a_repository_through_datasets(tmp_path):
    "A folder with the hub's configurations stands for the repository: the same library reads it, offline."
    pytest.importorskip("datasets", reason="the extra hub is not installed")
    folder(tmp_path / "repo", [{**ROW, "full_document_qrels": [{"id": "d1", "label": 2.0}], "passage_qrels": [{"id": "p:1", "label": 2.0}]}], [{**DOC, "parent_id": "d1"}], task="clinical_trial")
    base = tmp_path / "repo" / "clinical_trial"
    (base / "val").mkdir()
    (base / "val" / "query_labels.jsonl").write_bytes((base / "eval" / "query_labels.jsonl").read_bytes())
    write_jsonl(base / "full_document_corpus.jsonl", [{**DOC, "document_id": "d1"}])
    files = {"evaluation_queries": "eval/query_labels.jsonl", "validation_queries": "val/query_labels.jsonl", "passage_corpus": "passage_corpus.jsonl", "full_document_corpus": "full_document_corpus.jsonl"}
    configs = "".join(f"- config_name: {name}\n  data_files:\n  - split: clinical_trial\n    path: clinical_trial/{path}\n" for name, path in files.items())
    (tmp_path / "repo" / "README.md").write_text(f"---\nconfigs:\n{configs}---\n")
    done = hub(tmp_path / "repo", "clinical_trial", tmp_path / "cache")
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "{'7': {'d1': 2.0}} ['p:1'] CC BY-NC 4.0"


def test_without_network_the_hub_says_what_to_place_where(tmp_path):
    pytest.importorskip("datasets", reason="the extra hub is not installed")
    done = hub("nobody/nothing-here", "legal_qa", tmp_path)
    assert done.returncode != 0 and "place legal_qa/ of the data set nobody/nothing-here in a folder" in done.stderr
