"""Guards: each has a trigger, and silence on clean data."""

import pytest

from crumb_nb.datasets.mini import MINI_NAMES, load_mini
from crumb_nb.guards import (
    collection_findings, constant_scores, duplicate_labels, foreign_documents, gold_in_ids, gold_in_texts, gold_out_of_reach, guard_collection, guard_run, query_in_corpus, shared_queries, truncated_texts,
)
from crumb_nb.protocols import Protocol
from crumb_nb.records import Collection, Qrels, Run, corpus_frame, queries_frame

PROTOCOL = Protocol("toy", "session", "session", "evidence", ("recall_any@1",))


def made(docs, qrels, queries=None, **more):
    corpus = corpus_frame(list(docs), [t if isinstance(t, str) else t[0] for t in docs.values()], [None if isinstance(t, str) else t[1] for t in docs.values()])
    queries = queries or {q: "a question" for q in qrels}
    return Collection("toy", corpus, queries_frame(list(queries), list(queries.values())), Qrels.from_dict(qrels), more.pop("protocol", PROTOCOL), **more)


def test_ids_that_tell():
    leaky = made({"answer_1": "a", "answer_2": "b", **{f"chat_{n}": "c" for n in range(10)}}, {"q": {"answer_1": 1.0, "answer_2": 1.0}})
    (finding,) = gold_in_ids(leaky)
    assert (finding.weight, finding.count, finding.of) == ("warning", 2, 2) and "'answer'" in finding.text
    assert gold_in_ids(leaky.with_(protocol=PROTOCOL.with_(ties="hash")))[0].weight == "note"
    assert not gold_in_ids(made({"chat_1": "a", "chat_2": "b"}, {"q": {"chat_1": 1.0}}))
    assert not gold_in_ids(made({"1": "a", "2": "b"}, {"q": {"1": 1.0}})), "ids without words tell nothing"
    assert not gold_in_ids(made({"chat_1": "a"}, {"q": {"chat_1": 1.0}})) and not gold_in_ids(made({"a": "x"}, {"q": {}}))


def test_ids_of_parents_count_too():
    leaky = made({"p0": ("a", "answer_1"), "p1": ("a", "answer_2"), **{f"p{n}": ("c", f"chat_{n}") for n in range(2, 9)}}, {"q": {"answer_1": 1.0, "answer_2": 1.0}})
    assert gold_in_ids(leaky)[0].example == "answer_1"


def test_a_word_of_one_relevant_document_is_no_leak():
    "docs/bike.md and docs/coffee.md, each the answer to one question: each word is the whole id of one document and separates nothing."
    assert not gold_in_ids(made({"bike": "a", "coffee": "b", "tea": "c"}, {"q": {"bike": 1.0}, "r": {"coffee": 1.0}}))


def test_labels_that_name_no_document():
    "Labels with the file's name where the id is its stem: every system would score 0 without a word."
    docs = {"bike": "a", "coffee": "b"}
    (finding,) = gold_out_of_reach(made(docs, {"q": {"coffee.md": 1.0}, "r": {"bike.md": 1.0, "tea.md": 0.0}}))
    assert str(finding) == "[warning] gold out of reach: 2 of 2 relevant documents are not in the corpus; e.g. coffee.md (ids look like 'coffee')"
    assert guard_collection(made(docs, {"q": {"coffee.md": 1.0, "bike": 1.0}}))[0].count == 1
    assert not gold_out_of_reach(made(docs, {"q": {"coffee": 1.0, "gone": 0.0}})), "what is not relevant need not be there"
    assert not gold_out_of_reach(made({"p:0": ("a", "p")}, {"q": {"p": 1.0}})), "a document whose passages are there can be found"
    assert gold_out_of_reach(made({}, {"q": {"a": 1.0}}))[0].example == "a (ids look like '')"


@pytest.mark.parametrize("name", MINI_NAMES)
def test_the_embedded_collections_have_all_their_gold(name):
    assert not gold_out_of_reach(load_mini(name))


