"""Every promise on real files: the running Python's standard library and the METADATA of all installed packages."""

import os
import sysconfig
import tokenize
from importlib.metadata import distributions
from pathlib import Path

import pytest
from chunk_promises import check

from crumb_nb.chunkers.contextual import TokenCounter, contextual_chunks, contextualize, count_tokens
from crumb_nb.chunkers.handlers import chunk_text, read_outline


def stdlib_files():
    "The .py files of the standard library, in order."
    folder = Path(sysconfig.get_paths()["stdlib"])
    return [path for path in sorted(folder.rglob("*.py")) if "site-packages" not in path.parts]


def metadata_texts():
    "Name and METADATA of every installed package, line ends as they are."
    files = sorted({Path(dist._path) / "METADATA" for dist in distributions() if hasattr(dist, "_path")})
    return [(path, path.read_bytes().decode("utf-8")) for path in files if path.is_file()]


def say(capsys, message):
    "Print past pytest's capture: the numbers belong to the test's result."
    with capsys.disabled():
        print(f"\n    {message}")


@pytest.mark.parametrize("budget, capacity", [(1000, 2000), (60, 150)])
def test_standard_library(capsys, budget, capacity):
    files, undecodable, characters, chunks, failed, wordless = stdlib_files(), 0, 0, 0, 0, 0
    if capacity < 1000:
        files = files[::8]  # small chunks are many
    for path in files:
        try:
            with tokenize.open(path) as file:
                text = file.read()
        except (UnicodeDecodeError, SyntaxError):
            undecodable += 1
            continue
        outline, name, _ = read_outline(text, "python")
        made = chunk_text(text, str(path), handler="python", budget=budget, capacity=capacity)
        check(text, made, budget, capacity, label=outline.label or (lambda position: None))
        characters += len(text)
        chunks += len(made)
        failed += name != "python"
        wordless += sum(not chunk.has_words for chunk in made)
    say(capsys, f"{len(files)} .py files, {undecodable} undecodable, {characters / 1e6:.1f} MB, {chunks} chunks, {wordless} wordless, {failed} files cut as plain text")
    assert len(files) - undecodable > 100 and failed <= len(files) // 50


def test_metadata_of_installed_packages(capsys):
    texts, counter, characters, chunks, passages = metadata_texts(), TokenCounter(), 0, 0, 0
    for path, text in texts:
        outline, name, _ = read_outline(text, "markdown")
        made = chunk_text(text, str(path), handler="markdown", header="")
        check(text, made, 1000, 2000, label=outline.label)
        assert name == "markdown"
        contextual = contextual_chunks(text, str(path), handler="markdown", tokenizer=counter)
        check(text, contextual)
        assert max(count_tokens([contextualize(chunk) for chunk in contextual if chunk.has_words], special=True), default=0) <= 512
        characters, chunks, passages = characters + len(text), chunks + len(made), passages + len(contextual)
    say(capsys, f"{len(texts)} METADATA files, {characters / 1e6:.1f} MB, {chunks} chunks, {passages} contextualized passages")
    assert len(texts) > 20


def test_real_documents_keep_every_promise(shared_data, capsys):
    files = [path for folder in ("headed_markdown", "chunk_spans") for path in sorted((shared_data / folder).rglob("*")) if path.suffix in (".md", ".txt")]
    if not files:
        pytest.skip("no documents below headed_markdown/ and chunk_spans/")
    counter = TokenCounter()
    for path in files:
        text = path.read_bytes().decode("utf-8")
        outline, name, _ = read_outline(text, "markdown")
        check(text, chunk_text(text, handler="markdown"), 1000, 2000, label=outline.label)
        check(text, contextual_chunks(text, handler="markdown", tokenizer=counter))
    say(capsys, f"{len(files)} documents, {sum(os.path.getsize(path) for path in files) / 1e6:.1f} MB")
