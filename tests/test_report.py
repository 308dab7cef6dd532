"""The report: data stays text, the same files give the same page, the page has a limit; its neighbours serve and docs."""

import json
import threading
import urllib.error
import urllib.request

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from report_material import BAD_ID, BAD_QUERY, BAD_TITLE, make_folder

from crumb_nb.cli.main import main
from crumb_nb.cli.serve import make_server, served_file
from crumb_nb.docs import dead_links, write_docs
from crumb_nb.drill import by_difference, drill_folder, fit_boards, merge_boards, read_board
from crumb_nb.manifests import Manifest, read_manifest
from crumb_nb.pages import blocks, inline, json_block, write_page
from crumb_nb.records import DataError, corpus_frame
from crumb_nb.report import executed_folder, report_html, write_report


@pytest.fixture()
def made(tmp_path, cache_dir):
    return make_folder(tmp_path)


def boards_of(page: str) -> list[dict]:
    "The data of the drill-down as the browser reads it."
    start = page.index('id="boards">') + len('id="boards">')
    return json.loads(page[start : page.index("</script>", start)])


def test_texts_of_data_are_never_markup(made):
    page = report_html(made)
    outside = page.replace(page[page.index('id="boards">') : page.rindex("<script>")], "")
    for bad in (BAD_ID, BAD_QUERY, BAD_TITLE, "window.hit = 'licence'</script>", "<img src=x"):
        assert bad not in page
    assert outside.count("<script") == 2 and page.count("</script>") == 2  # the data and our own
    assert "Herons &lt;/script&gt;&lt;script&gt;window.hit" in page
    board = boards_of(page)[0]
    assert board["collection"] == "birds <i>" and BAD_QUERY in [q[1] for q in board["queries"]] and BAD_ID in [d[0] for d in board["documents"]]


def test_policy_allows_only_what_the_page_needs(made):
    page = report_html(made)
    policy = page[page.index('Security-Policy" content="') :].split('"')[2].replace("&#39;", "'")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'" and rules["img-src"] == "data:" and "unsafe" not in policy and "http" not in policy
    assert rules["script-src"].startswith("'sha256-") and rules["form-action"] == "'none'"
    assert " style=" not in page and " onclick=" not in page  # neither would work under the policy


def test_the_same_files_give_the_same_bytes(made):
    first = write_report(made).read_bytes()
    assert write_report(made).read_bytes() == first
    record = json.loads((made / "birds_table.json").read_text())
    record["run"] = {"seconds": 12.3, "finished": "2026-01-01T00:00:00Z"}
    (made / "birds_table.json").write_text(json.dumps(record))
    assert write_report(made).read_bytes() == first  # the run block is no part of the page


def test_a_limit_holds_and_what_is_left_out_is_said(tmp_path, cache_dir):
    folder = make_folder(tmp_path, extra=150)
    whole, tight = report_html(folder), report_html(folder, limit=130_000)
    assert len(tight.encode()) <= 130_000 < len(whole.encode())
    board = boards_of(tight)[0]
    assert 0 < board["shown"] < board["total"] == 153 and f"{board['shown']} of 153 queries are on this page" in tight
    assert boards_of(whole)[0]["shown"] == 153
    bare = report_html(folder, limit=2_000)  # no room for a query, a picture or a table: the page says so
    assert "The picture is not on this page" in bare and "is too large for this page" in bare and 'id="boards"' not in bare and "query by query</a>" not in bare


def test_verdicts_cards_licences_and_files(made):
    page = report_html(made, [read_manifest(made.parent / "birds_table.yaml")])
    assert '<span class="verdict ok">1 OK</span>' in page and '<span class="verdict fail">1 FAIL</span>' in page
    assert "Protocol card: birds &lt;i&gt;" in page and "CC BY 4.0 &lt;script&gt;" in page
    assert 'href="birds_table.csv"' in page and "data:image/" in page
    assert 'class="verdict fail"' not in report_html(made)  # expected values stand in the manifest alone
    assert "<code>R@1</code>" in page and "&lt;img src=x onerror=window.hit=" in page


