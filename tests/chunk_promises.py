"""The promises of the chunkers as one function, used by the property tests and the sweep over real files."""

import re

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
        if label is None:
            check_words(text, chunks, capacity)
    if budget is not None:
        for n, c in enumerate(chunks):
            if c.has_words:
                words = [m.start() for m in WORD.finditer(c.text) if label is None or label(c.start + m.start()) is None] or [WORD.search(c.text).start()]
                body = c.text[words[0] :] if n + 1 < len(chunks) else c.text[words[0] : words[-1] + 1]  # the end of a text may be wordless
                assert solid(body) <= budget, "budget, counted from the first word"


def check_words(text, chunks, capacity):
    "Without labels: a chunk is wordless only where the words around it are farther apart than a chunk can reach."
    for c in chunks:
        assert c.has_words == bool(WORD.search(c.text)), "has_words is true to the text"
        if not c.has_words:
            before = [m.start() for m in WORD.finditer(text, max(0, c.start - 2 * capacity), c.start)]
            after = WORD.search(text, c.end)
            reach = (after.start() if after else len(text)) - (before[-2] if len(before) > 1 else -1)
            assert reach > capacity, "wordless only where no word is in reach"
