"""Properties of the chunkers on arbitrary Unicode: tiling, exact join, slices, limits, words, determinism, termination."""

import os
import random

import pytest
from chunk_promises import WORD, check, solid
from hypothesis import given, settings
from hypothesis import strategies as st

from crumb_nb.chunkers.contextual import TokenCounter, contextual_chunks, contextualize, count_tokens
from crumb_nb.chunkers.cut import CharLimits, Outline, Parts, cut, label_finder, to_chunks
from crumb_nb.chunkers.handlers import HANDLERS, choose_handler, chunk_text, read_outline

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
TIMES = 10 if os.environ.get("CRUMB_NB_MORE_EXAMPLES") else 1  # the flag: ten times as many


def examples(ci):
    "Number of examples: `ci` under HYPOTHESIS_PROFILE=ci, a tenth while developing, ten times as many with the flag."
    return settings(max_examples=TIMES * (ci if PROFILE == "ci" else max(50, ci // 10)), deadline=None)


PIECES = [
    "# A\n\n", "## B\n", "Title\n=====\n", "```sh\n", "```\n", "~~~\n", "````\n", "- item\n", "  - nested\n", "1. one\n", "> quote\n", "| a | b |\n|---|---|\n", "| 1 | 5,120 |\n",
    "---\n", "***\n", "<!-- note -->\n", "<div>\n", "[x]: /u\n", "def f():\n    return 1\n", "class C:\n", "    # why\n", "@wraps\n", "x = [1, 2]\n", "if (a) {\n", "}\n", ";;\n", "'''", '"',
    "int main() {", "func f() {}\n", "fn g() {}\n", "Maya: hello\n", "[10:02] Tom: yes\n", "word ", "two words. ", "Dr. Lee said: \"no!\" ", "\n", "\n\n", "\r\n", "\r", "\t", " ", "   \n", "\x00", "\ufeff",
    "\x0c", "\x0b", "\x1c", "\x85", "\u2028", "\u2029", "\u00a0", "\u200b", "e\u0301", "👩‍💻", "🇫🇷", "文字。", "ä", "\ud7ff", "�", "____", "a" * 40, " " * 60, "-" * 50,
]  # fmt: skip
mixed = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=6)), max_size=25).map("".join)
texts = st.one_of(st.text(max_size=120), mixed)
limits = st.integers(1, 60)


@st.composite
def outlines(draw, length):
    "Any outline a handler could hand over: nested ends inside the text, disjoint labels."

    def parts(low, high, depth):
        ends = sorted(draw(st.sets(st.integers(low + 1, high), max_size=5))) if high > low else []
        inside = {i: parts(ends[i - 1] if i else low, end, depth - 1) for i, end in enumerate(ends)} if depth else {}
        return Parts(ends, open=inside.get)

    edges = sorted(draw(st.sets(st.integers(0, length), max_size=8)))
    labels = list(zip(edges[::2], edges[1::2]))
    return Outline(parts(0, length, 2), label_finder(labels) if labels else None)


@examples(5000)
@given(st.data(), texts, limits, limits)
def test_cutter_keeps_every_promise_for_any_outline(data, text, budget, capacity):
    outline = data.draw(outlines(len(text)))
    pieces = cut(text, outline, CharLimits(text, budget, capacity))
    chunks = to_chunks(text, pieces, outline, "d", "any", 1)
    check(text, chunks, budget, capacity, label=outline.label)
    assert pieces == cut(text, outline, CharLimits(text, budget, capacity))
    if outline.label:
        assert all(outline.label(p.word) is None for p in pieces if p.has_words) or not any(outline.label(m.start()) is None for m in WORD.finditer(text))


@examples(5000)
@given(texts, limits, limits)
def test_plain_keeps_every_promise(text, budget, capacity):
    chunks = chunk_text(text, "d", handler="plain", budget=budget, capacity=capacity)
    check(text, chunks, budget, capacity)
    assert chunks == chunk_text(text, "d", handler="plain", budget=budget, capacity=capacity)
    assert all(c.handler == "plain" for c in chunks)


