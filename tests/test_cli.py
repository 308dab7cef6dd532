"""The command line: exit codes, errors in one sentence, a fast --help, every command reachable."""

import argparse
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from crumb_nb.cli import common
from crumb_nb.cli.main import COMMANDS, main, parser
from crumb_nb.record_files import read_run, read_scores, write_qrels, write_run
from crumb_nb.records import DataError, Qrels, Run

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def apart(tmp_path, cache_dir, monkeypatch):
    "Each test in a folder and cache of its own."
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRUMB_NB_DATA", "")


def said(capsys, *arguments: str) -> tuple[int, str, str]:
    "Exit code, standard output, standard error."
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


# --- the dispatcher --------------------------------------------------------------------------------------------------------


def test_help_is_fast_and_imports_no_command():
    "0.5 s is the promise; what is tested is that nothing heavy is imported, since a clock on a loaded machine proves nothing."
    script = "import sys, crumb_nb.cli.main as m\ntry: m.main(['--help'])\nexcept SystemExit as e: code = e.code\nprint('heavy', [n for n in ('numpy', 'pandas', 'torch', 'matplotlib') if n in sys.modules], code)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "heavy [] 0" and all(name in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name, capsys):
    if importlib.util.find_spec(COMMANDS[name][0]) is None:
        pytest.skip(f"{COMMANDS[name][0]} is not there yet")
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    out = capsys.readouterr().out
    assert left.value.code == 0 and f"crumb-nb {name}" in out and "example" in out.lower()


def test_wrong_arguments_exit_with_2(capsys):
    for arguments in (["nonsense"], ["paper", "--profile", "real"], ["run"], ["paper", "--jobs", "0"], ["cache", "burn"], ["run", "bm25", "--on", "locomo", "--asked", "ten"]):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 2
    assert said(capsys)[0] == 0, "without a command the help is printed"


