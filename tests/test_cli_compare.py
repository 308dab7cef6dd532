"""`crumb-nb compare` through the front door."""

import pytest

from crumb_nb.cli.main import main
from crumb_nb.protocols import Protocol
from crumb_nb.record_files import write_qrels, write_run
from crumb_nb.records import Collection, Qrels, Run, corpus_frame, queries_frame

IDS = [f"q{i:02}" for i in range(20)]


@pytest.fixture()
def folder(tmp_path):
    "Labels and three runs: good, fair, and one of another collection."
    write_qrels(Qrels.from_dict({q: {"gold": 1, "other": 0} for q in IDS}), tmp_path / "labels.trec")
    write_qrels(Qrels.from_dict({q: {"other": 1} for q in IDS}), tmp_path / "binary.tsv")
    write_run(Run.from_dict({q: {"gold": 2.0, "other": 1.0} for q in IDS}), tmp_path / "good.jsonl")
    write_run(Run.from_dict({q: {"gold": 1.0, "other": 2.0 if n % 4 else 0.5} for n, q in enumerate(IDS)}), tmp_path / "fair.trec")
    write_run(Run.from_dict({"zz": {"gold": 1.0}}), tmp_path / "strange.jsonl")
    (tmp_path / "sub").mkdir()
    write_run(Run.from_dict({q: {"other": 2.0} for q in IDS}), tmp_path / "sub" / "good.jsonl")
    return tmp_path


def test_table_and_differences(folder, capsys):
    assert main(["compare", str(folder / "good.jsonl"), str(folder / "fair.trec"), "--qrels", str(folder / "labels.trec"), "--measures", "RR,P@1,Judged@1"]) == 0
    out = capsys.readouterr().out
    assert "**1.0000**<sup>b</sup>" in out and "paired randomisation, Holm" in out
    line = next(row for row in out.splitlines() if row.startswith("P@1 "))
    assert line.split()[1:5] == ["good", "fair", "20", "0.7500"] and line.split()[-4:-1] == ["15", "5", "0"]
    assert "Judged@1  good" not in out  # no winner there, no test


def test_formats_files_and_plot(folder, capsys):
    table, plot = folder / "out" / "table.tex", folder / "difference.png"
    assert main(["compare", str(folder / "good.jsonl"), str(folder / "fair.trec"), "--qrels", str(folder / "labels.trec"), "--format", "tex", "--out", str(table), "--plot", str(plot), "--test", "t", "--correction", "none"]) == 0
    assert r"\toprule" in table.read_text() and plot.read_bytes()[:4] == b"\x89PNG"
    assert r"\toprule" not in capsys.readouterr().out


def test_runs_of_one_name_keep_their_path_and_a_baseline_its_pairs(folder, capsys):
    runs = [str(folder / "good.jsonl"), str(folder / "sub" / "good.jsonl"), str(folder / "fair.trec")]
    assert main(["compare", *runs, "--qrels", str(folder / "labels.trec"), "--measures", "P@1", "--baseline", runs[2], "--format", "csv"]) == 0
    out = capsys.readouterr().out
    assert runs[1] in out and sum(row.startswith("P@1 ") for row in out.splitlines()) == 2


