"""Released runs: the layout, both modes, the tables; and the commands around other engines, as a user types them."""

import json

import pytest

from crumb_nb.cli.main import main
from crumb_nb.datasets.crumb import crumb_labels, load_crumb
from crumb_nb.datasets.engines import blinded_ids, read_info
from crumb_nb.record_files import read_run, write_run
from crumb_nb.records import DataError, Run, write_jsonl
from crumb_nb.released import CONDITIONS, condition_table, main_condition, main_table, mode_differences, released_runs, score_released


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    "Two systems on two tasks in the released layout: one MaxP task by passages, one single collection."
    base = tmp_path_factory.mktemp("runs")
    trial = load_crumb("clinical_trial")
    gold, parents = trial.qrels.relevant(), trial.parents()
    child = {parent: passage for passage, parent in reversed(list(parents.items()))}
    good = Run.from_dict({q: {child[d]: float(9 - n) for n, d in enumerate(docs)} for q, docs in gold.items()})
    half = Run.from_dict({q: dict(list(d.items())[:1]) for n, (q, d) in enumerate(good.to_dict().items()) if n % 2})
    for condition in ("none", "gemma_3_27b_query_to_doc_cot"):
        write_run(good if condition == "none" else half, base / "clinical_trial" / "passage" / condition / "bm25.jsonl")
    write_run(good, base / "clinical_trial" / "passage" / "no_instruction" / "Lion-1B.jsonl")
    (base / "notes").mkdir()
    return base


def test_layout(folder, tmp_path):
    found = released_runs(folder)
    assert [(r.task, r.level, r.condition, r.system) for r in found] == [
        ("clinical_trial", "passage", "gemma_3_27b_query_to_doc_cot", "bm25"), ("clinical_trial", "passage", "no_instruction", "Lion-1B"), ("clinical_trial", "passage", "none", "bm25"),
    ]
    assert main_condition("Lion-1B") == "no_instruction" and main_condition("snowflake") == "none" and len(CONDITIONS) == 8
    with pytest.raises(DataError, match="no such folder"):
        released_runs(tmp_path / "none")
    (tmp_path / "other").mkdir()
    with pytest.raises(DataError, match="found \\['other'\\]"):
        released_runs(tmp_path)


def test_both_modes(folder):
    "Exact brings passages to documents; crumb_eval keeps passage ids, which are in no label: 0. Half of the queries missing count 0."
    scores = score_released(released_runs(folder), "mini")
    value = scores.set_index(["system", "condition", "mode", "measure"])["value"]
    assert value["bm25", "none", "exact", "R@100"] == 1.0 and value["bm25", "none", "crumb_eval", "R@100"] == 0.0
    assert value["bm25", "gemma_3_27b_query_to_doc_cot", "exact", "R@100"] < 0.5
    assert scores["missing"].max() == len(crumb_labels("clinical_trial")[0].query_ids) - len(read_run(released_runs(folder)[0].path).query_ids)
    differences = mode_differences(scores)
    assert set(differences.reset_index()["measure"]) == {"nDCG@10", "R@100"} and (differences["difference"] < 0).all()
    assert mode_differences(scores[scores["mode"] == "exact"]).empty
    assert list(main_table(scores, "R@100").index) == ["Lion-1B", "bm25"]
    table = condition_table(scores, "gemma_3_27b_query_to_doc_cot", "R@100")
    assert len(table) == 1 and table["difference"].iloc[0] < 0
    assert condition_table(scores, "gemma_3_27b_query_to_answer_cot").empty


def test_an_average_is_given_only_over_all_tasks(folder):
    scores = score_released(released_runs(folder), "mini", ["R@100"], ["exact"])
    extra = scores[scores["system"] == "bm25"].assign(task="legal_qa")
    table = main_table(__import__("pandas").concat([scores, extra]), "R@100")
    assert table.loc["bm25", "average"] == 1.0 and table["average"].isna()["Lion-1B"]


def test_runs_command(folder, tmp_path, capsys):
    assert main(["runs", str(folder), "--csv", str(tmp_path / "s.csv")]) == 0
    out = capsys.readouterr().out
    assert "3 runs of 2 systems on 1 tasks" in out and "none against gemma_3_27b_query_to_doc_cot" in out and "exact against crumb_eval" in out
    assert (tmp_path / "s.csv").read_text().startswith("task,level,condition,system,mode,measure,value,queries,missing\n")
    assert main(["runs", str(tmp_path / "none")]) == 2 and "no such folder" in capsys.readouterr().err