def test_version(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0 and re.match(r"crumb-nb \d+\.\d+", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (DataError("broken", path="a.jsonl", line=3), 2, "a.jsonl:3: broken"),
        (ImportError("needs the extra `chunkers`"), 2, "needs the extra"),
        (FileNotFoundError(2, "No such file or directory", "x.jsonl"), 2, "x.jsonl: No such file"),
        (OSError("disk"), 2, "disk"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_a_user_can_repair_is_one_sentence(monkeypatch, capsys, error, code, text):
    def broken(args):
        raise error

    monkeypatch.setattr("crumb_nb.cli.cache.main", broken)
    got, out, err = said(capsys, "cache", "path")
    assert got == code and text in err and "Traceback" not in err and err.count("\n") <= 2
    if not isinstance(error, KeyboardInterrupt):
        monkeypatch.setenv("CRUMB_NB_DEBUG", "1")
        with pytest.raises(type(error)):
            main(["cache", "path"])


def test_our_own_faults_keep_their_traceback(monkeypatch):
    monkeypatch.setattr("crumb_nb.cli.cache.main", lambda args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["cache", "path"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "zscore(bm25, bm25(b=0.5), weights=nan:1)", "--on", "locomo", "--no-cache"], "one finite number per run is expected"),
        (["run", "rrf(bm25, bm25(b=0.5), k=-1)", "--on", "locomo", "--no-cache"], "k=-1: a number of at least 0 is expected"),
        (["run", "windows(bm25, how=foo)", "--on", "locomo", "--no-cache"], "how=foo: choose from max"),
        (["run", "run(a.jsonl, format=foo)", "--on", "locomo", "--no-cache"], "format='foo': choose one of"),
    ],
    ids=lambda value: "" if isinstance(value, str) else value[1],
)
def test_an_argument_that_the_package_refuses_is_one_sentence(capsys, arguments, text):
    code, _, err = said(capsys, *arguments)
    assert code == 2 and err.startswith("crumb-nb: ") and text in err and err.count("\n") == 1


def test_a_value_error_that_the_package_did_not_raise_keeps_its_traceback(monkeypatch):
    "Of numpy, of int(), of a user's own function: nobody worded it for the reader, and the place is needed."
    def users(args):
        raise ValueError("from a user's own module")

    def bytes_of(args):
        b"\xff".decode("utf-8")

    for broken in (users, bytes_of, lambda args: int("x"), lambda args: __import__("numpy").zeros(-1)):
        monkeypatch.setattr("crumb_nb.cli.cache.main", broken)
        with pytest.raises(ValueError):
            main(["cache", "path"])


def test_a_closed_pipe_is_no_error():
    done = subprocess.run(f"{sys.executable} -m crumb_nb.cli.main 2>&1; {sys.executable} -c \"from crumb_nb.cli.main import main; import sys; sys.exit(main(['info', 'systems']))\" | head -1", shell=True, capture_output=True, text=True, cwd=ROOT)
    assert "Traceback" not in done.stdout + done.stderr


def test_an_absent_part_is_named(monkeypatch, capsys):
    monkeypatch.setitem(COMMANDS, "absent", ("crumb_nb.cli.absent", "not there"))
    code, _, err = said(capsys, "absent")
    assert code == 2 and "crumb_nb.cli.absent" in err
    assert "absent" in parser().format_help()


# --- naming a collection ---------------------------------------------------------------------------------------------------


def test_data_alone_means_local_and_the_variable_is_used(monkeypatch, tmp_path):
    names = lambda **more: common.data_of(argparse.Namespace(**{"profile": None, "data": None, **more}))
    assert names() == ("mini", "") and names(data=str(tmp_path)) == ("local", str(tmp_path))
    monkeypatch.setenv("CRUMB_DATA", str(tmp_path))
    assert names() == ("mini", "") and names(profile="local") == ("local", str(tmp_path))
    with pytest.raises(DataError, match="not a folder"):
        names(data=str(tmp_path / "absent"))


def test_settings_are_typed():
    assert common.settings(["unit=turn", "date_line=false", "window=5", "tasks=a,b", "path=x=y"]) == {"unit": "turn", "date_line": False, "window": 5, "tasks": ["a", "b"], "path": "x=y"}
    for bad in ("unit", "a-b=1"):
        with pytest.raises(DataError, match="NAME=VALUE"):
            common.settings([bad])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--on", "nothing"], "choose from locomo"),
        (["--on", "locomo", "--set", "unit=page"], "unit"),
        (["--on", "locomo", "--set", "colour=red"], "locomo has no option 'colour'; choose from unit, rule"),
        (["--on", "legal_qa", "--set", "splt=val"], "--set splt: legal_qa has no option 'splt'; choose from split, tasks, level"),
        (["--on", "beir", "--set", "splt=val"], "choose from split, title_join"),
        (["--on", "trec", "--set", "qrels=x"], "trec has no option 'qrels'; choose from fields"),
        (["--on", "locomo", "--set", "kind=x"], "--set kind: locomo has no option 'kind'"),
        (["--on", "locomo", "--profile", "local"], "no folder was given"),
        (["--on", "crumb", "--set", "tasks=nonsense"], "nonsense"),
    ],
)
def test_a_collection_that_is_not_there_is_told(capsys, arguments, text):
    code, _, err = said(capsys, "run", "bm25", *arguments)
    assert code == 2 and text in err and "Traceback" not in err


# --- run, evaluate, info, cache --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--out", "a.csv"], "a.csv: a run file ends in one of .jsonl"),
        (["--out", "file/r.jsonl"], "is no folder"),
        (["--scores", "file/below/s.csv"], "is no folder"),
        (["--scores", "folder"], "is a folder; --scores names a file"),
        (["--out", "folder.jsonl"], "is a folder; --out names a file"),
    ],
)
def test_a_file_that_cannot_be_written_is_told_before_the_search(capsys, monkeypatch, arguments, text):
    Path("file").touch()
    Path("folder").mkdir()
    Path("folder.jsonl").mkdir()
    monkeypatch.setattr("crumb_nb.experiment.run_system", lambda *a, **k: pytest.fail("searched"))
    code, out, err = said(capsys, "run", "bm25", "--on", "legal_qa", *arguments)
    assert code == 2 and text in err and not out