def test_binary_labels(folder, capsys):
    assert main(["compare", str(folder / "good.jsonl"), str(folder / "fair.trec"), "--qrels", str(folder / "labels.trec"), "--binary-qrels", str(folder / "binary.tsv"), "--measures", "P@1"]) == 0
    assert "| good <sup>a</sup> | .0000 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["good.jsonl", "--qrels", "labels.trec"], "needs two run files"),
        (["good.jsonl", "fair.trec"], "name either a collection"),
        (["good.jsonl", "good.jsonl", "--qrels", "labels.trec"], "named twice"),
        (["good.jsonl", "fair.trec", "--qrels", "labels.trec", "--baseline", "x"], "is not one of the runs"),
        (["good.jsonl", "fair.trec", "--qrels", "absent.trec"], "cannot be read"),
        (["good.jsonl", "fair.trec", "--qrels", "labels.trec", "--measures", "MRR"], "it is spelled RR here"),
        (["good.jsonl", "fair.trec", "--qrels", "labels.trec", "--measures", "nDCG@10", "--test", "mcnemar"], "needs hits"),
        (["good.jsonl", "fair.trec", "--on", "locomo"], "no query of the collection"),
        (["good.jsonl", "fair.trec", "--qrels", "labels.trec", "--measures", "Judged@10"], "labels.trec: no measure has a winner (Judged@10)"),
        (["good.jsonl", "fair.trec", "--qrels", "labels.trec", "--alpha", "2"], "2.0 given, a number between 0 and 1 is expected"),
        (["good.jsonl", "fair.trec", "--qrels", "labels.trec", "--resamples", "0"], "at least 1 is expected"),
        (["good.jsonl", "fair.trec", "--qrels", "labels.trec", "--seed", "-1"], "at least 0 is expected"),
        (["good.jsonl", "fair.trec", "--qrels", "labels.trec", "--out", "x.foo"], "one of .md, .csv, .tex, .html"),
        (["good.jsonl", "fair.trec", "--qrels", "labels.trec", "--set", "unit=turn"], "needs --on"),
        (["good.jsonl", "strange.jsonl", "--qrels", "labels.trec"], "strange.jsonl holds none of the 20 judged queries of labels.trec (run: 'zz', labels: 'q00')"),
        (["good.jsonl", "fair.trec", "--qrels", "labels.trec", "--plot", "x.foo"], "one of .png, .svg, .pdf"),
    ],
)
def test_errors_are_one_sentence_and_exit_code_2(folder, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    assert main(["compare", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


@pytest.mark.parametrize("suffix, sign", [(".tex", r"\toprule"), (".html", "<table"), (".md", "|---|"), (".CSV", "system,measure")])
def test_the_suffix_of_out_names_the_format(folder, suffix, sign):
    "Markdown in o.tex would break the paper that reads it; a format that is named wins."
    arguments = ["compare", str(folder / "good.jsonl"), str(folder / "fair.trec"), "--qrels", str(folder / "labels.trec"), "--measures", "P@1", "--out", str(folder / f"o{suffix}")]
    assert main(arguments) == 0 and sign in (folder / f"o{suffix}").read_text()
    assert main([*arguments, "--format", "md"]) == 0 and "|---|" in (folder / f"o{suffix}").read_text()


def test_what_a_run_lacks_is_said_beside_the_table(tmp_path, capsys, monkeypatch):
    "4 of 13 queries, an unknown document per query in both, an unknown query, one of eight tasks: all on stderr, with the name of the run."
    from crumb_nb.datasets.mini import load_mini

    monkeypatch.chdir(tmp_path)
    ids = list(load_mini("legal_qa").qrels.query_ids)
    items = {"lq-01:0": 2.0, "d02bb": 1.0}
    write_run(Run.from_dict({q: items for q in ids}), "full.jsonl")
    write_run(Run.from_dict({**{q: {"lq-01:0": 1.0} for q in ids[:4]}, "zz": items}), "part.jsonl")
    write_run(Run.from_dict({q: {"d02bb": 1.0} for q in ids}), "blind.jsonl")
    assert main(["compare", "full.jsonl", "part.jsonl", "--on", "crumb", "--measures", "nDCG@10", "--resamples", "100"]) == 0
    out, err = capsys.readouterr()
    assert f"note: part.jsonl has no result for 9 of 13 queries ({ids[4]}, …); counted 0 by the protocol" in err.splitlines()
    assert "full: [warning] unknown documents: 13 of 26 rows name a document that is not in the corpus; e.g. d02bb" in err.splitlines()
    assert "note: part.jsonl has 1 of 5 queries that crumb does not have (zz); ignored" in err.splitlines()
    assert "note: the files have no query of mini/clinical_trial, mini/code_retrieval, … (7 of 8 collections)" in err.splitlines()
    assert "note:" not in out and "[warning]" not in out
    assert main(["compare", "full.jsonl", "blind.jsonl", "--on", "legal_qa"]) == 2
    assert "blind.jsonl: none of its rows names a document of this collection" in capsys.readouterr().err


def test_on_a_collection(folder, capsys):
    "By the embedded LoCoMo-format collection's own protocol, chance and oracle rows included."
    from crumb_nb.datasets.profiles import open_collections

    toy = open_collections("locomo", "mini")[0]
    gold = toy.qrels.relevant()
    first = Run.from_dict({q: {d: -float(i) for i, d in enumerate(sorted(toy.candidates(q)))} for q in toy.queries.index})
    best = Run.from_dict({q: {d: float(d in gold.get(q, ())) - i / 1000 for i, d in enumerate(sorted(toy.candidates(q)))} for q in toy.queries.index})
    write_run(first, folder / "first.jsonl")
    write_run(best, folder / "best.jsonl")
    half = Run.from_dict({"unknown": {"x": 1.0}})
    write_run(half, folder / "half.jsonl")
    assert main(["compare", str(folder / "first.jsonl"), str(folder / "best.jsonl"), "--on", "locomo", "--mode", "trec_eval"]) == 0
    out = capsys.readouterr().out
    assert "| chance |" in out and "| oracle |" in out and "mode trec_eval" in out
    assert main(["compare", str(folder / "first.jsonl"), str(folder / "half.jsonl"), "--on", "locomo"]) == 2
    assert "compare runs of one collection" in capsys.readouterr().err


def toy(**protocol) -> Collection:
    "Twelve documents, of which two questions have six relevant ones each."
    docs = [f"d{n:02}" for n in range(12)]
    rules = Protocol("toy", "session", "session", "evidence", ("R@8",)).with_(**protocol)
    return Collection("toy", corpus_frame(docs, docs), queries_frame(["q0", "q1"], ["one", "two"]), Qrels.from_dict({q: dict.fromkeys(docs[:6], 1.0) for q in ("q0", "q1")}), rules)


@pytest.mark.parametrize("protocol", [{"asked": 3}, {"asked": 3, "counted": "document", "aggregate": "max"}])
def test_chance_and_oracle_are_those_of_what_is_scored(tmp_path, capsys, monkeypatch, protocol):
    "Files are scored as deep as they are. Six relevant first: R@8 is 1, and so is the ceiling; of three documents asked it would be .5. At random, 8 of 12 places hold 2/3 of them."
    collection = toy(**protocol)
    monkeypatch.setattr("crumb_nb.cli.compare.collections_of", lambda args: [collection])
    docs = sorted(collection.corpus.index)
    for name, order in (("best", docs), ("worst", docs[::-1])):
        write_run(Run.from_dict({q: {d: -float(n) for n, d in enumerate(order)} for q in ("q0", "q1")}), tmp_path / f"{name}.jsonl")
    assert main(["compare", str(tmp_path / "best.jsonl"), str(tmp_path / "worst.jsonl"), "--on", "toy", "--format", "csv"]) == 0
    out = capsys.readouterr().out
    value = {line.split(",")[0]: float(line.split(",")[2]) for line in out.splitlines() if line.split(",")[0] in ("best", "worst", "chance", "oracle")}
    assert value == {"best": 1.0, "worst": pytest.approx(2 / 6), "chance": pytest.approx(8 / 12), "oracle": 1.0}
    assert main(["compare", str(tmp_path / "best.jsonl"), str(tmp_path / "worst.jsonl"), "--on", "toy"]) == 0
    out = capsys.readouterr().out
    assert "asked as in the files" in out and "asked 3" not in out


def test_a_collection_with_nothing_to_compare_is_a_note_beside_others(tmp_path, capsys, monkeypatch):
    "Where at most eight documents can be returned R@8 is fixed, and no run wins it."
    small = toy().with_(name="small", scope={q: tuple(f"d{n:02}" for n in range(8)) for q in ("q0", "q1")})
    for name, step in (("a", 1), ("b", -1)):
        write_run(Run.from_dict({q: {f"d{n:02}": float(step * n) for n in range(8)} for q in ("q0", "q1")}), tmp_path / f"{name}.jsonl")
    command = ["compare", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"), "--on", "toy"]
    monkeypatch.setattr("crumb_nb.cli.compare.collections_of", lambda args: [small, toy()])
    assert main(command) == 0
    assert "note: small: no measure has a winner (R@8)" in capsys.readouterr().out
    monkeypatch.setattr("crumb_nb.cli.compare.collections_of", lambda args: [small])
    assert main(command) == 2
    assert "crumb-nb: small: no measure has a winner (R@8)" in capsys.readouterr().err
    write_run(Run.from_dict({q: {"d00": 1.0} for q in ("q0", "q1")}), tmp_path / "b.jsonl")  # one of eight: 1/6, and that is a loss
    assert main(command) == 0
    line = next(row for row in capsys.readouterr().out.splitlines() if row.startswith("R@8 "))
    assert line.split()[1:5] == ["a", "b", "2", "0.8333"]
