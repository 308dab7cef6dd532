"""Specs parse and print back; mistakes name their place; built systems answer as their parts would."""

import json
import math
import re
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crumb_nb.composed import line_windows
from crumb_nb.experiment import Cache
from crumb_nb.protocols import Protocol
from crumb_nb.record_files import write_run
from crumb_nb.records import Collection, DataError, Qrels, Run, corpus_frame, queries_frame
from crumb_nb.sources import NotApplicable, as_run
from crumb_nb.specs import Spec, SpecError, imported_modules, parse_spec, split_specs
from crumb_nb.systems import REGISTRY, RERANKERS, build, explain, spec_files

TEXTS = ["the cat sat on the mat", "a dog ran\nafter the cat\nand lost it", "no animal here", "dogs and cats\nand a bird"]


def collection(**changes) -> Collection:
    "Four documents, two queries, graded labels."
    protocol = Protocol("toy", "document", "document", "by hand", ("RR", "nDCG@10"), asked=10)
    made = Collection("toy", corpus_frame(["d1", "d2", "d3", "d4"], TEXTS), queries_frame(["q1", "q2"], ["cat", "dog bird"]), Qrels.from_dict({"q1": {"d1": 2.0, "d2": 1.0, "d3": 0.0}, "q2": {"d4": 1.0}}), protocol)
    return made.with_(**changes)


# --- specs -----------------------------------------------------------------------------------------------------------------

names = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True)
words = st.one_of(names, st.from_regex(r"[A-Za-z0-9_./:+\-]{1,12}", fullmatch=True))
leaves = st.one_of(words.map(Spec), st.text(max_size=8).map(lambda t: Spec(t, quoted=True)))


def _calls(children):
    options = st.lists(st.tuples(names, children), max_size=3, unique_by=lambda o: o[0]).map(tuple)
    return st.builds(lambda name, args, options: Spec(name, tuple(args), options), names, st.lists(children, max_size=3), options)


specs = st.recursive(leaves, _calls, max_leaves=10)


@given(specs)
def test_a_spec_prints_and_parses_back(spec):
    text = str(spec)
    again = parse_spec(text)
    assert again == spec and str(again) == text
    assert parse_spec(again.canonical).canonical == again.canonical, "the canonical text is its own canonical text"


@given(st.lists(specs, max_size=4))
def test_a_list_of_specs_splits_at_blanks_only(many):
    assert split_specs("  ".join(map(str, many))) == [str(s) for s in many]


@pytest.mark.parametrize("text", ["bm25", "bm25(variant=rank_bm25, stemmer=porter)", "rrf(bm25, dense)", "run(path.jsonl)", "my.module:function", 'run("a, b.jsonl")', "dense(model=BAAI/bge-m3)"])
def test_the_documented_specs_print_back_identically(text):
    assert str(parse_spec(text)) == text


@pytest.mark.parametrize(
    ("text", "position", "said"),
    [
        ("", 0, "a name or value expected"),
        ("bm25(", 5, "a name or value expected"),
        ("bm25(k1=)", 8, "found `)`"),
        ("bm25(k1=1 b=2)", 10, "`,` or `)` expected"),
        ("rrf(bm25, dense", 15, "`)` is missing"),
        ("bm25 dense", 5, "ends here"),
        ("bm25(k1=1, k1=2)", 11, "given twice"),
        ("rrf(k=60, bm25)", 10, "before the options"),
        ('run("a.jsonl)', 4, "closing quote"),
        ("bm25(a.b=1)", 5, "cannot be the name of an option"),
        ("'bm25'", 0, "found `'`"),
    ],
)
def test_a_mistake_names_its_position(text, position, said):
    with pytest.raises(SpecError) as error:
        parse_spec(text)
    assert error.value.position == position and said in str(error.value) and f"position {position + 1}" in str(error.value)


def test_values_are_typed_and_quotes_keep_text():
    values = parse_spec('x(a=1, b=.5, c=true, d=none, e="1", f=word, g=y(z))').values()
    assert values == {"a": 1, "b": 0.5, "c": True, "d": None, "e": "1", "f": "word", "g": "y(z)"}
    assert parse_spec("bm25(b=.75, k1=1.50)").canonical == parse_spec("bm25(k1=1.5,b=0.75)").canonical
    assert parse_spec("rrf(a, b)").canonical != parse_spec("rrf(b, a)").canonical, "the order of arguments may matter"
    assert parse_spec('x(a="1")').canonical != parse_spec("x(a=1)").canonical