def test_run_says_which_queries_of_a_run_file_are_not_shared(capsys):
    "A mistyped id is one query too many and one too few; a fused system says it of its part."
    said(capsys, "run", "bm25", "--on", "legal_qa", "--measures", "RR", "--out", "r.jsonl", "--no-cache")
    Path("r.jsonl").write_text(Path("r.jsonl").read_text().replace('"lqq-e01"', '"lqq-x01"'))
    note = "note: 1 query of the run is not in mini/legal_qa (lqq-x01); 1 of 13 without result (lqq-e01)"
    for system in ("run(r.jsonl)", "rrf(bm25, run(r.jsonl))"):
        code, out, _ = said(capsys, "run", system, "--on", "legal_qa", "--measures", "RR", "--no-cache")
        assert code == 0 and out.splitlines().count(note) == 1
    Path("r.jsonl").write_text("".join(line for line in Path("r.jsonl").read_text().splitlines(True) if "lqq-x01" not in line))
    assert "note: 1 of 13 queries without result (lqq-e01)" in said(capsys, "run", "run(r.jsonl)", "--on", "legal_qa", "--measures", "RR", "--no-cache")[1]


def test_run_prints_scores_and_writes_files(capsys, tmp_path):
    code, out, _ = said(capsys, "run", "bm25", "--on", "locomo", "--measures", "recall_any@3,RR", "--out", "r.jsonl", "--scores", "s.csv", "--card", "--asked", "5")
    assert code == 0 and "recall_any@3" in out and "gold rule" in out and "asked 5" in out
    run = read_run("r.jsonl")
    scores = read_scores("s.csv")
    assert len(run.query_ids) == 80 and max(run.ranks()) == 5 and set(scores["measure"]) == {"recall_any@3", "RR"}
    code, again, _ = said(capsys, "evaluate", "r.jsonl", "--on", "locomo", "--measures", "recall_any@3,RR")
    assert code == 0 and [line.split() for line in again.splitlines()[1:4]] == [line.split() for line in out.splitlines()[1:4]], "what was written scores the same"


@pytest.mark.parametrize("depth", [("--asked", "0"), ("--asked", "-1"), ("--pool", "0"), ("--pool", "-2")], ids="=".join)
def test_run_refuses_a_depth_below_one(capsys, depth):
    "Not the protocol's depth instead, not a traceback."
    with pytest.raises(SystemExit) as left:
        main(["run", "rerank(bm25, oracle)", "--on", "locomo", "--measures", "RR", "--no-cache", *depth])
    err = capsys.readouterr().err
    assert left.value.code == 2 and err.splitlines()[-1] == f"crumb-nb run: error: argument {depth[0]}: {depth[1]}: a positive whole number is needed"


def test_run_on_several_tasks_writes_a_file_each(capsys, tmp_path):
    code, out, _ = said(capsys, "run", "bm25", "--on", "crumb", "--set", "tasks=clinical_trial,legal_qa", "--out", "r.jsonl", "--measures", "RR", "--no-cache")
    assert code == 0 and sorted(p.name for p in tmp_path.glob("r.*")) == ["r.mini_clinical_trial.jsonl", "r.mini_legal_qa.jsonl"]


def test_run_decides_gates_on_the_validation_queries(capsys):
    code, out, _ = said(capsys, "run", "gate(bm25, rewrite(bm25, query_to_doc), test=none)", "--on", "crumb", "--set", "tasks=clinical_trial", "--explain")
    assert code == 0 and "uses rewrite(bm25, query_to_doc) only if it beats bm25" in out
    code, out, _ = said(capsys, "run", "gate(bm25, oracle, measure=RR)", "--on", "crumb", "--set", "tasks=clinical_trial", "--measures", "RR", "--no-cache")
    assert code == 0 and "RR" in out


def test_run_refuses_a_bad_spec_before_reading_data(capsys):
    code, _, err = said(capsys, "run", "rrf(bm25, dens)", "--on", "nothing")
    assert code == 2 and "position 11" in err and "did you mean dense?" in err


