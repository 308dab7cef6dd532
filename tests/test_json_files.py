"""Large and damaged JSON files: the same records whatever the window, and one sentence for each kind of damage."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crumb_nb.datasets import json_files as J
from crumb_nb.records import DataError

VALUES = st.recursive(st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=8), lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=4), v, max_size=3), max_leaves=8)
RECORDS = st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), max_size=6)


@given(records=RECORDS, window=st.integers(1, 40), indent=st.sampled_from([None, 1]), ascii=st.booleans())
def test_streaming_equals_parsing_whatever_the_window(tmp_path_factory, records, window, indent, ascii):
    path = tmp_path_factory.mktemp("json") / "a.json"
    path.write_text(json.dumps(records, indent=indent, ensure_ascii=ascii), encoding="utf-8", errors="surrogatepass")
    before, J._WINDOW = J._WINDOW, window
    try:
        found = list(J.stream_records(path))
    finally:
        J._WINDOW = before
    assert [r for _, r in found] == records
    if indent is None:
        assert {line for line, _ in found} <= {1}


def test_lines_are_those_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(J, "_WINDOW", 3)
    path = tmp_path / "a.json"
    path.write_bytes(b'\xef\xbb\xbf[\r\n{"a": 1},\r\n\r\n{"a":\r\n 2},\r\n{"a": 3}]\r\n')
    assert list(J.stream_records(path)) == [(2, {"a": 1}), (4, {"a": 2}), (6, {"a": 3})]


def test_json_lines_are_read_by_the_same_loop(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n\n{"a": 2}\n', encoding="utf-8")
    assert list(J.stream_records(path)) == [(1, {"a": 1}), (3, {"a": 2})]


@pytest.mark.parametrize("window", [1, 7, 1 << 22])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        (" \n ", "the file is empty"),
        ("<!doctype html>", "a JSON list of records is expected"),
        ('"text"', "a JSON list of records is expected"),
        ("[1, 2]", ":1: each record must be an object"),
        ('[{"a": 1}, "b"]', ":1: each record must be an object"),
        ('[\n{"a": 1},\n{"a": 2}', ":3: the list is not closed; the download is truncated"),
        ('[\n{"a": "never ends', ":2: the file ends inside a record; the download is truncated"),
        ('[\n{"a": ', ":2: the file ends inside a record"),
        ('[\n{"a": 1},\n{"a": tru, "b": 2, "c": 3, "d": 4, "e": 5}]', ":3: broken JSON"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path, monkeypatch, text, message, window):
    monkeypatch.setattr(J, "_WINDOW", window)
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message) as caught:
        list(J.stream_records(path))
    assert "a.json" in str(caught.value)


@pytest.mark.parametrize("read", [lambda p: list(J.stream_records(p)), J.read_json])
def test_missing_files_and_other_encodings(tmp_path, read):
    with pytest.raises(DataError, match="cannot be read .No such file"):
        read(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes('[{"a": "café"}]'.encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        read(tmp_path / "latin.json")


def test_read_json_gives_data_and_hash(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"[]")
    assert J.read_json(path) == ([], "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945")


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [(True, int, "int expected, found bool 'True'"), ("3", (int, float), "int or float expected, found str '3'"), (None, str, "str expected, found NoneType 'None'")],
)
def test_fields_of_the_wrong_type(value, kind, message):
    with pytest.raises(DataError) as caught:
        J.get_field({"f": value}, "f", kind, {"path": "a.json", "line": 2, "id": "q"})
    assert str(caught.value) == f"a.json:2: field 'f': id 'q': {message}"


def test_missing_field_names_those_present():
    with pytest.raises(DataError, match="'f': the field is missing; present are .'a', 'b'."):
        J.get_field({"b": 1, "a": 1}, "f", int, {})
    assert J.get_field({"f": True}, "f", bool, {}) is True
    assert J.get_strings({"f": ["x", "y"]}, "f", {}) == ("x", "y")
    with pytest.raises(DataError, match="it holds int '4'"):
        J.get_strings({"f": ["x", 4]}, "f", {})
