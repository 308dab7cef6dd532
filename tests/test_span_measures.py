"""Ranges of characters against gold spans: values by hand, by brute force, and the errors."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crumb_nb.chunkers.collections import cut_collection
from crumb_nb.chunkers.contextual import chunk_corpus
from crumb_nb.chunkers.span_measures import Range, SpanScores, best_chunks, chunked, cut_scores, gold_ranges, match_size, passage_ranges, span_measures, span_recall_within, span_scores
from crumb_nb.protocols import Protocol
from crumb_nb.records import Chunk, Collection, DataError, Qrels, Run, corpus_frame, queries_frame

R = Range


@pytest.mark.parametrize(
    "gold, found, recall, precision, iou, why",
    [
        ([R("d", 0, 10)], [R("d", 0, 10)], 1, 1, 1, "the span itself"),
        ([R("d", 0, 10)], [], 0, 0, 0, "nothing retrieved"),
        ([R("d", 0, 10)], [R("d", 10, 20)], 0, 0, 0, "touching is not overlapping"),
        ([R("d", 0, 10), R("d", 5, 15)], [R("d", 0, 15)], 1, 1, 1, "overlapping spans count a character once"),
        ([R("d", 0, 10), R("e", 0, 30)], [R("e", 0, 30)], 0.75, 1, 0.75, "two documents"),
        ([R("d", 0, 10)], [R("d", 0, 10), R("d", 0, 10)], 1, 0.5, 0.5, "a chunk given twice is paid for twice"),
        ([R("d", 10, 20), R("d", 30, 40)], [R("d", 0, 35)], 0.75, 15 / 35, 15 / 40, "two spans, one chunk"),
        ([R("d", 0, 40)], [R("d", 0, 10), R("d", 20, 30)], 0.5, 1, 0.5, "one span, two chunks"),
    ],
)
def test_by_hand(gold, found, recall, precision, iou, why):
    assert span_scores(gold, found) == pytest.approx((recall, precision, iou)), why


ranges = st.lists(st.tuples(st.sampled_from("de"), st.integers(0, 30), st.integers(1, 12)).map(lambda t: R(t[0], t[1], t[1] + t[2])), max_size=6)


@given(ranges.filter(bool), ranges)
def test_against_sets_of_positions(gold, found):
    e = {(r.doc_id, n) for r in gold for n in range(r.start, r.end)}
    r = [(x.doc_id, n) for x in found for n in range(x.start, x.end)]
    common = len(e & set(r))
    assert span_scores(gold, found) == pytest.approx((common / len(e), common / len(r) if r else 0, common / (len(e) + len(r) - common)))


def test_no_gold_is_an_error():
    for gold in ([], [R("d", 3, 3)]):
        with pytest.raises(ValueError, match="no gold characters"):
            span_scores(gold, [])


TEXT = "# Ferry\n\nThe cable is 24 mm thick.\n\n# Hours\n\nForty-one crossings a day, twenty-six on a Sunday.\n"


@pytest.fixture()
def collection():
    "Two documents, two questions with spans (one of them in two places), one without."
    at, day = TEXT.index("24 mm"), TEXT.index("Sunday")
    spans = [[{"doc_id": "a", "start": at, "end": at + 5}], [{"doc_id": "a", "start": day, "end": day + 6}, {"doc_id": "b", "start": 0, "end": 4}], []]
    queries = queries_frame(["q1", "q2", "q3"], ["How thick?", "How many?", "Why?"], metadata=[json.dumps({"spans": s}) for s in spans])
    qrels = Qrels.from_dict({"q1": {"a": 1.0}, "q2": {"a": 1.0, "b": 1.0}, "q3": {"b": 1.0}})
    return Collection("ferries", corpus_frame(["a", "b"], [TEXT, "Nothing else is known of the other one."]), queries, qrels, Protocol(name="ferries", unit="document", counted="document", gold_rule="holds a span", measures=("R@1",), k=(1,)))


def halves(text, doc_id):
    middle = len(text) // 2
    return [Chunk(doc_id, 0, middle, text[:middle], ("Top",)), Chunk(doc_id, middle, len(text), text[middle:], (), has_words=doc_id == "a")]


def test_chunked_passages(collection):
    plain, kept = chunked(collection.corpus, halves), chunked(collection.corpus, halves, contextual=True, wordless=True)
    assert list(plain.index) == ["a:0", "a:1", "b:0"] and list(kept.index) == ["a:0", "a:1", "b:0", "b:1"]
    assert kept.at["b:0", "text"].startswith("Top\n\nNothing") and plain.at["b:0", "text"].startswith("Nothing")
    assert passage_ranges(plain)["a:1"] == R("a", len(TEXT) // 2, len(TEXT))
    assert plain["parent_id"].tolist() == ["a", "a", "b"]


def test_passages_must_say_where_they_stand(collection):
    with pytest.raises(DataError, match="where it stands"):
        passage_ranges(corpus_frame(["p"], ["text"], ["a"], ["{}"]))


def test_cut_scores(collection):
    passages = chunked(collection.corpus, halves)
    scores, first = cut_scores(collection, passages), len(TEXT) // 2
    assert list(scores.index) == ["q1", "q2"], "a question without spans has no scores"
    assert scores.loc["q1"].tolist() == pytest.approx([1, 5 / first, 5 / first, 1])
    both = (len(TEXT) - first) + 39 // 2
    assert scores.loc["q2"].tolist() == pytest.approx([1, 10 / both, 10 / both, 2])
    assert best_chunks(gold_ranges(collection)["q2"], passage_ranges(passages)) == ["a:1", "b:0"]
    lost = cut_scores(collection, passages.loc[["a:0"]])
    assert lost.loc["q2"].tolist() == [0, 0, 0, 0], "what the cut left out cannot be found"


def test_with_a_run(collection):
    cut = cut_collection(collection, lambda corpus: chunked(corpus, halves))
    assert cut.notes[-1] == f"{collection.name}: documents cut here (contextual)"
    run = Run.from_dict({"q1": {"a:1": 3.0, "a:0": 2.0, "b:0": 1.0}})
    scores = span_measures(run, cut, ["SpanR@1", "SpanR@2", "SpanP@2", "SpanIoU@2"])
    assert scores.values.loc["q1"].tolist() == pytest.approx([0, 1, 5 / len(TEXT), 5 / len(TEXT)])
    assert scores.values.loc["q2"].tolist() == [0, 0, 0, 0], "a question that is not in the run counts 0"
    for bad in ("R@5", "SpanR", "SpanR@0", "SpanR@x"):
        with pytest.raises(DataError, match="unknown measure"):
            span_measures(run, cut, [bad])
    with pytest.raises(DataError, match="not in the collection"):
        span_measures(Run.from_dict({"q1": {"a:9": 1.0}}), cut)


def test_recall_within_a_number_of_characters(collection):
    cut = cut_collection(collection, lambda corpus: chunked(corpus, halves))
    run, first = Run.from_dict({"q1": {"a:1": 2.0, "a:0": 1.0}}), len(TEXT) - len(TEXT) // 2
    at = TEXT.index("24 mm")
    for characters, recall in ((first, 0.0), (first + at + 3, 0.6), (first + at + 5, 1.0), (10_000, 1.0), (0, 0.0)):
        assert span_recall_within(run, cut, characters).to_dict() == {"q1": recall, "q2": 0.0}, characters


def test_ties_follow_the_protocol(collection):
    cut = cut_collection(collection, lambda corpus: chunked(corpus, halves))
    run = Run.from_dict({"q1": {"a:0": 1.0, "a:1": 1.0}})
    assert span_measures(run, cut, ["SpanR@1"]).values.at["q1", "SpanR@1"] == 0, "equal scores: the larger id first, a:1"


def test_equal_size():
    corpus = corpus_frame(["a"], ["word " * 100])

    def pieces(size):
        return chunked(corpus, lambda t, d: [Chunk(d, i, min(i + size, len(t)), t[i : i + size]) for i in range(0, len(t), size)])

    assert match_size(pieces, 10, 5, 400)[0] == 50
    size, passages = match_size(pieces, 7, 5, 400)
    assert (size, len(passages)) == (72, 7)
    assert len(match_size(pieces, 1000, 5, 400)[1]) == 100, "as near as the smallest size comes"
    assert match_size(pieces, 1, 7, 7)[0] == 7
    with pytest.raises(ValueError, match="there is none"):
        match_size(pieces, 1, 8, 7)


def test_the_contextual_cutter_keeps_every_answer(shared_data):
    "On legal agreements with marked clauses: best chunks have recall 1, since the chunks tile the text."
    from crumb_nb.datasets.crumb import load_crumb

    collection = load_crumb("legal_qa", "val", "full_document", shared_data / "crumb_standins")
    scores = cut_scores(collection, chunk_corpus(collection.corpus))
    assert len(scores) == 147 and (scores["recall"] == 1).all() and 0 < scores["iou"].mean() < 0.5
    assert isinstance(span_scores([R("d", 0, 1)], []), SpanScores)
