"""Known faults of other chunkers (cases areas chunk and tokens), each as a value of ours; the handlers, contextual chunks and the command line."""

import json

import pytest
from chunk_promises import check
from tokenizers import Tokenizer, models, pre_tokenizers

from crumb_nb.chunkers import chat, code, cut, markdown
from crumb_nb.chunkers.contextual import (
    TokenCounter, bundled_tokenizer, chunk_corpus, contextual_chunks, contextualize, count_tokens, load_tokenizer, spans_to_labels,
)  # fmt: skip
from crumb_nb.chunkers.handlers import HANDLERS, choose_handler, chunk_file, chunk_text, file_header, read_outline
from crumb_nb.chunkers.view import view_chunks
from crumb_nb.cli.main import main as crumb_nb_command
from crumb_nb.record_files import read_text
from crumb_nb.records import Chunk, DataError, corpus_frame


def paths_of_marks(text, chunks):
    "For each MARK word the heading path of the chunk that holds it."
    return {f"MARK{n}": list(next(c for c in chunks if f"MARK{n}" in c.text).headings) for n in range(9) if f"MARK{n}" in text}


@pytest.mark.parametrize("case", ["CH01", "CH03", "CH04", "CH06"])
def test_headings_and_paths_as_in_the_cases(cases, case):
    given, expected = cases[case]["input"], cases[case]["expected"]
    for name, text in given["texts"].items():
        assert [[h.level, h.title] for h in markdown.markdown_headings(text)] == expected[name]["headings"], name
        chunks = chunk_text(text, handler="markdown", budget=8, capacity=60)
        assert {mark: path for mark, path in paths_of_marks(text, chunks).items() if mark in expected[name]["header_path"]} == expected[name]["header_path"], name
        assert "".join(c.text for c in chunks) == text


def test_fences_without_the_case_file():
    text = "# A\n\n````md\n```\n# no\n```\n# no\n````\n\n~~~\n~~~ruby\n# no\n~~~\n\n    # no\n\n## B\n\nend\n"
    assert [(h.level, h.title) for h in markdown.markdown_headings(text)] == [(1, "A"), (2, "B")]
    assert [h.title for h in markdown.markdown_headings("# A\n\n```\n# no\n")] == ["A"]  # an unclosed fence runs to the end


def test_sections_of_equal_title_are_different_passages():
    text = "# Root\n\n## Notes\n\none\n\n# Other\n\n## Notes\n\ntwo\n"
    passages = chunk_corpus(corpus_frame(["d"], [text]), handler="markdown", max_tokens=16)
    assert passages.index.is_unique
    assert [json.loads(m)["headings"] for m in passages["metadata"]][-1] == ["Other", "Notes"]


def test_exact_join_for_every_kind_and_limit(cases):
    given = cases["CH07"]["input"]
    for text in given["texts"]:
        for kind in given["kinds"]:
            for limit in given["limits"]:
                for options in ({"budget": limit}, {"budget": limit, "capacity": limit}):
                    chunks = chunk_text(text, handler=kind, **options)
                    check(text, chunks, limit, options.get("capacity"), label=read_outline(text, kind)[0].label)


def test_characters_not_bytes(cases):
    given = cases["CH09"]["input"]
    for limit in given["a"]["limits"]:
        chunks = chunk_text(given["a"]["text"], handler="plain", budget=limit)
        assert all(c.text and "\ufffd" not in c.text for c in chunks) and "".join(c.text for c in chunks) == given["a"]["text"]
    text = given["b"]["text"]
    assert len(text) == 70 and len(text.encode()) == 75
    chunks = chunk_text(text, filename="b.py", budget=20, header="")
    assert next(c for c in chunks if "def g" in c.text).text.startswith("def g():")
    assert all(c.text == text[c.start : c.end] for c in chunks)