def test_evaluate_against_labels(capsys):
    write_run(Run.from_dict({"q1": {"a": 2.0, "b": 1.0}, "q3": {"a": 1.0}}), "mine.trec")
    write_qrels(Qrels.from_dict({"q1": {"b": 1.0}, "q2": {"a": 1.0}}), "labels.trec")
    code, out, _ = said(capsys, "evaluate", "mine.trec", "--qrels", "labels.trec", "--measures", "RR", "--per-query", "s.csv", "--mode", "trec_eval")
    assert code == 0 and out.splitlines()[2].split() == ["RR", "0.2500", "2"]
    # the queries are named, and the number of judged ones, which the header has, is not repeated
    assert out.splitlines()[3:] == ["note: mine.trec has no result for 1 of 2 queries (q2); counted 0", "note: mine.trec has 1 of 2 queries without labels (q3); ignored"]
    assert read_scores("s.csv")["value"].tolist() == [0.5, 0.0]
    for arguments in (["mine.trec"], ["mine.trec", "--qrels", "labels.trec", "--on", "locomo"]):
        code, _, err = said(capsys, "evaluate", *arguments)
        assert code == 2 and "either" in err
    assert said(capsys, "evaluate", "absent.jsonl", "--qrels", "labels.trec")[0] == 2
    code, _, err = said(capsys, "evaluate", "mine.trec", "--on", "locomo")
    assert code == 2 and "none of the queries" in err
    code, _, err = said(capsys, "evaluate", "mine.trec", "--qrels", "labels.trec", "--measures", "MRR")
    assert code == 2 and "RR" in err


def test_evaluate_writes_the_queries_of_all_collections(capsys):
    "One run file with queries of two tasks: both are printed and both are written, in one file that says which is which."
    from crumb_nb.datasets.profiles import open_collections

    collections = open_collections("crumb", "mini", tasks=["clinical_trial", "code_retrieval"])
    write_run(Run.from_dict({q: {d: -float(n) for n, d in enumerate(sorted(c.candidates(q))[:5])} for c in collections for q in list(c.queries.index)[:2]}), "both.jsonl")
    code, out, _ = said(capsys, "evaluate", "both.jsonl", "--on", "crumb", "--set", "tasks=clinical_trial,code_retrieval", "--measures", "RR", "--per-query", "s.csv")
    written = read_scores("s.csv")
    assert code == 0 and out.count("judged queries") == 2
    assert written.groupby("collection")["query_id"].agg(list).to_dict() == {c.name: c.protocol.judged(c) for c in collections}


def legal(items: dict, name: str, drop: int = 0):
    "A run file of the queries of legal_qa but the last `drop`, each with the same items."
    from crumb_nb.datasets.mini import load_mini

    ids = list(load_mini("legal_qa").qrels.query_ids)
    write_run(Run.from_dict({q: items for q in ids[: len(ids) - drop]}), name)
    return ids


def test_evaluate_says_which_documents_and_queries_do_not_fit(capsys):
    "Zeros that come of wrong ids look like those of a bad system: all wrong is refused, some wrong is said."
    legal({"d01aa": 2.0, "d02bb": 1.0}, "blind.jsonl")
    code, out, err = said(capsys, "evaluate", "blind.jsonl", "--on", "legal_qa")
    assert code == 2 and not out
    assert err == "crumb-nb: blind.jsonl: none of its rows names a document of this collection (e.g. 'd01aa'; ids here look like 'lq-01:0'); ids from crumb-nb export must go through crumb-nb import first\n"
    ids = legal({"lq-01:0": 2.0, "d02bb": 1.0}, "half.jsonl", drop=9)  # 4 of the 13 remain, each with one known document of two
    code, out, _ = said(capsys, "evaluate", "half.jsonl", "--on", "legal_qa")
    assert code == 0 and "[warning] unknown documents: 4 of 8 rows" in out and "13 judged\n" not in out
    assert f"note: half.jsonl has no result for 9 of 13 queries ({ids[4]}, …); counted 0 by the protocol" in out
    write_run(Run.from_dict({ids[0]: {"lq-01:0": 1.0}, "zz": {"lq-01:0": 1.0}}), "other.jsonl")
    assert "note: other.jsonl has 1 of 2 queries that legal_qa does not have (zz); ignored" in said(capsys, "evaluate", "other.jsonl", "--on", "legal_qa")[1]