@pytest.mark.parametrize("handler", [name for name in HANDLERS if name != "plain"])
@examples(700)
@given(mixed, limits, limits)
def test_parsers_keep_every_promise(handler, text, budget, capacity):
    outline, name, _ = read_outline(text, handler)
    chunks = chunk_text(text, "d", handler=handler, budget=budget, capacity=capacity)
    check(text, chunks, budget, capacity, label=outline.label)
    assert chunks == chunk_text(text, "d", handler=handler, budget=budget, capacity=capacity)
    assert all(c.handler == name and (name == handler or name.startswith(f"plain ({handler} failed")) for c in chunks)


@examples(700)
@given(mixed, st.integers(16, 60), st.sampled_from(["plain", "markdown", "python"]))
def test_contextual_chunks_never_exceed_their_tokens(text, most, handler):
    chunks = contextual_chunks(text, "d", handler=handler, max_tokens=most, tokenizer=COUNTER)
    check(text, chunks)
    for c, tokens in zip(chunks, count_tokens(map(contextualize, chunks), special=True)):
        assert tokens <= most or not c.has_words
    assert all(WORD.search(c.text) for c in chunks if c.has_words)


COUNTER = TokenCounter()


@examples(700)
@given(texts)
def test_word_sums_are_the_tokens_of_the_text(text):
    text = "".join(c for c in text if not 0xD800 <= ord(c) <= 0xDFFF)
    units = [u for u in text.replace("\n", " ").replace("\t", " ").replace("\r", " ").split(" ") if u]
    assert COUNTER.words(units).sum() == COUNTER.text(text)


@given(st.text(st.characters(categories=["Cs", "Ll", "Zs", "Po"]), max_size=40))
def test_lone_surrogates_are_text_like_any_other(text):
    check(text, chunk_text(text, handler="markdown", budget=5, capacity=9), capacity=9)
    check(text, chunk_text(text, handler="python", budget=5, capacity=9))
    check(text, contextual_chunks(text, max_tokens=16))


@examples(1000)
@given(texts, st.text(max_size=12))
def test_a_handler_is_chosen_for_any_text_and_name(text, filename):
    assert choose_handler(text, filename) in HANDLERS
    assert choose_handler(text) in HANDLERS


def one_line(kind, size=1_000_000):
    "A one-line file of about a megabyte."
    noise = random.Random(3)
    return {
        "word": lambda: "x" * size,
        "words": lambda: "word " * (size // 5),
        "blank": lambda: "a" + " " * size + "b",
        "dots": lambda: "." * size + "a",
        "tail": lambda: "a" + "." * size,
        "minified": lambda: "".join(f"f{noise.randrange(99)}(a,{noise.randrange(9999)});" for _ in range(size // 11)),
        "sums": lambda: "x=" + "+".join(f"a{n}" for n in range(size // 7)),
        "quotes": lambda: ">" * 3000 + "a",
        "brackets": lambda: "(" * 20000 + ")" * 20000 + "a",
        "chinese": lambda: "文字" * (size // 2),
        "pipes": lambda: "|a" * (size // 20),
        "nul": lambda: "\x00a" * (size // 20),
    }[kind]()


@pytest.mark.parametrize("kind", ["word", "words", "blank", "dots", "tail", "minified", "sums", "quotes", "brackets", "chinese", "pipes", "nul"])
@pytest.mark.parametrize("handler, size", [("plain", 1_000_000), ("markdown", 1_000_000), ("python", 1_000_000), ("javascript", 200_000)])
def test_one_line_megabytes(kind, handler, size):
    text = one_line(kind, size)
    outline, name, version = read_outline(text, handler)
    chunks = to_chunks(text, cut(text, outline, CharLimits(text, 1000, 2000)), outline, "d", name, version)
    check(text, chunks, None, 2000, label=outline.label or (lambda position: None))
    assert sum(not c.has_words for c in chunks) == 0 or kind in ("blank", "dots", "tail", "brackets", "quotes")


@pytest.mark.parametrize("kind", ["word", "words", "blank", "dots", "minified", "chinese"])
def test_one_line_megabytes_in_tokens(kind):
    text = one_line(kind, 100_000)
    chunks = contextual_chunks(text, handler="plain")
    check(text, chunks)
    assert max(count_tokens([contextualize(c) for c in chunks if c.has_words], special=True)) <= 512
    assert solid("".join(c.text for c in chunks)) == solid(text)