def test_bytes_that_are_no_utf8_name_the_file(tmp_path):
    path = tmp_path / "latin1.txt"
    path.write_bytes(b"caf\xe9 ok\n")
    with pytest.raises(DataError, match="latin1.txt.*not UTF-8"):
        chunk_file(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_text(tmp_path / "absent.txt")


def test_every_chunk_has_a_word(cases):
    given = cases["CH11"]["input"]
    assert chunk_text(given["empty"]) == []
    white = chunk_text(given["white"])
    assert len(white) == 1 and not white[0].has_words and white[0].text == given["white"]
    assert chunk_corpus(corpus_frame(["w"], [given["white"]])).empty
    for name, handlers in {"code": ["c", "java", "javascript", "code", "plain"], "md": ["markdown", "plain"]}.items():
        for handler in handlers:
            for limit in (1, 3, 8, 30):
                chunks = chunk_text(given[name], handler=handler, budget=limit)
                check(given[name], chunks, limit, label=read_outline(given[name], handler)[0].label)
                assert all(c.has_words for c in chunks)


def test_table_rows_are_not_cut(cases):
    text = cases["CH12"]["input"]["text"]
    chunks = contextual_chunks(text, handler="markdown", max_tokens=cases["CH12"]["input"]["limit_tokens"])
    assert "".join(c.text for c in chunks) == text
    assert all(c.text.endswith("|\n") for c in chunks) and sum(f"| row{n} | {n},120 |\n" in c.text for c in chunks for n in range(40)) == 40
    assert max(count_tokens(map(contextualize, chunks), special=True)) <= 40
    assert len(chunks) > 5


def test_token_counts(cases):
    expected = cases["TK01"]["expected"]
    texts = ["hello", "word " * 500]
    assert count_tokens(texts) == expected["counts_without_special"] and count_tokens(texts, special=True) == expected["counts_with_special"]


def test_all_rules_of_the_cutter_in_one_text():
    text = "# licence\n\n" + "def a():\n    return 1\n\n\ndef b():\n    return 2\n" + " " * 500 + "\n# end\n"
    chunks = chunk_text(text, handler="python", budget=20, capacity=100)
    check(text, chunks, 20, 100, label=read_outline(text, "python")[0].label)
    assert chunks[0].text.startswith("# licence\n\ndef a") and any(not c.has_words for c in chunks)


@pytest.mark.parametrize(
    "filename, text, handler",
    [
        ("x/y.rs", "", "rust"), ("a.H", "", "c"), ("setup.CFG", "[a]\nb = 1\n", "plain"), ("METADATA", "", "markdown"), ("noname", "#!/usr/bin/env node\nx()\n", "javascript"),
        ("", "package a;\nimport b.C;\npublic class D {\n}\n", "java"), ("", "package main\n\nfunc main() {\n}\n", "go"), ("", "use a::b;\nfn main() {\n}\n", "rust"),
        ("", "const a = 1;\nfunction f(x) {\n}\n", "javascript"), ("", "\n\n```\ncode\n```\n", "markdown"), ("talk.chat", "", "chat"),
    ],
)  # fmt: skip
def test_choice_of_handler(filename, text, handler):
    assert choose_handler(text, filename) == handler


def test_every_language_reads_its_own_source_and_names_the_path():
    sources = {
        "python": "class Box:\n    @cached\n    def size(self):\n        return 1\n",
        "javascript": "class Box {\n  size() {\n    return 1;\n  }\n}\n",
        "typescript": "class Box {\n  size(): number {\n    return 1;\n  }\n}\n",
        "tsx": "class Box {\n  size() {\n    return <b>1</b>;\n  }\n}\n",
        "java": "class Box {\n  @Override\n  int size() {\n    return 1;\n  }\n}\n",
        "go": "package box\n\nfunc size() int {\n\treturn 1\n}\n",
        "rust": "mod box_ {\n  #[inline]\n  fn size() -> u8 {\n    return 1;\n  }\n}\n",
        "c": "struct Box {\n  int size;\n  int return_1;\n};\n",
        "cpp": "class Box {\n  int size() {\n    return 1;\n  }\n};\n",
    }
    assert set(sources) == set(code.LANGUAGES)
    for language, text in sources.items():
        chunks = chunk_text(text, handler=language, budget=9, capacity=80)
        check(text, chunks, 9, 80, label=read_outline(text, language)[0].label)
        assert all(c.handler == language for c in chunks)
        assert any(c.headings for c in chunks)


def test_decorators_and_comments_go_with_what_they_announce():
    text = "import os\n\n# why b\n@wraps(os)\ndef b():\n    return 2\n"
    chunks = chunk_text(text, handler="python", budget=30, capacity=200)
    assert [c.text for c in chunks] == ["import os\n\n", "# why b\n@wraps(os)\ndef b():\n    return 2\n"]


def test_a_parser_that_is_not_installed_is_recorded(monkeypatch):
    monkeypatch.setitem(code.LANGUAGES, "python", code.LANGUAGES["python"]._replace(module="tree_sitter_absent"))
    code._parser.cache_clear()
    try:
        chunks = chunk_text("x = 1\n", handler="python")
        assert chunks[0].handler == "plain (python failed: ImportError)" and chunks[0].text == "x = 1\n"
    finally:
        code._parser.cache_clear()


def test_unknown_handler_and_impossible_limits():
    with pytest.raises(ValueError, match="no handler 'pdf'"):
        chunk_text("x", handler="pdf")
    with pytest.raises(ValueError, match="capacity"):
        chunk_text("x", header="h" * 99, capacity=50)
    with pytest.raises(ValueError, match="at least 16"):
        contextual_chunks("x", max_tokens=5)
    assert file_header("a/very/long/path.py", 24) == "th.py\n" and file_header("a.py", 4) == ""


def test_chat_beginnings():
    long_start = "A long introduction. " * 10 + "\n\nAnn: hi\nBob: ho\n"
    assert chat.outline(long_start).parts.ends[0] == long_start.index("Ann:")
    assert chat.outline("no turns").parts.ends == [8] and chat.outline("no turns").headings(0) == ()
    assert not chat.is_chat("")


def test_flat_outline_is_cut_by_size():
    limits = cut.CharLimits("a b c", 1, 9)
    assert [(p.start, p.end) for p in cut.cut("a b c", cut.FLAT, limits)] == [(0, 2), (2, 4), (4, 5)] and limits.fits(0, 5)


def test_long_paths_are_shortened_from_outside_and_then_inside():
    chunks = contextual_chunks(f"# {'very long title ' * 40}\n\nbody text here\n", handler="markdown", max_tokens=24)
    assert max(count_tokens(map(contextualize, chunks), special=True)) <= 24
    assert chunks[0].headings[0].startswith("very long title") and len(chunks[0].headings[0]) < 200
    assert all(c.text for c in contextual_chunks(f"# {'x' * 5000}\n\nbody\n", handler="markdown", max_tokens=16))


def test_other_tokenizers_are_checked_chunk_by_chunk(tmp_path):
    words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(add_prefix_space=False), pre_tokenizers.Digits(individual_digits=True)])
    words.enable_truncation(5)
    words.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path / "tokenizer.json")
    assert not TokenCounter(tokenizer).additive and count_tokens(["a 1 b 22"], tokenizer)[0] > 5
    text = "# H\n\n" + "alpha 12345 beta, gamma. " * 40
    chunks = contextual_chunks(text, handler="markdown", max_tokens=16, tokenizer=tokenizer)
    check(text, chunks)
    assert max(count_tokens(map(contextualize, chunks), tokenizer, special=True)) <= 16