def test_evaluate_says_of_which_tasks_a_file_has_nothing(capsys):
    "One of eight is no score of CRUMB; a query of a task that was opened is not unknown."
    legal({"lq-01:0": 1.0}, "legal.jsonl")
    code, out, _ = said(capsys, "evaluate", "legal.jsonl", "--on", "crumb")
    assert code == 0 and out.splitlines()[-1] == "note: the file has no query of mini/clinical_trial, mini/code_retrieval, … (7 of 8 collections)"


def test_evaluate_refuses_labels_of_other_queries_and_options_nobody_hears(capsys):
    "No query in common is the wrong file, not a score of 0; --set is read by loaders, and labels have none."
    write_run(Run.from_dict({"q1": {"a": 1.0}}), "mine.jsonl")
    write_qrels(Qrels.from_dict({"zz": {"a": 1.0}}), "none.qrels")
    code, out, err = said(capsys, "evaluate", "mine.jsonl", "--qrels", "none.qrels")
    assert code == 2 and not out and err == "crumb-nb: mine.jsonl holds none of the 1 judged queries of none.qrels (run: 'q1', labels: 'zz')\n"
    write_qrels(Qrels.from_dict({"q1": {"a": 1.0}}), "fits.qrels")
    code, _, err = said(capsys, "evaluate", "mine.jsonl", "--qrels", "fits.qrels", "--set", "unit=turn")
    assert code == 2 and "--set unit=turn" in err and "needs --on" in err


def test_evaluate_help_shows_the_run_files(capsys):
    "Both lines as they are in the help can be written to a file and scored."
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    out = capsys.readouterr().out
    for line, name in (('{"query": {"id": "q1"}, "items": [{"id": "d1", "score": 3.2}]}', "a.jsonl"), ("q1 Q0 d1 1 3.2 tag", "a.trec")):
        assert line in out
        Path(name).write_text(line + "\n")
        assert read_run(name).to_dict() == {"q1": {"d1": 3.2}}


def test_info(capsys):
    code, out, _ = said(capsys, "info", "locomo", "--set", "unit=session")
    assert code == 0 and "documents" in out and "candidates" in out and "gold rule" in out
    code, out, _ = said(capsys, "info", "systems")
    assert code == 0 and "rerank(bm25, maxsim, pool=50)" in out and "my.module:function" in out
    code, out, _ = said(capsys, "info", "--profile", "local")
    assert code == 0 and "no folder was given" in out


def test_cache(capsys, cache_dir):
    assert said(capsys, "cache", "path")[1].strip() == str(cache_dir)
    assert "nothing in" in said(capsys, "cache", "list")[1]
    said(capsys, "run", "bm25", "--on", "locomo", "--measures", "RR")
    (cache_dir / "stores" / "mine").mkdir(parents=True)
    assert "mine" in said(capsys, "cache", "list", "stores")[1] and "nothing in" in said(capsys, "cache", "list", "corpora")[1]
    assert "bm25" in said(capsys, "cache", "list", "runs")[1] and "nothing in" in said(capsys, "cache", "list", "embeddings")[1]
    assert "MB removed" in said(capsys, "cache", "clear")[1] and "nothing in" in said(capsys, "cache", "list")[1]


# --- search ----------------------------------------------------------------------------------------------------------------


@pytest.fixture()
def pages(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "tokens.md").write_text("# Tokens\n\nA token opens a door.\n\n## Renewal\n\nSend a <token> back before midnight.\n")
    (folder / "doors.md").write_text("# Doors\n\nThe north door sticks.\n")
    (folder / "picture.bin").write_bytes(b"\xff\xfe\x00")
    return folder


