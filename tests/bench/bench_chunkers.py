"""Chunkers against the parser or tokenizer they stand on, growth from 10 KB to 10 MB, and side by side with semchunk, chonkie and langchain."""

import os
import statistics
import sysconfig
import time
import tokenize
from collections.abc import Callable
from importlib.metadata import distributions
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
TIMES = 5


def python_sources() -> list[str]:
    "The running Python's standard library."
    texts = []
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if "site-packages" not in path.parts:
            try:
                with tokenize.open(path) as file:
                    texts.append(file.read())
            except (UnicodeDecodeError, SyntaxError):
                continue
    return texts


def metadata() -> list[str]:
    "The METADATA of all installed packages, most of it markdown."
    files = sorted({Path(dist._path) / "METADATA" for dist in distributions() if hasattr(dist, "_path")})
    return [path.read_bytes().decode("utf-8") for path in files if path.is_file()]


def seconds(action: Callable, texts: list[str]) -> float:
    "Time of one pass over the texts."
    start = time.perf_counter()
    for text in texts:
        action(text)
    return time.perf_counter() - start


def ratio_row(what: str, ours: Callable, base_name: str, base: Callable, texts: list[str], at_most: float) -> dict:
    "Medians of both and the median ratio; the two take turns, so that a busy moment of the machine falls on both."
    ours(texts[0]), base(texts[0])
    pairs = [(seconds(base, texts), seconds(ours, texts)) for _ in range(TIMES)]
    size = sum(map(len, texts)) / 1e6
    base_s, ours_s = (statistics.median(column) for column in zip(*pairs))
    ratio = statistics.median(b / a for a, b in pairs)
    return {"what": what, "files": len(texts), "MB": round(size, 2), "against": base_name, "its s": round(base_s, 3), "ours s": round(ours_s, 3), "ratio": round(ratio, 3), "at most": at_most, "holds": ratio <= at_most}


def ratios() -> list[dict]:
    "The three promised ratios, and the strictest form of the second: against the block rules alone."
    from markdown_it import MarkdownIt

    from crumb_nb.chunkers import code, markdown
    from crumb_nb.chunkers.contextual import TokenCounter, bundled_tokenizer, contextual_chunks
    from crumb_nb.chunkers.handlers import chunk_text

    sources, pages = python_sources()[::4], metadata()
    tree, full, blocks, tokenizer = code._parser("python"), MarkdownIt("commonmark").enable("table"), markdown._parser(), bundled_tokenizer()
    as_markdown = lambda text: chunk_text(text, handler="markdown")
    fresh = {"counter": TokenCounter()}

    def contextual(text: str) -> None:
        if text is pages[0]:
            fresh["counter"] = TokenCounter()  # every pass begins without remembered words
        contextual_chunks(text, handler="markdown", tokenizer=fresh["counter"])

    return [
        ratio_row("python, structural", lambda text: chunk_text(text, handler="python"), "tree-sitter parse alone", lambda text: tree.parse(text.encode()), sources, 2.0),
        ratio_row("markdown, structural", as_markdown, "markdown-it parse alone", full.parse, pages, 2.0),
        ratio_row("markdown, structural", as_markdown, "markdown-it block rules alone", blocks.parse, pages, 2.0),
        ratio_row("markdown, contextualized to 512 tokens", contextual, "tokenizing alone", tokenizer.encode, pages, 1.5),
    ]


def growth() -> list[dict]:
    "Seconds by size; a text of each size is cut out of the corpus repeated."
    from crumb_nb.chunkers.contextual import contextual_chunks
    from crumb_nb.chunkers.handlers import chunk_text

    python, prose = "\n\n".join(python_sources()), "\n\n".join(metadata())
    kinds = {
        "python": (python, lambda text: chunk_text(text, handler="python")),
        "markdown": (prose, lambda text: chunk_text(text, handler="markdown")),
        "plain": (prose, lambda text: chunk_text(text, handler="plain")),
        "contextual": (prose, lambda text: contextual_chunks(text, handler="markdown")),
    }
    out = []
    for kind, (corpus, chunk) in kinds.items():
        corpus = corpus * (SIZES[-1] // len(corpus) + 1)
        for size in SIZES:
            spent = statistics.median(seconds(chunk, [corpus[:size]]) for _ in range(5 if size <= 1_000_000 else 2))
            out.append({"growth": kind, "characters": size, "seconds": round(spent, 4), "microseconds per character": round(1e6 * spent / size, 3)})
    return out


def side_by_side() -> list[dict]:
    "Other chunkers on the same pages with about the same size: time, exact join, chunks without a word, chunks that break the capacity."
    from crumb_nb.chunkers.baselines import chonkie_chunks, langchain_chunks, semchunk_chunks
    from crumb_nb.chunkers.handlers import chunk_text

    pages = metadata()
    peers = {
        "crumb_nb markdown": lambda text: chunk_text(text, handler="markdown"), "crumb_nb plain": lambda text: chunk_text(text, handler="plain"),
        "semchunk": lambda text: semchunk_chunks(text, size=1300), "chonkie": lambda text: chonkie_chunks(text, size=1300), "langchain": lambda text: langchain_chunks(text, size=1300),
    }  # fmt: skip
    out = []
    for name, chunk in peers.items():
        try:
            chunk(pages[0])
        except ImportError as error:
            out.append({"chunker": name, "not measured": str(error)})
            continue
        spent = statistics.median(seconds(chunk, pages) for _ in range(3))
        made = [[c for c in chunk(page)] for page in pages]
        flat = [c.text for chunks in made for c in chunks]
        exact = sum("".join(c.text for c in chunks) == page for chunks, page in zip(made, pages))
        out.append({"chunker": name, "MB per s": round(sum(map(len, pages)) / 1e6 / spent, 2), "chunks": len(flat), "mean characters": round(statistics.mean(map(len, flat))), "files joined exactly": f"{exact}/{len(pages)}",
                    "chunks without a word": sum(not any(c.isalnum() for c in text) for text in flat), "chunks that end at a heading": sum(_ends_at_heading(text) for text in flat)})  # fmt: skip
    return out


def _ends_at_heading(text: str) -> bool:
    "True if the last line of a chunk is a heading: its section is elsewhere."
    lines = text.rstrip().splitlines()
    return bool(lines) and len(lines) > 1 and lines[-1].startswith("#") and lines[-1].lstrip("#").startswith(" ")


def rows() -> list[dict]:
    "All tables of this bench."
    return [*ratios(), *growth(), *side_by_side()]


def figure(rows: list[dict]):
    "Seconds by size on two logarithmic axes, with a line of slope one."
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(figsize=(5.2, 3.8), layout="constrained")
    measured = [row for row in rows if "growth" in row]
    for kind, marker in zip(dict.fromkeys(row["growth"] for row in measured), "osD^"):
        points = [(row["characters"], row["seconds"]) for row in measured if row["growth"] == kind]
        axes.loglog(*zip(*points), marker=marker, label=kind)
    first = min(row["seconds"] for row in measured if row["characters"] == SIZES[0])
    axes.loglog([SIZES[0], SIZES[-1]], [first / 2, first / 2 * SIZES[-1] / SIZES[0]], linestyle=":", color="0.4", label="slope 1")
    axes.set_xlabel("characters")
    axes.set_ylabel("seconds")
    axes.legend(frameon=False)
    axes.set_title("Chunking time is linear in the length", fontsize=10, loc="left")
    return drawing