def test_texts_that_tell():
    assert [f.guard for f in gold_in_texts(made({"doc-000001": 'doc-000001 {"label": 1}', "b": "c"}, {"q": {"b": 1.0}}))] == ["gold in texts", "ids in texts"]
    assert not gold_in_texts(made({"a": "a fox"}, {"q": {"a": 1.0}})), "an id of one letter occurs in every text"
    assert not gold_in_texts(made({"coffee": "# Brewing coffee", "b": "c"}, {"q": {"b": 1.0}})), "a heading with the word, which is not the text's beginning"


def test_query_in_corpus_folds_case_and_white_space():
    collection = made({"d": "He said: Where  does the RED fox\nlive? In Aarhus."}, {"q": {"d": 1.0}}, {"q": "where does the red fox live?", "short": "red fox"})
    (finding,) = query_in_corpus(collection)
    assert (finding.count, finding.of, finding.weight) == (1, 1, "note") and "where does" in finding.example
    assert not query_in_corpus(made({"a": "x", "b": "where does the"}, {"q": {"a": 1.0}}, {"q": "where does the red fox live?"}))
    assert not query_in_corpus(made({"a": "x"}, {"q": {}}))


def test_equal_texts_with_different_labels():
    collection = made({"a": "same", "b": "same", "c": "other"}, {"q": {"a": 1.0}, "r": {"c": 1.0}, "s": {"a": 1.0, "b": 2.0}})
    (finding,) = duplicate_labels(collection)
    assert finding.count == 1 and "q: a is relevant, b" in finding.example
    assert not duplicate_labels(collection.with_(scope={"q": ("a", "c"), "r": ("c",), "s": ("a", "b")})), "the twin is in another haystack"
    assert not duplicate_labels(made({"a": "x", "b": "y"}, {"q": {"a": 1.0}}))
    assert not duplicate_labels(made({"p:0": ("same", "p"), "p:1": ("same", "p")}, {"q": {"p": 1.0}})), "two passages of one document"


def test_equal_texts_are_looked_up_from_the_gold():
    "A hundred thousand equal texts and as many queries: only a query's own units are looked at. The first in corpus order is the example, whatever the order of the labels."
    class Counted(dict):
        asked = 0

        def __getitem__(self, key):
            Counted.asked += 1
            return dict.__getitem__(self, key)

    docs = {f"d{n}": f"text {n // 2}" for n in range(400)}
    collection = made(docs, {f"q{n}": {f"d{399 - n}": 1.0, f"d{n}": 1.0} for n in range(150)})
    Collection_parents = Counted(collection.parents())
    object.__setattr__(collection, "parents", lambda: Collection_parents)
    (finding,) = duplicate_labels(collection)
    assert finding.count == 150 and finding.example == "q0: d0 is relevant, d1 with the same text is not"
    assert Counted.asked < 5 * 400, "not documents times queries"
    passages = made({"z:0": ("same", "z"), "z:1": ("other", "z"), "a:0": ("same", "a")}, {"q": {"z": 1.0}})
    assert duplicate_labels(passages)[0].example == "q: z:0 is relevant, a:0 with the same text is not"


def test_shared_queries():
    one, two = made({"a": "x"}, {"q": {"a": 1.0}}, {"q": "Red  fox?"}), made({"a": "x"}, {"v": {"a": 1.0}}, {"v": "red fox?", "w": "owl"})
    assert shared_queries(one, two)[0].count == 1 and not shared_queries(one, two.with_(queries=queries_frame(["w"], ["owl"])))
    assert [f.guard for f in guard_collection(one, [two])] == ["shared queries"]
    assert shared_queries(one, two.with_(protocol=None))[0].weight == "warning"