def test_export_and_import_commands(tmp_path, capsys):
    assert main(["export", "--on", "locomo", "--to", str(tmp_path)]) == 0
    (made,) = [p for p in tmp_path.iterdir() if p.is_dir()]
    documents = [json.loads(line) for line in (made / "documents.jsonl").open(encoding="utf-8")]
    questions = [json.loads(line) for line in (made / "questions.jsonl").open(encoding="utf-8")]
    write_jsonl(tmp_path / "results.jsonl", [{"id": q["id"], "results": [{"id": q["haystack"][0]}]} for q in questions[1:]])
    command = ["import", str(tmp_path / "results.jsonl"), "--on", "locomo", "--engine", "first", "--to", str(tmp_path / "first.jsonl")]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "missing    1" in out and f"run of {len(questions) - 1:,} rows" in out
    run = read_run(tmp_path / "first.jsonl")
    from crumb_nb.datasets.profiles import open_collections

    (collection,) = open_collections("locomo", "mini", "")
    assert set(run.doc_ids) <= set(collection.corpus.index) and len(documents) == len(collection.corpus) == len(blinded_ids(collection))
    trec = tmp_path / "first.trec"  # the suffix tells the format, as in `run --out`; the counts stand beside either
    assert main([*command[:-1], str(trec)]) == 0 and trec.read_text().splitlines()[0].split()[1] == "Q0"
    assert read_run(trec).frame().equals(run.frame()) and read_info(trec) == read_info(tmp_path / "first.jsonl")
    assert main([*command[:-1], str(tmp_path / "first.csv")]) == 2 and "name it .jsonl" in capsys.readouterr().err and not (tmp_path / "first.csv").exists()
    write_jsonl(tmp_path / "results.jsonl", [{"id": "nobody", "results": []}])
    assert main(command) == 2 and "results.jsonl:1: id 'nobody'" in capsys.readouterr().err


def test_audit_command(tmp_path, capsys):
    assert main(["audit", "longmemeval_recall_page", "--sensitivity", "419"]) == 1
    out = capsys.readouterr().out
    assert "strict measure" in out and "17 of 18 cells are no whole number over 470" in out and "both  recall_any@5" in out
    assert main(["audit", "--figure", "0.8460", "--over", "1526", "1534"]) == 0
    out = capsys.readouterr().out
    assert "over 1,526: possible: 1291" in out and "over 1,534: impossible" in out
    assert main(["audit", "--figure", "0.8460", "--over", "1534"]) == 1 and main(["audit"]) == 2
    assert main(["audit", str(tmp_path / "none.yaml")]) == 2 and "tables in the package" in capsys.readouterr().err
    for wrong in ([], ["--over", "0"], ["--over", "10", "-3"]):  # no denominator, no answer: not "impossible"
        assert main(["audit", "--figure", "0.5", *wrong]) == 2
        error = capsys.readouterr().err
        assert "--over with the candidate denominators" in error and error.count("\n") == 1
    (tmp_path / "bad.yaml").write_text("a: [1\nb: {")
    assert main(["audit", str(tmp_path / "bad.yaml")]) == 2
    error = capsys.readouterr().err
    assert "bad.yaml: no YAML" in error and error.count("\n") == 1
    with pytest.raises(SystemExit):
        main(["audit", "--help"])
    assert "1 something is impossible or contradicted" in " ".join(capsys.readouterr().out.split())


def test_fetch_command_without_network(tmp_path, capsys, monkeypatch):
    from crumb_nb.datasets import fetch

    data = fetch.DataSet("locomo", (fetch.RemoteFile("http://127.0.0.1:9/x.json", "locomo/x.json"),), "CC BY-NC 4.0", "nowhere")
    monkeypatch.setitem(fetch.DATA_SETS, "locomo", data)
    assert main(["fetch", "locomo", "--to", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert "licence CC BY-NC 4.0" in captured.out and "place it as locomo/x.json in the data folder" in captured.err


def test_compare_shows_and_tests_a_run_that_returned_too_little(tmp_path, capsys, monkeypatch):
    "R@100 of every full order of legal_qa's 49 passages is 1; a file with 4 of the 13 questions has 4/13 = .3077, and the pair is tested."
    monkeypatch.chdir(tmp_path)
    assert main(["run", "bm25", "--on", "legal_qa", "--out", "bm25.jsonl", "--no-cache"]) == 0
    (tmp_path / "part.jsonl").write_text("".join((tmp_path / "bm25.jsonl").open(encoding="utf-8").readlines()[:4]), encoding="utf-8")
    capsys.readouterr()
    assert main(["compare", "bm25.jsonl", "part.jsonl", "--on", "legal_qa", "--measures", "R@100"]) == 0
    out = capsys.readouterr().out
    assert "| .3077 |" in out and "fewer documents were returned" in out and "0.6923" in next(row for row in out.splitlines() if row.startswith("R@100 "))