def test_a_board_with_a_lone_surrogate_is_kept_and_read_back(cache_dir):
    "JSON files may hold one, UTF-8 cannot; a board without it keeps its bytes and so its name."
    from crumb_nb.drill import keep_boards, make_board
    from crumb_nb.experiment import run_grid
    from crumb_nb.provenance import canonical_json, text_sha256
    from crumb_nb.datasets.mini import load_mini

    mini = load_mini("locomo", unit="turn")
    results = run_grid(["bm25", "bm25(stemmer=porter)"], [mini], measures=["RR"]).results
    assert keep_boards([mini], results) == [text_sha256(canonical_json(make_board(mini, results)))]
    corpus = mini.corpus
    torn = mini.with_(corpus=corpus_frame(list(corpus.index), ["\ud800 " + t for t in corpus["text"]], list(corpus["parent_id"]), list(corpus["metadata"])))
    results = run_grid(["bm25", "bm25(stemmer=porter)"], [torn], measures=["RR"]).results
    board = read_board(keep_boards([torn], results)[0])
    assert board["documents"] and all(text.startswith("\ud800 ") for _, text in board["documents"].values())
    assert fit_boards(merge_boards([board]), room=2_000_000)[0]["shown"] == len(board["queries"])


def test_changed_files_and_lost_runs_are_said(made):
    (made / "birds_table.md").write_text("| a |\n|---|\n| 1 |\n")
    for path in drill_folder().glob("*.json"):
        path.unlink()
    page = report_html(made, reasons={"birds_figure": "its data is away."})
    assert "Changed or removed since the run: birds_table.md" in page and "its data is away. What stands here is of an earlier run" in page
    assert "are not in the cache" in page and 'id="boards"' not in page


def test_absent_artifacts_are_listed_with_the_reason(made):
    missing = Manifest("gone", made.parent / "gone.yaml", "Gone", "table", "Not there.")
    page = report_html(made, [read_manifest(made.parent / "birds_table.yaml"), missing], {"gone": "no folder given with --data"})
    assert "no folder given with --data" in page and page.index("birds_table") < page.index("birds_figure")
    assert "crumb-nb paper gone</code>" in report_html(made, [missing])


def test_an_empty_folder_says_what_to_do(tmp_path, capsys):
    with pytest.raises(DataError, match="crumb-nb paper"):
        report_html(tmp_path)
    (tmp_path / "mini").mkdir()
    (tmp_path / "mini" / "broken.json").write_text("{")
    with pytest.raises(DataError, match="is not JSON"):
        report_html(tmp_path / "mini")
    assert main(["report", "--out", str(tmp_path / "nowhere")]) == 2 and "crumb-nb paper --profile mini" in capsys.readouterr().err


def test_executed_notebooks_become_pages_without_scripts(made):
    cells = [new_markdown_cell("# Birds\n\n> drawn"), new_code_cell("#| hide\nx = 1", outputs=[new_output("display_data", data={"text/html": "<script>window.hit = 1</script><b>bold</b>"})])]
    executed_folder(made).mkdir(parents=True)
    for name in ("birds_table", "stranger"):
        nbformat.write(new_notebook(cells=cells), executed_folder(made) / f"{name}.ipynb")
    page = write_report(made).read_text()
    assert 'href="notebooks/birds_table.html"' in page
    notebook = (made / "notebooks" / "birds_table.html").read_text()
    assert "default-src 'none'" in notebook and "script-src" not in notebook and "#|" not in notebook and 'href="../report.html#a-birds_table"' in notebook
    assert not (made / "notebooks" / "stranger.html").exists()