def test_imported_modules_follow_functions_relative_imports_and_tables():
    found = imported_modules("def f():\n    from crumb_nb.systems import build")
    assert {"crumb_nb.systems", "crumb_nb.sources", "crumb_nb.retrievers.bm25", "crumb_nb.retrievers.search", "crumb_nb.records"} <= set(found)
    assert "crumb_nb.paper" not in found
    assert imported_modules("%magic", "x = 'crumb_nb.nowhere'") == []


def test_code_hashes_follow_the_file(tmp_path, monkeypatch):
    from crumb_nb import specs

    (tmp_path / "own.py").write_text("x = 1\n")
    monkeypatch.setattr(specs, "_module_file", lambda name: tmp_path / "own.py")
    monkeypatch.setattr(specs, "source_hash", lambda name: (tmp_path / "own.py").read_text())
    assert specs.code_hashes(["crumb_nb.own"]) == {"crumb_nb.own": "x = 1\n"}
    (tmp_path / "own.py").write_text("x = 22\n")
    assert specs.code_hashes(["crumb_nb.own"]) == {"crumb_nb.own": "x = 22\n"}, "a module edited in a running session is hashed again"


# --- building --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "position", "said"),
    [
        ("bm52", 0, "did you mean bm25?"),
        ("bm25(varaint=lucene)", 5, "choose from variant, k1"),
        ("rrf(bm25, bm25(k2=1))", 15, "no option `k2`"),
        ("bm25(variant=lucine)", 0, "lucene"),
        ("bm25(k1=abc)", 0, "k1='abc': a number is expected"),
        ("bm25(b=true)", 0, "a number is expected"),
        ("bm25(bm25)", 0, "no argument"),
        ("rrf(bm25)", 0, "2 or more"),
        ("rrf(bm25, bm25, depth=0)", 0, "positive"),
        ("zscore(bm25, bm25, weights=1)", 0, "one number per system"),
        ("zscore(bm25, bm25, weights=a:b)", 0, "one number per system"),
        ("rerank(bm25, maxsimm)", 13, "did you mean maxsim?"),
        ("rerank(bm25, identity, pool=ten)", 0, "positive"),
        ("rerank(bm25, maxsim(granularity=page))", 13, "granularity"),
        ("windows(bm25, lines=0)", 0, "positive"),
        ("rewrite(bm25, query_to_doc, how=twice)", 0, "replace, append"),
        ("gate(bm25, bm25, measure=MRR)", 0, "RR"),
        ("chance(1)", 0, "no argument"),
        ("oracle(k=1)", 7, "no option `k`"),
        ("run", 0, "1 argument"),
        ('"bm25"', 0, "unknown system"),
    ],
)
def test_a_bad_system_names_position_and_choices(text, position, said):
    with pytest.raises(SpecError) as error:
        build(text)
    assert said in str(error.value) and error.value.position == position


def test_every_example_of_the_registry_builds():
    for entry in REGISTRY.values():
        for text in split_specs(entry.example.replace(", dense(model=wordllama)", "")):
            assert str(build(text).spec) == text
    for name, entry in RERANKERS.items():
        assert build(f"rerank(bm25, {entry.example.replace('…', 'x')})").pool is None, name


def test_asked_is_a_positive_depth_and_cuts():
    assert len(build("bm25").search(collection(), 1)) == 2
    for depths in ((0, None), (-1, None), (10, 0), (10, -1)):
        with pytest.raises(DataError, match="at least one"):
            build("rerank(bm25, oracle)").search(collection(), *depths)


def test_chance_is_seeded_and_does_not_depend_on_the_other_queries():
    everything = collection()
    one = everything.with_(queries=everything.queries.loc[["q2"]])
    both = build("chance").search(everything, 4, seed=3)
    assert build("chance").search(everything, 4, seed=3) == both
    assert build("chance").search(one, 4, seed=3).to_dict()["q2"] == both.to_dict()["q2"]
    assert build("chance").search(everything, 4, seed=4) != both
    assert all(len(docs) == 4 for docs in both.to_dict().values())