def test_search_of_a_folder_cuts_what_is_new_and_shows_where_a_hit_stands(pages, capsys, tmp_path):
    code, out, _ = said(capsys, "search", str(pages), "midnight", "--k", "1", "--store", str(tmp_path / "chunks"))
    assert code == 0 and "2 chunks of 2 files (2 cut now), 1 files passed over: picture.bin" in out
    assert "  tokens.md:0-" in out and "    # Tokens A token opens" in out, "the text without the header it was indexed with"
    (pages / "windows.md").write_text("# Windows\n\nShut at midnight.\n")
    out = said(capsys, "search", str(pages), "midnight", "--store", str(tmp_path / "chunks"), "--system", "rrf(bm25, bm25(stemmer=english))")[1]
    assert "3 chunks of 3 files (1 cut now)" in out and out.count("midnight") == 2
    assert "nothing found" in said(capsys, "search", str(pages), "zebra")[1]
    assert "  Tokens > Renewal\n" in said(capsys, "search", str(pages), "midnight", "--tokens", "16", "--k", "3")[1], "passages with their heading path"


@pytest.mark.parametrize(("arguments", "message"), [(("{}/tokens.md", "x"), "is not a folder"), (("{}", " "), "query is empty"), (("{}", "x", "--k", "0"), "at least one"), (("{}", "x", "--system", "bm52"), "did you mean bm25"), (("{}", "x", "--tokens", "3"), "at least 16"), (("{}", "x", "--system", "rrf(bm25, oracle)"), "oracle is no way to search")])
def test_search_says_what_it_cannot_do(pages, capsys, arguments, message):
    code, _, err = said(capsys, "search", *(a.format(pages) for a in arguments))
    assert code == 2 and message in err and err.count("\n") == 1


def test_a_folder_without_text(capsys, tmp_path):
    (tmp_path / "empty").mkdir()
    for command, message in ((("search", str(tmp_path / "empty"), "x"), "no text that could be searched"), (("chunk", str(tmp_path / "empty")), "no text that could be cut")):
        code, _, err = said(capsys, *command)
        assert code == 2 and message in err


def test_a_hit_is_shown_from_the_word_it_was_found_by():
    from crumb_nb.cli.search import excerpt

    text = "word " * 60 + "the needle is here"
    assert excerpt(text, "a needle", 40) == "…word word the needle is here" and excerpt(text, "nothing", 9) == "word word…" and excerpt("short", "x") == "short"


# --- paper -----------------------------------------------------------------------------------------------------------------


@pytest.fixture()
def papers(tmp_path):
    folder = tmp_path / "papers" / "demo"
    folder.mkdir(parents=True)
    body = "import pandas as pd\nfrom crumb_nb.paper import Artifact\nArtifact('one', profile=profile, data=data, out=out).table(pd.DataFrame({'k': [1], 'v': [0.5]}))"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("profile = 'mini'\ndata = ''\nout = ''"), nbformat.v4.new_code_cell(body)])
    notebook.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(notebook, folder / "one.ipynb")
    (folder / "one.yaml").write_text("title: One\nkind: table\ncaption: One row.\nexpected: {mini: {keys: [], cells: [[v, 0.5]]}}\n")
    return folder


def test_paper_makes_checks_and_records(papers, capsys, tmp_path):
    where = ["--papers", str(papers.parent), "--out", "made"]
    code, out, _ = said(capsys, "paper", *where, "--check")
    assert code == 0 and "figures checked: 1 OK" in out and "\n1 made in" in out and (tmp_path / "made" / "mini" / "one.csv").is_file()
    assert "1 unchanged" in said(capsys, "paper", "one", *where)[1]
    manifest = papers / "one.yaml"
    manifest.write_text(manifest.read_text().replace("0.5", "0.6"))
    code, out, _ = said(capsys, "paper", *where, "--check")
    assert code == 1 and "FAIL: one: v: expected 0.6, ours 0.5 (manifest)" in out
    code, out, _ = said(capsys, "paper", *where, "--record")
    assert code == 0 and "one: 2 expected values recorded" in out
    assert said(capsys, "paper", *where, "--check")[0] == 0


def test_paper_fails_with_1_and_says_where(papers, capsys):
    notebook = nbformat.read(papers / "one.ipynb", 4)
    notebook.cells[1].source = "import sys; sys.exit(0)"
    nbformat.write(notebook, papers / "one.ipynb")
    code, out, _ = said(capsys, "paper", "--papers", str(papers.parent))
    assert code == 1 and "one.ipynb, cell 2" in out and "SystemExit" in out


