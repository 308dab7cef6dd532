"""Chunkers at the same number of chunks."""

import pytest

from crumb_nb.chunkers.baselines import newline_chunks
from crumb_nb.chunkers.equal_cuts import CUTTERS, content, equal_cuts, structural_cutter
from crumb_nb.chunkers.handlers import chunk_text
from crumb_nb.chunkers.span_measures import chunked, passage_ranges
from crumb_nb.records import DataError, corpus_frame

PAGE = "# Title\n\n" + "".join(f"## Part {n}\n\n" + "A sentence of some length stands here. " * 6 + "\n\n" for n in range(8))


@pytest.fixture(scope="module")
def corpus():
    return corpus_frame(["a", "b"], [PAGE, PAGE.replace("sentence", "phrase")])


def test_same_number_of_chunks(corpus):
    for name in ("semchunk", "chonkie", "langchain_text_splitters"):
        pytest.importorskip(name)
    cuts = equal_cuts(corpus, 48)
    assert [c.name for c in cuts] == list(CUTTERS)
    wanted = len(cuts[1].passages)
    assert all(abs(len(c.passages) - wanted) <= 0.25 * wanted for c in cuts)
    assert passage_ranges(cuts[0].passages) == passage_ranges(cuts[1].passages), "with and without path: the same chunks"
    assert cuts[0].passages["text"].iloc[1].startswith("Title > Part") and not cuts[1].passages["text"].iloc[1].startswith("Title >")
    assert cuts[0].tokens(corpus) == cuts[1].tokens(corpus) and max(cuts[0].tokens(corpus)) <= 46


def test_the_structural_cutter_is_chunk_text(corpus):
    at = structural_cutter(corpus)
    for budget in (40, 200):
        assert at(budget)(PAGE, "a") == chunk_text(PAGE, "a", budget=budget, capacity=4 * budget)


def test_what_a_chunk_says(corpus):
    page = corpus_frame(["p"], ["---\ntitle: x\n---\n# Oven\n\nHeat it slowly.\n\n***\n"])
    lines = chunked(page, lambda text, doc_id: newline_chunks(text, doc_id, 1), wordless=True)
    says = content(page, lines).tolist()
    assert says == ["wordless", "labels", "wordless", "labels", "wordless", "content", "wordless", "wordless"]
    assert set(content(corpus, equal_cuts(corpus, 48, ["structural"])[0].passages)) == {"content"}, "the structural chunker promises it"


def test_unknown_names(corpus):
    with pytest.raises(DataError, match="unknown chunker 'x'"):
        equal_cuts(corpus, 48, ["x"])
