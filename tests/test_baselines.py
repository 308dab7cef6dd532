"""Baselines: true positions, sizes kept, what is lost is white space only."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crumb_nb.chunkers import baselines
from crumb_nb.chunkers.baselines import BASELINES, newline_chunks, sentence_chunks, window_chunks
from crumb_nb.records import DataError

TEXTS = st.text(alphabet=st.sampled_from("ab .!?\n\r\té—中#"), max_size=300)


@given(TEXTS, st.integers(1, 60), st.sampled_from(sorted(BASELINES)))
def test_slices_in_order(text, size, name):
    if name not in ("newline", "window", "sentence"):
        pytest.importorskip({"langchain": "langchain_text_splitters"}.get(name, name))
    chunks = BASELINES[name](text, "d", size)
    assert all(c.text == text[c.start : c.end] and c.start < c.end and c.doc_id == "d" for c in chunks)
    assert all(a.end <= b.start for a, b in zip(chunks, chunks[1:])), "no overlap, ascending"
    covered = "".join(c.text for c in chunks)
    assert "".join(covered.split()) == "".join(text.split()), "only white space is lost"
    if name in ("newline", "window", "sentence", "chonkie"):
        assert covered == text, "these tile the text"
    if name in ("chonkie", "langchain", "semchunk"):
        assert all(len(c.text) <= size for c in chunks)


def test_newlines_by_hand():
    assert [c.text for c in newline_chunks("a\nbb\n\nccc", size=5)] == ["a\nbb\n", "\nccc"]
    assert [c.text for c in newline_chunks("a long line\nb", size=4)] == ["a long line\n", "b"], "a longer line is a chunk of its own"
    assert newline_chunks("") == [] == window_chunks("") == sentence_chunks("")
    assert [c.has_words for c in newline_chunks("word\n***\n", size=5)] == [True, False]


def test_overlap():
    chunks = window_chunks("1 2 3 4 5 6 7", size=4, overlap=2)
    assert [c.text.split() for c in chunks] == [list("1234"), list("3456"), list("567")]
    assert [c.text for c in sentence_chunks("A. B. C.", size=2, overlap=1)] == ["A. B. ", "B. C."]
    assert window_chunks("  lead", size=1)[0].start == 0, "white space before the first word is covered"


@pytest.mark.parametrize("name", BASELINES)
def test_sizes_are_checked(name):
    with pytest.raises(DataError, match="at least 1 unit"):
        BASELINES[name]("text", "d", 0)


@pytest.mark.parametrize("name, module", [("semchunk", "semchunk"), ("chonkie", "chonkie"), ("langchain", "langchain_text_splitters")])
def test_a_missing_library_says_what_to_install(name, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match="crumb-nb\\[chunkers\\]"):
        BASELINES[name]("text", "d", 10)


def test_a_piece_that_is_no_slice_is_an_error():
    with pytest.raises(DataError, match="no slice"):
        baselines._places("abc", ["b", "a"])
