"""Records: opaque ids, whole files, ties, refusals, round trips."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crumb_nb.record_files import (
    read_corpus, read_qrels, read_queries, read_run, read_scores, write_corpus, write_qrels, write_queries, write_run, write_scores,
)
from crumb_nb.records import (
    Collection, DataError, Qrels, Run, atomic_path, corpus_frame, order_rows, queries_frame, read_jsonl, require, tie_ranks, within_group, write_jsonl,
)

ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
values = st.floats(allow_nan=False, allow_infinity=False, width=64)
nested = st.dictionaries(ids, st.dictionaries(ids, values, max_size=6), max_size=5)


# ---------------------------------------------------------------- ties

def test_equal_scores_are_ordered_by_id_descending_whatever_the_input_order():
    "trec_eval's rule (case EV01): t, m, k; insertion order must not matter."
    for rows in itertools.permutations([("m", 5.0), ("k", 5.0), ("t", 5.0)]):
        run = Run.from_rows(["q"] * 3, [d for d, _ in rows], [s for _, s in rows])
        assert run.frame()["doc_id"].tolist() == ["t", "m", "k"]


def test_hash_ties_do_not_follow_the_id():
    "Sixty-four evidence ids begin with `answer`; by string order they would stand together, by hash they must not."
    names = [f"answer_{n}" for n in range(64)] + [f"noise_{n}" for n in range(64)]
    by_hash = np.argsort(-tie_ranks(names, "hash"))
    gold_first = sum(names[i].startswith("answer") for i in by_hash[:64])
    assert 16 < gold_first < 48  # near one half: 32 expected, standard deviation 2.8
    with pytest.raises(ValueError, match="choose one of"):
        tie_ranks(names, "random")


@given(st.lists(st.tuples(ids, st.integers(-3, 3)), unique_by=lambda row: row[0], max_size=20))
def test_rank_order_equals_a_plain_sort(rows):
    run = Run.from_rows(["q"] * len(rows), [d for d, _ in rows], [float(s) for _, s in rows])
    expected = sorted(rows, key=lambda row: (row[1], row[0]), reverse=True)
    assert run.frame()["doc_id"].tolist() == [d for d, _ in expected]
    assert sorted(run.ranks()) == list(range(1, len(rows) + 1))
    assert run.cut(3).frame()["doc_id"].tolist() == [d for d, _ in expected[:3]]


# ---------------------------------------------------------------- refusals

@pytest.mark.parametrize("rows, named", [
    ([("q1", "x", 0.9), ("q1", "x", 0.1)], ["q1", "x"]),
    ([("q1", "x", math.nan)], ["q1", "x", "nan"]),
    ([("q1", "x", math.inf)], ["q1", "x", "inf"]),
    ([("q1", 7, 1.0)], ["7", "int"]),
    ([(3, "x", 1.0)], ["3", "int"]),
    ([(None, "x", 1.0)], ["query id must be a string"]),
])
def test_impossible_rows_are_refused_by_name(rows, named):
    with pytest.raises(DataError) as caught:
        Run.from_rows(*map(list, zip(*rows)))
    assert all(word in str(caught.value) for word in named)


def test_dict_border_refuses_too():
    with pytest.raises(DataError, match="q1"):
        Run.from_dict({"q1": {"x": math.nan}})
    with pytest.raises(DataError, match="string"):
        Run.from_dict({"q1": {7: 1.0}})
    with pytest.raises(DataError, match="length"):
        Run.from_rows(["q"], ["d", "e"], [1.0])


@pytest.mark.parametrize("score", [1, np.float32(1), np.float64(1), np.int64(1)])
def test_every_number_type_is_a_score(score):
    "Case EV09: numpy scalars and integers are accepted and mean the same."
    assert Run.from_dict({"q": {"d": score}}).to_dict() == {"q": {"d": 1.0}}


# ---------------------------------------------------------------- columns

@given(nested)
def test_dict_round_trip(data):
    assert Run.from_dict(data).to_dict() == data
    assert Qrels.from_dict(data).to_dict() == data


def test_equality_ignores_row_order_and_info():
    left = Run.from_rows(["q", "q"], ["a", "b"], [1.0, 2.0], info={"served": 3})
    right = Run.from_rows(["q", "q"], ["b", "a"], [2.0, 1.0])
    assert left == right and left != Run.from_dict({"q": {"a": 1.0}}) and left != Qrels.from_dict(right.to_dict())
    with pytest.raises(TypeError):
        hash(left)


def test_from_frame_and_query_without_results():
    run = Run.from_frame(pd.DataFrame({"query_id": ["q"], "doc_id": ["d"], "score": [1]}), query_ids_all=["p", "q"])
    assert run.to_dict() == {"p": {}, "q": {"d": 1.0}}
    assert run.cut(1).with_(name="x").name == "x"
    assert len(Run.from_dict({})) == 0 and Run.from_dict({}).frame().empty


def test_ids_that_numpy_would_mangle_stay():
    "A fixed-width numpy text array drops trailing NULs; object arrays must not."
    data = {"q\0": {"d\0": 1.0, "d": 2.0}}
    assert Run.from_dict(data).to_dict() == data


def test_qrels_binary_only_relevant():
    qrels = Qrels.from_dict({"q1": {"a": 2.0, "b": 0.5, "c": -1.0}, "q2": {}, "q3": {"a": 1.0}})
    assert qrels.binary().to_dict()["q1"] == {"a": 1.0, "b": 1.0, "c": 0.0}
    assert qrels.binary(1).to_dict()["q1"] == {"a": 1.0, "b": 0.0, "c": 0.0}
    assert qrels.relevant() == {"q1": ["a", "b"], "q2": [], "q3": ["a"]}
    assert qrels.only(["q3", "q9"]).to_dict() == {"q3": {"a": 1.0}, "q9": {}}
    assert qrels.frame()["relevance"].tolist() == [2.0, 0.5, -1.0, 1.0]


def test_within_group():
    assert within_group(np.array([0, 0, 2, 2, 2, 5])).tolist() == [0, 1, 0, 1, 2, 0]
    assert within_group(np.array([], dtype=int)).tolist() == []
    assert order_rows(np.array([1, 0]), np.array([0, 0]), np.array([1.0, 1.0])).tolist() == [1, 0]


# ---------------------------------------------------------------- files

def test_files_appear_whole_or_not_at_all(tmp_path):
    target = tmp_path / "deep" / "table.csv"
    with atomic_path(target) as part:
        part.write_text("good")
    with pytest.raises(KeyboardInterrupt):
        with atomic_path(target) as part:
            part.write_text("half")
            raise KeyboardInterrupt
    assert target.read_text() == "good" and [p.name for p in target.parent.iterdir()] == ["table.csv"]
    with pytest.raises(ValueError):
        write_jsonl(target, [{"a": 1}, {"a": math.nan}])  # NaN is not JSON
    assert target.read_text() == "good"


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    "By the name that was asked for, not the temporary file's; the refusal comes before the work where it can be known."
    (tmp_path / "afile").write_text("")
    (tmp_path / "dir").mkdir()
    cases = {
        tmp_path / "dir": (tmp_path / "dir", "is a folder, a file is needed"),
        tmp_path / "afile" / "a.jsonl": (tmp_path / "afile", "is a file, a folder is needed"),
        tmp_path / "afile" / "b" / "a.jsonl": (tmp_path / "afile", "is a file, a folder is needed"),
        tmp_path / ("n" * 250): (tmp_path / ("n" * 250), "cannot be written (File name too long); check the path"),  # with the temporary ending
    }
    for path, (named, what) in cases.items():
        with pytest.raises(DataError) as caught:
            with atomic_path(path):
                raise AssertionError("the work must not begin")
        assert str(caught.value) == f"{named}: {what}"
    with pytest.raises(DataError, match=r"late: cannot be written \(.*\); check the path"):
        with atomic_path(tmp_path / "late"):
            (tmp_path / "late").mkdir()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["afile", "dir", "late"]


@given(data=nested)
def test_run_round_trip_through_jsonl_keeps_any_id(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    run = Run.from_dict(data)
    write_run(run, folder / "r.jsonl")
    assert read_run(folder / "r.jsonl") == run
    write_qrels(Qrels.from_dict(data), folder / "q.jsonl")
    assert read_qrels(folder / "q.jsonl") == Qrels.from_dict({q: d for q, d in data.items() if d})


def test_trec_refuses_white_space_and_round_trips_the_rest(tmp_path):
    "Case EV14: a space would shift the columns; `#`, `:` and CJK are fine."
    good = Run.from_dict({"q:1": {"a#3": 0.1, "文/é": 1 / 3}})
    write_run(good, tmp_path / "r.trec")
    assert read_run(tmp_path / "r.trec") == good  # repr of a float is exact
    for bad in ({"q 1": {"d": 1.0}}, {"q": {"my doc": 1.0}}, {"q": {"": 1.0}}):
        with pytest.raises(DataError, match="white space"):
            write_run(Run.from_dict(bad), tmp_path / "bad.trec")
    for kind in ("qrels", "tsv"):
        with pytest.raises(DataError):
            write_qrels(Qrels.from_dict({"q": {"a\tb": 1.0}}), tmp_path / f"bad.{kind}")
    assert not list(tmp_path.glob("bad*"))


def test_rank_field_is_ignored(tmp_path):
    "Case EV09: the order comes from the score."
    (tmp_path / "r.trec").write_text("q Q0 a 1 0.2 x\nq Q0 b 2 0.9 x\n")
    assert read_run(tmp_path / "r.trec").frame()["doc_id"].tolist() == ["b", "a"]


@pytest.mark.parametrize("text, words", [
    ('{"query": {"id": "q"}, "items": [{"id": "d"}]}', [":1", "score", "missing"]),
    ('{"query": {"id": "q"}, "items": [{"id": "d", "score": "high"}]}', ["score", "str"]),
    ('{"query": {"id": 7}, "items": []}', ["id", "int"]),
    ('{"query": {"id": "q"}, "items": ["d"]}', ["items"]),
    ('{"query": {"id": "q"}, "items": [{"id": "d", "score": 1}, {"id": "d", "score": 2}]}', ["'d'", "twice", "'q'"]),
    ('{"query": {"id": "q"}, "items": [{"id": "d", "score": true}]}', ["bool"]),
    ('[]', ["object"]),
    ('{"query"', ["broken JSON", ":1"]),
])
def test_broken_run_files_name_file_line_and_field(tmp_path, text, words):
    (tmp_path / "r.jsonl").write_text(text + "\n")
    with pytest.raises(DataError) as caught:
        read_run(tmp_path / "r.jsonl")
    assert all(word in str(caught.value) for word in ["r.jsonl", *words])


def test_broken_column_files(tmp_path):
    (tmp_path / "r.trec").write_text("q Q0 my doc 1 0.5 x\n")
    with pytest.raises(DataError, match=r"r.trec:1: 7 columns"):
        read_run(tmp_path / "r.trec")
    (tmp_path / "q.qrels").write_text("q 0 d yes\n")
    with pytest.raises(DataError, match=r"q.qrels:1: field 'label'"):
        read_qrels(tmp_path / "q.qrels")
    (tmp_path / "bytes.qrels").write_bytes(b"q 0 \xff 1\n")
    with pytest.raises(DataError, match="UTF-8"):
        read_qrels(tmp_path / "bytes.qrels")
    with pytest.raises(DataError, match="cannot be read"):
        read_qrels(tmp_path / "none.qrels")
    with pytest.raises(DataError, match=r"cannot tell the format from '\.xyz'; rename it to \.jsonl/\.json \(JSON lines\) or \.trec/\.run/\.txt/\.res \(TREC\), or name the format"):
        read_run(tmp_path / "r.xyz")
    with pytest.raises(DataError, match=r"r\.jsonl\.gz: is packed; unpack it first"):
        read_run(tmp_path / "r.jsonl.gz")
    with pytest.raises(DataError, match="is a folder, a file is needed"):
        read_qrels(tmp_path)
    with pytest.raises(ValueError, match="choose one of"):
        read_run(tmp_path / "r.trec", format="csv")
    (tmp_path / "double.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\nq\td\t1\n")
    with pytest.raises(DataError, match="double.tsv.*twice"):
        read_qrels(tmp_path / "double.tsv")


def test_jsonl_tolerates_bom_crlf_and_blank_lines_and_line_separators(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes('\ufeff{"t": "a\u2028b"}\r\n\r\n{"t": "c"}'.encode())
    assert list(read_jsonl(path)) == [(1, {"t": "a\u2028b"}), (3, {"t": "c"})]
    path.write_bytes(b'{"t": "\xff"}\n')
    with pytest.raises(DataError, match=r"x.jsonl:1: not UTF-8"):
        list(read_jsonl(path))
    with pytest.raises(DataError, match="cannot be read"):
        list(read_jsonl(tmp_path / "none"))
    with pytest.raises(DataError, match="int or float expected"):
        require({"s": "x"}, "s", (int, float))


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(st.lists(st.tuples(ids, text, st.none() | ids), unique_by=lambda row: row[0], max_size=6))
def test_corpus_and_queries_round_trip(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("texts")
    names, texts, parents = [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows]
    corpus = corpus_frame(names, texts, parents, [json.dumps({"n": n}) for n in range(len(rows))])
    write_corpus(corpus, folder / "c.jsonl")
    pd.testing.assert_frame_equal(read_corpus(folder / "c.jsonl"), corpus)
    queries = queries_frame(names, texts, groups=texts)
    write_queries(queries, folder / "q.jsonl")
    pd.testing.assert_frame_equal(read_queries(folder / "q.jsonl"), queries)


def test_corpus_errors(tmp_path):
    (tmp_path / "c.jsonl").write_text('{"doc_id": "a", "text": "x"}\n{"doc_id": "a", "text": "y"}\n')
    with pytest.raises(DataError, match="c.jsonl.*occurs twice"):
        read_corpus(tmp_path / "c.jsonl")
    (tmp_path / "c.jsonl").write_text('{"doc_id": "a", "text": null}\n')
    with pytest.raises(DataError, match="c.jsonl:1: field 'text'"):
        read_corpus(tmp_path / "c.jsonl")
    (tmp_path / "c.jsonl").write_text('{"doc_id": "a", "text": "x", "metadata": "{"}\n')
    with pytest.raises(DataError, match="metadata"):
        read_corpus(tmp_path / "c.jsonl")
    (tmp_path / "q.jsonl").write_text('{"query_id": "a", "text": "x", "metadata": {"k": 1}}\n{"query_id": "a", "text": "x"}\n')
    with pytest.raises(DataError, match="q.jsonl.*occurs twice"):
        read_queries(tmp_path / "q.jsonl")
    with pytest.raises(DataError, match="string"):
        corpus_frame([1], ["x"])
    (tmp_path / "empty.jsonl").write_text("")
    assert len(read_corpus(tmp_path / "empty.jsonl")) == 0 == len(read_queries(tmp_path / "empty.jsonl"))


def test_scores_keep_ids_and_precision(tmp_path):
    frame = pd.DataFrame({"query_id": ["007", "NA", ""], "measure": ["R@5"] * 3, "value": [1 / 3, math.nan, 0.1]})
    write_scores(frame, tmp_path / "s.csv")
    back = read_scores(tmp_path / "s.csv")
    assert back["query_id"].tolist() == ["007", "NA", ""] and back["value"][0] == 1 / 3 and math.isnan(back["value"][1])
    (tmp_path / "bad.csv").write_text("query,value\na,1\n")
    with pytest.raises(DataError, match="query_id"):
        read_scores(tmp_path / "bad.csv")
    (tmp_path / "bad.csv").write_text("query_id,measure,value\na,R@5,high\n")
    with pytest.raises(DataError, match="high"):
        read_scores(tmp_path / "bad.csv")
    with pytest.raises(DataError, match="cannot be read"):
        read_scores(tmp_path / "none.csv")


# ---------------------------------------------------------------- collections

def tiny(**changes):
    corpus = corpus_frame(["d1:0", "d1:1", "d2:0"], ["red fox", "blue fox", "owl"], ["d1", "d1", None])
    made = Collection("tiny", corpus, queries_frame(["q"], ["fox"]), Qrels.from_dict({"q": {"d1": 1.0, "gone": 1.0, "d2:0": 0.0}}), protocol=None)
    return made.with_(**changes)


def test_collection_parents_candidates_and_missing_gold():
    assert tiny().parents() == {"d1:0": "d1", "d1:1": "d1", "d2:0": "d2:0"}
    assert tiny().missing_gold() == {"q": ["gone"]}
    scoped = tiny(scope={"q": ("d2:0",)})
    assert scoped.candidates("q") == ("d2:0",) and scoped.missing_gold() == {"q": ["d1", "gone"]}
    assert list(tiny().candidates("q")) == ["d1:0", "d1:1", "d2:0"]


def test_collection_validation_names_the_id():
    with pytest.raises(DataError, match="'q9'"):
        tiny(qrels=Qrels.from_dict({"q9": {"d1": 1.0}})).validate()
    with pytest.raises(DataError, match="d7"):
        tiny(scope={"q": ("d7",)}).validate()
    with pytest.raises(DataError, match="parent_id"):
        tiny(corpus=tiny().corpus.drop(columns="parent_id")).validate()


def test_collection_fingerprint_names_content_not_order():
    base = tiny()
    assert base.fingerprint == tiny(corpus=base.corpus.iloc[::-1]).fingerprint
    different = [tiny(scope={"q": ("d2:0",)}), tiny(qrels=Qrels.from_dict({"q": {"d1": 0.5}})), tiny(queries=queries_frame(["q"], ["foxes"])), tiny(binary_qrels=base.qrels)]
    assert len({c.fingerprint for c in [base, *different]}) == 5


def test_a_lone_surrogate_is_written_escaped_and_reads_back(tmp_path):
    "JSON allows it, UTF-8 does not: only it is escaped, so files without it keep their bytes."
    rows = [{"id": "\ud800", "text": "a\udfff\\é文", "k\udc80": 1}, {"id": "é😀", "text": "文\u2028"}]
    write_jsonl(tmp_path / "x.jsonl", rows)
    assert [row for _, row in read_jsonl(tmp_path / "x.jsonl")] == rows
    lines = (tmp_path / "x.jsonl").read_bytes().split(b"\n")
    assert lines[0] == b'{"id": "\\ud800", "text": "a\\udfff\\\\' + "é文".encode() + b'", "k\\udc80": 1}'
    assert lines[1] == json.dumps(rows[1], ensure_ascii=False).encode()
    (tmp_path / "y.jsonl").write_bytes(b'{"doc_id": "d", "text": "\\ud800"}\n')
    corpus = read_corpus(tmp_path / "y.jsonl")
    write_corpus(corpus, tmp_path / "z.jsonl")
    assert read_corpus(tmp_path / "z.jsonl").equals(corpus)


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("r.jsonl", '{"query": {"id": "p"}, "items": [{"id": "a", "score": 1}]}\n\n{"query": {"id": "q"}, "items": [{"id": "b", "score": 2}, {"id": "a", "score": 1}, {"id": "b", "score": 1}]}\n', 3),
        ("r.trec", "q Q0 b 1 2.0 x\np Q0 b 1 1.0 x\n\nq Q0 b 2 1.0 x\n", 4),
    ],
)
def test_a_doubled_document_is_named_with_its_line(tmp_path, name, content, line):
    "The line is that of the second row: the first one was right until then."
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match="document 'b' is listed twice") as caught:
        read_run(tmp_path / name)
    assert caught.value.line == line and f"{name}:{line}: id 'q'" in str(caught.value)


def test_a_query_written_twice_is_named_with_both_lines(tmp_path):
    "A run appended to itself: the second line of the query is too many, whichever document shows it."
    row = '{"query": {"id": "q1"}, "items": [{"id": "x%s", "score": 2}, {"id": "b", "score": 1}]}\n'
    (tmp_path / "r.jsonl").write_text(row % 1 + row.replace("q1", "q2") % 1 + row % 2)
    with pytest.raises(DataError) as caught:
        read_run(tmp_path / "r.jsonl")
    assert str(caught.value) == f"{tmp_path}/r.jsonl:3: query 'q1' stands on lines 1 and 3; keep one line per query" and caught.value.line == 3


def test_half_characters_are_refused_by_columns_and_kept_by_json(tmp_path):
    "UTF-8 has no bytes for a lone surrogate; a bare UnicodeEncodeError would name neither file nor id."
    data = {"q": {"\ud800": 1.0}}
    for write, name in ((write_run, "r.trec"), (write_qrels, "g.qrels"), (write_qrels, "g.tsv")):
        with pytest.raises(DataError, match=rf"{name}: id '\\ud800': .*half a character"):
            write((Run if write is write_run else Qrels).from_dict(data), tmp_path / name)
    assert not list(tmp_path.iterdir())
    write_run(Run.from_dict(data), tmp_path / "r.jsonl")
    assert read_run(tmp_path / "r.jsonl").to_dict() == data
    write_run(Run.from_dict({"q": {"a": 1.0}}, name="r\udcff"), tmp_path / "r.trec")  # a file's name in another encoding
    assert (tmp_path / "r.trec").read_text() == "q Q0 a 1 1.0 r?\n"


def test_other_bad_rows_are_named_with_their_line(tmp_path):
    (tmp_path / "r.trec").write_text("q Q0 a 1 2.0 x\nq Q0 b 2 nan x\n")
    with pytest.raises(DataError, match="r.trec:2: .*not a finite number"):
        read_run(tmp_path / "r.trec")
    (tmp_path / "g.qrels").write_text("q 0 a 1\nq 0 b 1\nq 0 a 0\n")
    with pytest.raises(DataError, match="g.qrels:3: .*listed twice"):
        read_qrels(tmp_path / "g.qrels")


def test_json_under_a_name_of_trec_is_told_as_such(tmp_path):
    "Eight columns instead of six would be true and no help; an id that begins with a brace stays an id."
    run = Run.from_dict({"{q}": {"d": 1.0}})
    write_run(run, tmp_path / "r.trec", format="jsonl")
    with pytest.raises(DataError, match=r"r\.trec:1: this is JSON; name the file \.jsonl"):
        read_run(tmp_path / "r.trec")
    write_qrels(Qrels.from_dict({"q": {"d": 1.0}}), tmp_path / "l.qrels", format="jsonl")
    with pytest.raises(DataError, match=r"l\.qrels:1: this is JSON"):
        read_qrels(tmp_path / "l.qrels")
    write_run(run, tmp_path / "brace.trec")
    assert read_run(tmp_path / "brace.trec") == run