def test_report_command(made, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    assert main(["report", "--out", str(made.parent), "--open"]) == 0
    assert opened == [(made / "report.html").resolve().as_uri()] and "report.html" in capsys.readouterr().out
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    assert main(["report", "--out", str(made.parent), "--open"]) == 1 and "crumb-nb serve" in capsys.readouterr().out
    assert main(["report", "--out", str(made.parent), "--papers", str(made.parent / "nowhere")]) == 2


def test_small_markdown():
    assert str(inline("a\\|b **c** `d` <i>e</i> <sup>a</sup>")) == "a|b <b>c</b> <code>d</code> &lt;i&gt;e&lt;/i&gt; <sup>a</sup>"
    table = blocks("| a | b |\n|---|---:|\n" + "| x | 1 |\n" * 7, most=5)[0]
    assert table["right"] == [False, True] and len(table["rows"]) == 5 and table["more"] == 2
    assert "\u2028" not in json_block('"\u2028<"') and json.loads(json_block('"\u2028<&>"')) == "\u2028<&>"
    half = json_block('"\ud800"')
    assert half.encode("utf-8") and json.loads(half) == "\ud800", "a half character in a board must not break the page"


def test_boards_merge_and_keep_the_most_different(made):
    names = json.loads((made / "birds_table.json").read_text())["boards"]
    board = read_board(names[0])
    assert [s["system"] for s in board["systems"]] == ["bm25", "bm25(stemmer=porter)"]  # the oracle ranks nothing
    merged = merge_boards([board, board])
    assert len(merged) == 1 and len(merged[0]["systems"]) == 2 and merged[0]["names"] == names * 2
    packed = fit_boards(merged, 1_000_000)[0]
    assert packed["queries"][0][0] in ("q-2", "q-3")  # where the stemmer matters
    assert [d[1] for d in packed["documents"] if d[0] == BAD_ID] == ["<b onmouseover=window.hit='heading'>Birds</b> > Waders"]
    assert merge_boards([{**board, "systems": board["systems"][:1]}]) == []  # nothing to compare
    (drill_folder() / f"{names[0]}.json").write_text("{}")
    assert read_board(names[0]) is None
    assert by_difference([]) == []


def test_serve_gives_out_one_folder_to_this_machine(tmp_path):
    folder = tmp_path / "mini"
    (folder / "notebooks").mkdir(parents=True)
    (folder / "report.html").write_text("page")
    (folder / "notebooks" / "a b.html").write_text("notebook")
    (folder / ".hidden").write_text("no")
    (tmp_path / "secret").write_text("no")
    (folder / "way-out").symlink_to(tmp_path / "secret")
    server = make_server(folder)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        assert server.server_address[0] == "127.0.0.1"
        base = f"http://127.0.0.1:{server.server_port}"
        with urllib.request.urlopen(base) as answer:
            assert answer.read() == b"page" and answer.headers["X-Content-Type-Options"] == "nosniff"
        with urllib.request.urlopen(f"{base}/notebooks/a%20b.html") as answer:
            assert answer.read() == b"notebook"
        for target, host, code in (("/../secret", None, 404), ("/%2e%2e/secret", None, 404), ("/way-out", None, 404), ("/.hidden", None, 404), ("/notebooks/", None, 404), ("/", "evil.example", 403)):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(base + target, headers={"Host": host} if host else {}))
            assert refused.value.code == code, target
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(base, data=b"x")
        assert refused.value.code == 501  # only reading
        assert main(["serve", "--out", str(tmp_path), "--port", str(server.server_port)]) == 2  # the port is taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert served_file(folder, "/report.html?x=1") == folder / "report.html" and served_file(folder, "/a\0b") is None
    assert main(["serve", "--out", str(tmp_path), "--port", "70000"]) == 2


def test_serve_stops_with_the_keyboard(tmp_path, monkeypatch, capsys):
    (tmp_path / "mini").mkdir()
    (tmp_path / "mini" / "report.html").write_text("page")

    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("http.server.ThreadingHTTPServer.serve_forever", interrupt)
    assert main(["serve", "--out", str(tmp_path), "--port", "0"]) == 0 and "http://127.0.0.1:" in capsys.readouterr().out


def test_docs_link_notebooks_and_find_dead_links(tmp_path, capsys):
    nbs = tmp_path / "nbs"
    (nbs / "lessons").mkdir(parents=True)
    for path, text in ((nbs / "a.ipynb", "# A\n\n> first\n\n[b](lessons/b.ipynb)"), (nbs / "lessons" / "b.ipynb", "# B\n\n[a](../a.ipynb#A)")):
        nbformat.write(new_notebook(cells=[new_markdown_cell(text), new_code_cell("#| default_exp pages"), new_code_cell("1")]), path)
    pages = write_docs(nbs, tmp_path / "docs")
    assert dead_links(pages) == [] and (tmp_path / "docs" / "api" / "crumb_nb.pages.html").is_file()
    api = (tmp_path / "docs" / "api" / "crumb_nb.pages.html").read_text()
    assert "content_policy" in api and 'href="../notebooks/lessons/b.html"' in api
    assert main(["docs", "--nbs", str(nbs), "--out", str(tmp_path / "again")]) == 0
    nbformat.write(new_notebook(cells=[new_markdown_cell("# C\n\n[gone](gone.ipynb) [far](https://example.org/)")]), nbs / "c.ipynb")
    assert main(["docs", "--nbs", str(nbs), "--out", str(tmp_path / "again")]) == 1
    assert "dead link: notebooks/c.html: gone.html" in capsys.readouterr().out
    write_page(tmp_path / "p.html", "p", '<a href="#nowhere">x</a>')
    assert dead_links([tmp_path / "p.html"]) == [((tmp_path / "p.html").resolve(), "#nowhere")]
    with pytest.raises(DataError, match="no notebooks"):
        write_docs(tmp_path / "docs" / "api", tmp_path / "x")