def test_chance_is_uniform():
    "Each of 4 documents comes first in a quarter of 2,000 draws, within four standard errors."
    many = queries_frame([f"q{n}" for n in range(2000)], ["x"] * 2000)
    run = build("chance").search(collection(queries=many), 1)
    share = pd.Series(run.doc_ids[run.doc]).value_counts(normalize=True)
    assert (abs(share - 0.25) < 4 * math.sqrt(0.25 * 0.75 / 2000)).all()


def test_oracle_returns_only_relevant_documents_inside_the_scope():
    assert build("oracle").search(collection(), 10).to_dict() == {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d4": 1.0}}
    scoped = collection(scope={"q1": ("d2", "d3"), "q2": ("d1",)})
    assert build("oracle").search(scoped, 10).to_dict() == {"q1": {"d2": 1.0}, "q2": {}}


def test_oracle_returns_a_passage_of_a_relevant_document():
    passages = corpus_frame(["d1:0", "d1:1", "d2:0"], ["a", "b", "c"], ["d1", "d1", "d2"])
    protocol = Protocol("toy", "passage", "full_document", "by hand", ("RR",), aggregate="max")
    run = build("oracle").search(collection(corpus=passages, protocol=protocol, qrels=Qrels.from_dict({"q1": {"d2": 1.0}})), 5)
    assert run.to_dict() == {"q1": {"d2:0": 1.0}, "q2": {}}


# --- composition -----------------------------------------------------------------------------------------------------------


def test_fusion_equals_fusing_the_parts_by_hand_and_order_does_not_matter():
    from crumb_nb.retrievers.fusion import rrf

    a, b = (build(t).search(collection(), 1000) for t in ("bm25", "bm25(stemmer=english)"))
    by_hand = rrf([a, b], k=60)
    assert build("rrf(bm25, bm25(stemmer=english))").search(collection(), 10) == by_hand
    assert build("rrf(bm25(stemmer=english), bm25)").search(collection(), 10) == by_hand


def test_weights_go_to_their_systems():
    heavy = build("minmax(bm25, oracle, weights=0:1)").search(collection(), 10)
    assert [d for d, s in heavy.to_dict()["q1"].items() if s > 0] == ["d1"], "of two oracle scores the lower scales to 0"


def test_rerank_uses_its_own_pool_then_the_request_then_asked():
    system = build("rerank(bm25, oracle, pool=1)")
    assert system.search(collection(), 10).info["pool"] == 1
    assert build("rerank(bm25, oracle)").search(collection(), 10, pool=2).info["pool"] == 2
    assert build("rerank(bm25, oracle)").search(collection(), 3).info["pool"] == 3


def test_windows_speak_for_their_document():
    windows, members = line_windows(collection().corpus, lines=2, step=1)
    assert members == {"d1": ["d1/0"], "d2": ["d2/0", "d2/1"], "d3": ["d3/0"], "d4": ["d4/0"]}
    assert windows.loc["d2/1", "text"] == "after the cat\nand lost it"
    from crumb_nb.sources import Request

    headed, _ = line_windows(collection().corpus, lines=1, step=1, head=1)
    assert headed.loc["d2/1", "text"] == f"{collection().corpus.loc['d2', 'text'].splitlines()[0]}\nand lost it"
    assert "first 1" in build("windows(bm25, lines=2, head=1)").plan(Request(collection(), 10))
    run = build("windows(bm25, lines=2)").search(collection(), 10)
    assert set(run.to_dict()["q1"]) == {"d1", "d2"}
    scoped = build("windows(bm25, lines=2)").search(collection(scope={"q1": ("d2",), "q2": ("d2", "d4")}), 10)
    assert set(scoped.to_dict()["q1"]) == {"d2"}


def test_autocut_is_refused_where_the_protocol_fixes_k():
    with pytest.raises(DataError, match="autocut"):
        build("autocut(bm25)").search(collection(), 10)
    allowed = collection(protocol=collection().protocol.with_(autocut=True))
    assert len(build("autocut(bm25)").search(allowed, 10)) >= 2


def test_a_gate_without_validation_keeps_the_first_system():
    run = build("gate(bm25, oracle)").search(collection(), 10)
    assert run == build("bm25").search(collection(), 10) and "no validation" in run.info["gate"]


def test_a_gate_decides_on_validation_queries_only():
    "Twelve validation queries on which the oracle wins each: p = 2/4096; on evaluation labels nothing is looked at."
    many = [f"v{n}" for n in range(12)]
    validation = collection(queries=queries_frame(many, ["cat"] * 12), qrels=Qrels.from_dict({v: {"d3": 1.0} for v in many}))
    gated = build("gate(bm25, oracle, measure=RR)")
    assert gated.search(collection(), 10, validation=validation) == build("oracle").search(collection(), 10)
    loses = build("gate(oracle, bm25, measure=RR)").search(collection(), 10, validation=validation)
    assert loses == build("oracle").search(collection(), 10) and "not used" in loses.info["gate"]


def test_a_gate_without_a_test_takes_the_better_mean():
    "`none` is a word of the spec's language, and here it is a choice: one validation query, won by the oracle, is enough."
    validation = collection(queries=queries_frame(["v"], ["cat"]), qrels=Qrels.from_dict({"v": {"d3": 1.0}}))
    for test, wins in (("none", True), ("randomization", False)):
        decided = build(f"gate(bm25, oracle, measure=RR, test={test})").search(collection(), 10, validation=validation)
        assert (decided == build("oracle").search(collection(), 10)) is wins


@pytest.mark.parametrize("spec, says", [
    ("rrf(bm25, bm25, k=x)", "at least 0"), ("rrf(bm25, bm25, k=-1)", "at least 0"), ("zscore(bm25, bm25, absent=low)", "zero, lowest"),
    ("windows(bm25, how=best)", "max, first"), ("gate(bm25, bm25, test=z)", "randomization, t"), ("gate(bm25, bm25, alpha=2)", "between 0 and 1"),
])
def test_a_value_out_of_range_is_refused_before_anything_is_searched(spec, says):
    with pytest.raises(SpecError, match=says):
        build(spec)


def test_rewriting_applies_to_crumb_only_and_names_what_is_missing():
    with pytest.raises(NotApplicable, match="CRUMB"):
        build("rewrite(bm25, query_to_doc)").search(collection(), 10)


def test_rewriting_searches_with_the_rewritten_text():
    from crumb_nb.datasets.profiles import open_collections

    task = open_collections("crumb", tasks=["clinical_trial"])[0]
    run = build("rewrite(bm25, query_to_doc)").search(task, 20)
    assert run.info["rewritten"] == len(task.queries) and run != build("bm25").search(task, 20)
    with pytest.raises(NotApplicable, match="choose one of"):
        build("rewrite(bm25, nothing_like_it)").search(task, 20)


# --- somebody's run, somebody's code ----------------------------------------------------------------------------------------


def test_a_run_file_is_a_system(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_run(Run.from_dict({"q1": {"d1": 1.0, "elsewhere": 2.0}, "other": {"d1": 1.0}}), "mine.jsonl")
    run = build("run(mine.jsonl)").search(collection(), 10)
    assert run.to_dict() == {"q1": {"elsewhere": 2.0, "d1": 1.0}}, "a document outside the corpus keeps its rank"
    missing = [q for q in collection().queries.index if q != "q1"]
    assert run.info == {"unknown_documents": 1, "unknown_queries": 1, "missing_queries": len(missing), "unknown_query_ids": ["other"], "missing_query_ids": missing[:3]}, "a query of the file that the collection has not, and the other way round"
    assert json.loads(json.dumps(run.info)) == run.info, "info is kept as JSON"
    assert spec_files("rrf(bm25, run(mine.jsonl))") == [tmp_path / "mine.jsonl"]
    with pytest.raises(NotApplicable, match="none of the queries"):
        build("run(mine.jsonl)").search(collection(queries=queries_frame(["z"], ["z"])), 10)
    with pytest.raises(DataError, match="cannot be read"):
        build("run(absent.jsonl)").search(collection(), 10)


def test_a_run_file_is_found_from_the_folder_the_command_started_in(tmp_path, monkeypatch):
    write_run(Run.from_dict({"q1": {"d1": 1.0}}), tmp_path / "mine.jsonl")
    monkeypatch.setenv("CRUMB_NB_HOME", str(tmp_path))
    assert len(build("run(mine.jsonl)").search(collection(), 10)) == 1


MODULE = """
def lists(collection, asked):
    return {q: list(collection.corpus.index)[:asked] for q in collection.queries.index}

def texts(collection):
    return {q: ["no animal here", "invented", "the cat sat on the mat"] for q in collection.queries.index}

def options(collection, depth=1, **more):
    return {q: {"d1": float(depth)} for q in collection.queries.index}

def number(collection):
    return 7

def swapped(queries, documents):
    return {}

def stumbles(collection, asked):
    return {}["q1"]
"""


@pytest.fixture()
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_systems.py").write_text(MODULE)
    monkeypatch.setenv("CRUMB_NB_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield "own_systems"
    sys.modules.pop("own_systems", None)


def test_a_function_is_a_system(own_module, tmp_path):
    assert list(build("own_systems:lists").search(collection(), 2).to_dict()["q1"]) == ["d1", "d2"]
    assert build("own_systems:options(depth=3)").search(collection(), 2).to_dict()["q1"] == {"d1": 3.0}
    found = build("own_systems:texts").search(collection(), 3)
    assert list(found.to_dict()["q1"]) == ["d3", "unmatched:1", "d1"] and found.info == {"unmatched": 2}
    assert spec_files("own_systems:lists") == [tmp_path / "own_systems.py"]
    for text, said in (("own_systems:absent", "no function 'absent'"), ("no_such_module:f", "No module named")):
        with pytest.raises(SpecError, match=said):
            build(text).search(collection(), 2)
    with pytest.raises(DataError, match="not int"):
        build("own_systems:number").search(collection(), 2)


def test_a_function_that_does_not_fit_or_fails_is_a_sentence(own_module):
    "The signature is looked at before the call."
    with pytest.raises(SpecError, match=re.escape("own_systems:swapped takes (queries, documents); it is called with (collection, asked=…, pool=…, seed=…), those it names")):
        build("own_systems:swapped").search(collection(), 2)
    with pytest.raises(SpecError, match=re.escape("takes (collection, asked); it is called with (collection, depth=…, asked=…")):
        build("own_systems:stumbles(depth=2)").search(collection(), 2)
    line = MODULE.splitlines().index('    return {}["q1"]') + 1
    with pytest.raises(DataError, match=re.escape(f"own_systems:stumbles raised KeyError: 'q1' (own_systems.py:{line}); CRUMB_NB_DEBUG=1")) as error:
        build("own_systems:stumbles").search(collection(), 2)
    assert isinstance(error.value.__cause__, KeyError), "the debug output shows the user's own traceback"
    with pytest.raises(DataError, match="json:dumps raised TypeError"):
        build("json:dumps").search(collection(), 2)
    assert build("own_systems:lists(asked=1)").search(collection(), 2).to_dict() == {q: {"d1": 1.0} for q in collection().queries.index}, "the spec's own value goes before the depth asked"
    with pytest.raises(SpecError, match="does not say what it takes"):
        build("builtins:max").search(collection(), 2)


def test_answers_of_other_kinds():
    frame = pd.DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "score": [1.0]})
    assert as_run(frame, collection()) == as_run({"q1": {"d1": 1.0}}, collection()) == as_run(Run.from_frame(frame), collection())
    with pytest.raises(DataError, match="not a query"):
        as_run({"q9": {"d1": 1.0}}, collection())
    with pytest.raises(DataError, match="finite"):
        as_run({"q1": {"d1": float("nan")}}, collection())


# --- cache keys ------------------------------------------------------------------------------------------------------------


def key(spec="bm25", asked=10, changed=None, **request):
    from crumb_nb.sources import Request

    return build(spec).key(Request(changed or collection(), asked, **request))


def test_the_key_covers_what_decides_and_nothing_else(monkeypatch):
    same = key()
    assert key() == same and key(seed=5) == same, "bm25 has no random step"
    assert key("chance", seed=5) != key("chance")
    assert key(asked=11) != same and key("bm25(k1=1.2)") != same
    corpus = collection().corpus.copy()
    corpus.loc["d1", "text"] += "."
    assert key(changed=collection(corpus=corpus)) != same
    shuffled = collection(corpus=collection().corpus.iloc[::-1])
    assert key(changed=shuffled) == same, "the order of rows decides nothing"
    monkeypatch.setattr("crumb_nb.sources.package_versions", lambda names: {n: "0" for n in names})
    assert key() != same


def test_the_key_of_a_part_changes_the_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_run(Run.from_dict({"q1": {"d1": 1.0}}), "mine.jsonl")
    before = key("rrf(bm25, run(mine.jsonl))")
    write_run(Run.from_dict({"q1": {"d1": 2.0}}), "mine.jsonl")
    assert key("rrf(bm25, run(mine.jsonl))") != before


def test_of_two_files_with_one_name_each_decides_the_key(tmp_path, monkeypatch):
    "a/run.jsonl and b/run.jsonl, and the __init__.py of a package and of one inside it: whichever changes, the old run must not be served."
    monkeypatch.setenv("CRUMB_NB_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("a/run.jsonl", "b/run.jsonl", "twice_named/__init__.py", "twice_named/sub/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    for spec, names in (("rrf(run(a/run.jsonl), run(b/run.jsonl))", ("a/run.jsonl", "b/run.jsonl")), ("twice_named:search", ("twice_named/__init__.py", "twice_named/sub/__init__.py"))):
        for name in names:
            before = key(spec)
            (tmp_path / name).write_text("# changed\n")
            assert key(spec) != before, name


@pytest.mark.parametrize("spec", ["dense(model={})", "rerank(bm25, cross_encoder(model={}))", "rrf(bm25, rerank(bm25, maxsim(model={})))"])
def test_the_weights_of_a_local_model_are_files_of_the_system(tmp_path, spec):
    "A model trained again in the same folder: no cached run, and a paper table that used it is not unchanged."
    (tmp_path / "model.safetensors").write_bytes(b"before")
    spec = spec.format(tmp_path)
    assert spec_files(spec) == [tmp_path / "model.safetensors"]
    before = key(spec)
    (tmp_path / "model.safetensors").write_bytes(b"after!")
    assert key(spec) != before


@pytest.mark.parametrize("spec", ["autocut(bm25)", "rrf(autocut(bm25), bm25)", "windows(autocut(bm25))"])
def test_a_cached_run_does_not_get_past_the_refusal_of_autocut(tmp_path, spec):
    "Allowed and cached under one protocol; the same collection under a protocol that fixes k must still refuse, alone and as a part."
    cache, allowed = Cache(tmp_path), collection(protocol=collection().protocol.with_(autocut=True))
    made = build(spec).search(allowed, 10, cache=cache)
    with pytest.raises(DataError, match="autocut"):
        build(spec).search(collection(), 10, cache=cache)
    assert build(spec).search(allowed, 10, cache=cache) == made
    assert key("bm25", changed=allowed) == key("bm25"), "without autocut the permission decides nothing"


@pytest.mark.parametrize("change", [{"primary": "nDCG@10"}, {"aggregate": "max"}, {"mode": "trec_eval"}, {"left_out": {"q1": "by hand"}}, {"ties": "hash"}, {"no_relevant": "drop"}, {"binary_measures": ("RR",)}, {"autocut": True}], ids=lambda c: next(iter(c)))
def test_the_key_of_a_gate_covers_the_protocol_of_the_validation_queries(change):
    "The gate scores by it: another primary measure or another aggregation may decide otherwise, on the same texts and labels."
    other = collection(protocol=collection().protocol.with_(**change))
    assert key("gate(bm25, oracle)", validation=collection()) != key("gate(bm25, oracle)", validation=other)
    assert key("bm25", validation=collection()) == key("bm25", validation=other), "bm25 reads no validation queries"


def test_the_key_of_a_gate_covers_the_instruction_of_the_validation_queries():
    assert key("gate(bm25, oracle)", validation=collection()) != key("gate(bm25, oracle)", validation=collection(instruction="find it"))


def test_cache_on_or_off_gives_the_same_run(tmp_path):
    cache = Cache(tmp_path)
    system = build("rrf(bm25, bm25(stemmer=porter))")
    plain = system.search(collection(), 10)
    first, second = (system.search(collection(), 10, cache=cache) for _ in range(2))
    assert plain == first == second and plain.info == second.info == json.loads(json.dumps(plain.info))
    assert np.array_equal(first.ranks(), second.ranks())


def test_explaining_names_every_part_its_depth_and_what_is_cached(tmp_path):
    cache = Cache(tmp_path)
    build("bm25").search(collection(), 50, cache=cache)
    lines = explain("rerank(bm25, oracle, pool=50)", collection(), 10, cache=cache).splitlines()
    assert lines[0].startswith("rerank(bm25, oracle, pool=50): reranks the first 50 of each query: up to 100 pairs; returns 10")
    assert lines[1].startswith("  bm25: indexes 4 documents") and lines[1].endswith("returns 50 per query (in the cache)")
    for text in ("chance", "oracle", "run(x.jsonl)", "windows(bm25)", "gate(bm25, bm25)", "rewrite(bm25, cot)", "autocut(bm25)", "rrf(bm25, bm25)", "json:loads"):
        assert explain(text, collection(), 10).startswith(f"{text}: ")
    assert "own haystack (1.5 documents on average)" in explain("bm25", collection(scope={"q1": ("d1", "d2"), "q2": ("d3",)}), 10)


def test_weights_are_no_file_and_no_function():
    assert spec_files("zscore(bm25, windows(bm25), weights=2:1)") == []


def test_the_key_of_a_user_function_covers_what_its_module_imports(tmp_path, monkeypatch):
    "A helper beside it decides the answer as much as the module itself; what is installed is covered by nothing of ours."
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine_one.py").write_text("import numpy\nimport mine_two\n\ndef search(collection, asked):\n    return {}\n")
    (tmp_path / "mine_two.py").write_text("from mine_three import x\n")
    (tmp_path / "mine_three.py").write_text("import mine_one\nx = 1\n")
    assert [p.name for p in build("mine_one:search").files()] == ["mine_one.py", "mine_three.py", "mine_two.py"]


def test_a_reranker_inside_a_fusion_reads_as_many_as_the_fusion_is_asked_for():
    "The fusion asks its parts for 1,000; what a reranker without a pool reads is said by the whole system's depth."
    run = build("rrf(bm25, rerank(bm25, identity))").search(collection(), 3)
    assert run.info["parts"]["rerank(bm25, identity)"]["pool"] == 3


def test_the_seed_of_a_gate_is_in_its_key():
    from crumb_nb.sources import Request

    gate, plain = build("gate(bm25, oracle)"), build("bm25")
    assert gate.key(Request(collection(), 10, seed=0)) != gate.key(Request(collection(), 10, seed=1))
    assert plain.key(Request(collection(), 10, pool=5)) == plain.key(Request(collection(), 10)), "without a reranker the pool decides nothing"


def test_a_run_of_another_unit_is_not_applicable_and_not_zero(tmp_path, monkeypatch):
    "A file of session ids beside turns scored 0.0000 and was beaten significantly, which says nothing about the system."
    monkeypatch.chdir(tmp_path)
    write_run(Run.from_dict({"q1": {"s1": 2.0}, "q2": {"s2": 1.0}}), tmp_path / "sessions.jsonl")
    with pytest.raises(NotApplicable, match=r"sessions.jsonl: none of its rows names a document .*'s1'"):
        build("run(sessions.jsonl)").search(collection(), 10)
    write_run(Run.from_dict({"q1": {"s1": 2.0, "d1": 1.0}}), tmp_path / "mixed.jsonl")
    info = build("run(mixed.jsonl)").search(collection(), 10).info
    assert (info["unknown_documents"], info["missing_queries"], info["missing_query_ids"]) == (1, 1, ["q2"])


def test_a_model_folder_is_looked_up_where_the_command_was_started(tmp_path, monkeypatch):
    "Notebooks run in a folder of their own; a path that is no folder is refused when the spec's files are asked for, not after a minute of asking a hub."
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("CRUMB_NB_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    for written in ("model", "./model", "~/model"):
        assert [p.name for p in spec_files(f"dense(model={written})")] == ["config.json"]
    for missing in ("./absent", "~/absent", "/absent"):
        with pytest.raises(DataError, match="absent: no such folder"):
            spec_files(f"rrf(bm25, dense(model={missing}))")
    assert spec_files("dense(model=BAAI/bge-m3)") == [], "a name of the hub"


def test_a_function_in_a_folder_without_init_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("CRUMB_NB_HOME", str(tmp_path))
    (tmp_path / "bare_folder").mkdir()
    (tmp_path / "bare_folder" / "mod.py").write_text("def search(collection, asked):\n    return {q: {'d1': 1.0} for q in collection.queries.index}\n")
    system = build("bare_folder.mod:search")
    assert [p.name for p in system.files()] == ["mod.py"] and set(system.search(collection(), 10).to_dict()["q1"]) == {"d1"}
