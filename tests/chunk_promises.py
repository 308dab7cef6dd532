"""The promises of the chunkers as one function, used by the property tests and the sweep over real files."""

import re
from bisect import bisect_left

WORD = re.compile(r"\w")


def solid(text):
    "Number of non-white-space characters."
    return len("".join(text.split()))


def check(text, chunks, budget=None, capacity=None, label=None):
    "Assert every promise of the cutter for the chunks of one text."
    if not text:
        assert chunks == []
        return
    assert chunks[0].start == 0 and chunks[-1].end == len(text), "cover"
    assert all(a.end == b.start for a, b in zip(chunks, chunks[1:])), "tiling"
    assert all(c.start < c.end and c.text == text[c.start : c.end] for c in chunks), "slices"
    assert "".join(c.text for c in chunks) == text, "exact join"
    if not WORD.search(text):
        assert len(chunks) == 1 and not chunks[0].has_words, "a text without words is one wordless chunk"
        return
    assert any(c.has_words for c in chunks), "a text with words has a chunk with words"
    for c in chunks:
        assert not c.has_words or WORD.search(c.text), "has_words means a word"
    if capacity is not None:
        assert max(c.end - c.start for c in chunks) <= capacity, "capacity"
        check_words(text, chunks, capacity, label)
    if budget is not None:
        for n, c in enumerate(chunks):
            if c.has_words:
                first, last = content(c, label, n + 1 == len(chunks))
                assert solid(c.text[first:last]) <= budget, "budget, counted from the first word"


def content(chunk, label, final):
    "Where the content of a chunk begins and, if it is the final one (the end of a text may be wordless), where it ends."
    places = [m.start() for m in WORD.finditer(chunk.text)]
    free = lambda place: label is None or label(chunk.start + place) is None
    first = next(filter(free, places), places[0])
    last = next(filter(free, reversed(places)), places[-1]) + 1 if final else len(chunk.text)
    return first, last


def check_words(text, chunks, capacity, label):
    "A chunk is wordless only where the words of content around it are farther apart than a chunk can reach."
    wordless = [c for c in chunks if not c.has_words]
    free = lambda place: label is None or label(place) is None
    places = [m.start() for m in WORD.finditer(text) if free(m.start())] if wordless else []
    for c in wordless:
        i = bisect_left(places, c.start)
        assert i == bisect_left(places, c.end), "has_words is true to the text"
        before, after = places[i - 2] if i > 1 else -1, places[i] if i < len(places) else len(text)
        assert after - before > capacity, "wordless only where no word is in reach"