def test_the_counter_forgets_long_words_and_bounds_its_memory(monkeypatch):
    counter = TokenCounter()
    assert counter.words(["é" * 70, "ok"]).tolist()[1] == 1 and "é" * 70 not in counter._words and "ok" in counter._words
    monkeypatch.setattr("crumb_nb.chunkers.contextual._REMEMBERED", 1)
    assert counter.words(["two", "three", "four"]).tolist() == [1, 1, 1] and not counter._words


def test_corpus_metadata_chooses_the_handler_and_wordless_are_counted():
    corpus = corpus_frame(["a", "b", "c"], ["x = 1\n", "   ", "text"], metadata=['{"filename": "a.py"}', "{}", "[]"])
    passages = chunk_corpus(corpus, contextual=False)
    assert json.loads(passages.loc["a:0", "metadata"])["handler"] == "python" and passages.attrs["wordless"] == 1
    assert passages.loc["c:0", "text"] == "text" and list(passages["parent_id"]) == ["a", "c"]
    assert chunk_corpus(corpus[["text"]]).loc["a:0", "parent_id"] == "a"


def test_spans_to_labels_reads_the_rules_strictly():
    chunks = [Chunk("d", 0, 4, "abcd"), Chunk("d", 4, 8, "    ", has_words=False), Chunk("d", 8, 12, "efgh")]
    assert spans_to_labels(chunks, [(2, 9)], "share") == {"d:0": 2 / 3, "d:2": 1 / 3}
    assert spans_to_labels(chunks, [(2, 9)], "majority") == {"d:0": 1.0}
    assert spans_to_labels(chunks, [(5, 7)]) == {}  # white space only
    assert spans_to_labels(chunks, [(0, 1), (0, 4)], "share") == {"d:0": 1.0}
    for bad in ([(3, 3)], [(5, 2)], [(-1, 2)]):
        with pytest.raises(ValueError, match="empty or inverted"):
            spans_to_labels(chunks, bad)
    with pytest.raises(ValueError, match="rule"):
        spans_to_labels(chunks, [(0, 1)], "most")