@pytest.mark.parametrize("rows, count", [({"q": {"a": 1.0, "b": 1.0}}, 1), ({"q": {"a": 1.0, "b": 2.0}}, 0), ({"q": {"a": 1.0}}, 0), ({}, 0), ({"q": {}, "r": {"a": 0.0, "b": 0.0}, "s": {"a": 1.0, "b": 0.0}}, 1)])
def test_constant_scores(rows, count):
    assert sum(f.count for f in constant_scores(Run.from_dict(rows))) == count


def test_rows_outside_corpus_scope_and_queries():
    collection = made({"a": "x", "b": "y"}, {"q": {"a": 1.0}}, scope={"q": ("a",)})
    run = Run.from_dict({"q": {"a": 3.0, "b": 2.0, "zz": 1.0}, "other": {"a": 1.0}})
    assert {(f.guard, f.count) for f in foreign_documents(run, collection)} == {("unknown documents", 1), ("out of scope", 2), ("unknown queries", 1)}
    assert not foreign_documents(Run.from_dict({"q": {"a": 1.0}}), collection)
    assert not foreign_documents(Run.from_dict({"q": {"b": 1.0}}), collection.with_(scope=None))


def test_parents_are_in_scope():
    collection = made({"a:0": ("x", "a"), "b:0": ("y", "b")}, {"q": {"a": 1.0}}, scope={"q": ("a:0",)})
    assert not foreign_documents(Run.from_dict({"q": {"a": 1.0}}), collection)
    assert foreign_documents(Run.from_dict({"q": {"b": 1.0}}), collection)[0].guard == "out of scope"


def test_truncation_and_the_whole():
    run = Run.from_dict({"q": {"a": 2.0, "b": 1.0}}, info={"truncated": 3})
    assert truncated_texts(run, 9)[0].count == 3 and not truncated_texts(run.with_(info={}), 9)
    assert [f.guard for f in guard_run(run, made({"a": "x", "b": "y"}, {"q": {"a": 1.0}}))] == ["truncated"]
    assert "of 9 texts were cut" in str(truncated_texts(run, 9)[0])


def test_queries_are_found_across_word_edges():
    "The first and last word of a query may be parts of words in the text, as substring search has it."
    collection = made({"d": "xwhere does the red fox lives"}, {"q": {"d": 1.0}}, {"q": "where does the red fox live"})
    assert query_in_corpus(collection)[0].count == 1
    assert not query_in_corpus(made({"d": "the red fox does where live"}, {"q": {"d": 1.0}}, {"q": "where does the red fox live"})), "all words, another order"


def test_findings_are_kept_by_content():
    collection = made({"d1": "same", "d2": "same"}, {"q": {"d1": 1.0}})
    first = collection_findings(collection)
    assert [f.guard for f in first] == ["equal texts"] and collection_findings(collection.with_(name="other")) is first
    assert [f.guard for f in collection_findings(collection, [collection])] == ["equal texts", "shared queries"]


def test_truncation_inside_a_composed_system_is_seen():
    run = Run.from_dict({"q": {"a": 1.0}}).with_(info={"parts": {"dense": {"truncated": 3}, "rrf": {"parts": {"dense": {"truncated": 7}}}}})
    assert truncated_texts(run, 10)[0].count == 7


def test_every_experiment_runs_them(cache_dir):
    from crumb_nb.experiment import run_grid, run_system

    collection = made({"d1": "red fox", "d2": "red fox", "d3": "owl"}, {"q": {"d1": 1.0}}, {"q": "red fox"}, protocol=PROTOCOL.with_(asked=3))
    result = run_system("bm25", collection, validation=collection)
    assert [f.guard for f in result.findings] == ["equal texts", "shared queries", "constant scores"]
    assert result.provenance["findings"] == [str(f) for f in result.findings]
    for order in ("chance", "oracle"):
        assert [f.guard for f in run_system(order, collection).findings] == ["equal texts"], "expected values and ceilings have no scores to distrust"
    assert [len(r.findings) for r in run_grid(["chance", "bm25"], [collection]).results] == [1, 2]