def test_paper_lists_and_knows_its_names(papers, capsys):
    code, out, _ = said(capsys, "paper", "--list", "--papers", str(papers.parent))
    assert code == 0 and pd.Series(out.split()).isin(["one", "demo", "table", "One"]).any()
    code, _, err = said(capsys, "paper", "on", "--papers", str(papers.parent))
    assert code == 2 and "one" in err
    code, _, err = said(capsys, "paper", "xyzzy", "--papers", str(papers.parent))
    assert code == 2 and "nearest" not in err and "paper --list" in err, "nothing is like it, so nothing is offered"


def test_paper_takes_ids_before_and_after_options(papers, capsys):
    for name in ("two", "three"):
        for suffix in ("ipynb", "yaml"):
            (papers / f"{name}.{suffix}").write_text((papers / f"one.{suffix}").read_text())
    for ids in (["one", "--list", "two"], ["--list", "one", "two"], ["--list", "--keep-going", "one", "--jobs", "1", "two"], ["--list", "--", "one", "two"]):
        code, out, _ = said(capsys, "paper", "--papers", str(papers.parent), *ids)
        assert code == 0 and [line.split()[0] for line in out.splitlines()[1:]] == ["one", "two"], ids
    with pytest.raises(SystemExit) as left:
        main(["paper", "one", "--keepgoing", "two"])
    assert left.value.code == 2 and "crumb-nb paper: error: unrecognized arguments: --keepgoing" in capsys.readouterr().err


def test_paper_refuses_a_folder_for_the_embedded_data(papers, capsys, tmp_path, monkeypatch):
    "It would be read by nobody, and the figures would look like those of the folder."
    code, _, err = said(capsys, "paper", "--profile", "mini", "--data", str(tmp_path), "--papers", str(papers.parent))
    assert code == 2 and "does not read --data" in err and "--data alone means --profile local" in err
    monkeypatch.setenv("CRUMB_DATA", str(tmp_path))
    assert said(capsys, "paper", "--profile", "mini", "--list", "--papers", str(papers.parent))[0] == 0, "a variable of the shell asks for nothing"


@pytest.mark.parametrize(("given", "profile"), [([], "mini"), (["DATA=real"], "local"), (["PROFILE=local", "DATA=real"], "local"), (["PROFILE=hub", "DATA=real"], "hub"), (["PROFILE=local"], "local")])
def test_make_paper_with_data_is_of_the_data(given, profile):
    if not shutil.which("make"):
        pytest.skip("make is not here")
    env = {name: value for name, value in os.environ.items() if name not in ("DATA", "PROFILE", "MAKEFLAGS", "MAKEOVERRIDES")}
    done = subprocess.run(["make", "-n", "paper", *given], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert f"--profile {profile} " in done.stdout and ('--data "real"' in done.stdout) == ("DATA=real" in given)


@pytest.mark.parametrize(("systems", "text"), [("bm52", "did you mean bm25"), ("bm25 run(absent.jsonl)", "no such file"), ("rrf(bm25", "spec")])
def test_paper_reads_its_systems_before_the_first_notebook(papers, capsys, monkeypatch, systems, text):
    "The artifact has no ranking: nothing else would ever look at --systems."
    monkeypatch.setattr("crumb_nb.driver.run_paper", lambda *a, **k: pytest.fail("started"))
    code, out, err = said(capsys, "paper", "one", "--systems", systems, "--papers", str(papers.parent))
    assert code == 2 and text in err and not out


def test_the_installed_script_is_there():
    script = Path(sys.executable).parent / "crumb-nb"
    if not script.exists():
        pytest.skip("the package is not installed in this environment")
    done = subprocess.run([script, "cache", "path"], capture_output=True, text=True, env={**os.environ, "CRUMB_NB_CACHE": "/tmp/x"})
    assert done.returncode == 0 and done.stdout.strip() == str(Path("/tmp/x").resolve())