def test_gold_spans_of_real_documents_land_in_passages_that_hold_them(shared_data):
    folder = shared_data / "chunk_spans"
    if not (folder / "questions.jsonl").is_file():
        pytest.skip("no chunk_spans/questions.jsonl")
    counter, made = TokenCounter(), {}
    rows = [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    for row in rows:
        name = row["document_id"]
        if name not in made:
            text = read_text(folder / "documents" / f"{name}.md")
            made[name] = text, contextual_chunks(text, name, tokenizer=counter)
        text, chunks = made[name]
        for reference in row["references"]:
            assert text[reference["start"] : reference["end"]] == reference["text"]
            shares = spans_to_labels(chunks, [(reference["start"], reference["end"])], "share")
            assert abs(sum(shares.values()) - 1) < 1e-9
    assert len(rows) > 10


def test_view_escapes_and_marks(tmp_path):
    text = "# <script>alert(1)</script>\n\nwords\x00\x7f\ud800\n\n<!-- a label -->\n\nmore\n"
    view = view_chunks(text, "a<b>.md", budget=8, capacity=60)
    page = view.page()
    assert "<script>" not in page and "a&lt;b&gt;.md" in page and "␀␡" in page and '<span class="label"' in page
    assert str(view) == view._repr_html_() and page.encode("utf-8")
    assert "wordless, not indexed" in str(view_chunks("   ", handler="plain")) and "empty" in str(view_chunks(""))


def test_command_line(tmp_path, capsys):
    (tmp_path / "a.md").write_text("# Keys\n\nTwo hang by the door.\n\n## Spare\n\nOne is with the neighbour.\n")
    (tmp_path / "b.py").write_text("def f():\n    return 1\n")
    (tmp_path / "c.bin").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "blank.txt").write_text("  \n")
    (tmp_path / ".hidden").write_text("no")

    def run(*arguments):
        status = crumb_nb_command(["chunk", *map(str, arguments)])
        return status, *capsys.readouterr()

    status, out, _ = run(tmp_path / "a.md", "--show", "--budget", 30, "--capacity", 90)
    assert status == 0 and "Keys > Spare" in out and "One is with the neighbour." in out
    status, out, _ = run(tmp_path, "--stats")
    assert status == 0 and "(empty)" in out and "python" in out and "1 files passed over" in out and "hidden" not in out
    status, out, _ = run(tmp_path)
    assert "wordless" in out and "b.py:0" in out
    status, out, _ = run(tmp_path / "a.md", "--tokens", 16)
    assert status == 0 and out.count("a.md:") >= 2
    status, out, _ = run(tmp_path / "a.md", "--html", tmp_path / "out.html")
    assert status == 0 and "<section>" in (tmp_path / "out.html").read_text()
    for arguments in ((tmp_path / "absent",), (tmp_path / "c.bin",), (tmp_path, "--html", "x"), (tmp_path / "a.md", "--tokens", 3), (tmp_path / "a.md", "--budget", 0)):
        status, _, err = run(*arguments)
        assert status == 2 and err and "Traceback" not in err


def test_handlers_have_versions():
    assert all(handler.version >= 1 and name == handler.name for name, handler in HANDLERS.items())
    assert bundled_tokenizer() is bundled_tokenizer()
