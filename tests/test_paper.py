"""The driver with real kernels: what papermill lets pass is refused, what is killed is made again, equal inputs give equal bytes."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest

from crumb_nb import driver, runner
from crumb_nb.manifests import MARKS, Manifest, find_manifests, read_manifest, verdict, verdicts
from crumb_nb.paper import Artifact, format_value, style_path, to_markdown, to_tex, write_csv, write_figure
from crumb_nb.provenance import file_sha256
from crumb_nb.records import DataError, Run

ROOT = Path(__file__).resolve().parents[1]
STANDARD = "profile = 'mini'  # mini, local or hub\ndata = ''  # folder\nout = ''  # folder\nk = 1  # depth"
TABLE = """
import pandas as pd
from crumb_nb.paper import Artifact
artifact = Artifact(NAME, profile=profile, data=data, out=out, k=k)
artifact.table(artifact.beside(pd.DataFrame({"k": [k, k + 1], "value": [k / 3, (k + 1) / 3]})))
"""
MANIFEST = "title: Thirds\nkind: table\ncaption: Thirds of k.\nparameters: {all: {k: 2}, local: {k: 3}}\n"


@pytest.fixture()
def papers(tmp_path, cache_dir, monkeypatch):
    "An empty folder of paper notebooks; the working folder is beside it."
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(driver, "code_hashes", lambda modules: "the same code")  # the checkout may be edited while tests run
    (tmp_path / "papers" / "demo").mkdir(parents=True)
    return tmp_path / "papers"


def write_artifact(papers: Path, name: str, *cells: str, parameters: str | None = STANDARD, manifest: str = MANIFEST, kernel: dict | None = None, tagged: int = 1) -> Path:
    "A notebook and its manifest; without cells a good table."
    cells = cells or (TABLE.replace("NAME", repr(name)),)
    sources = [*([parameters] if parameters is not None else []), *cells]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources], metadata={} if kernel is None else {"kernelspec": kernel})
    for cell in notebook.cells[:tagged] if parameters is not None else []:
        cell.metadata["tags"] = ["parameters"]
    path = papers / "demo" / f"{name}.ipynb"
    nbformat.write(notebook, path)
    path.with_suffix(".yaml").write_text(manifest)
    return path


def run(papers: Path, *ids: str, **more):
    "Outcomes by id."
    lines: list[str] = []
    more = {"keep_going": True, "echo": lines.append, "out": papers.parent / "figures", **more}
    return {o.id: o for o in driver.run_paper(ids, papers=papers, **more)}, lines


def sums(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir())}


def without_run(path: Path) -> dict:
    record = json.loads(path.read_text())
    record.pop("run")
    return record


# --- good runs -------------------------------------------------------------------------------------------------------------


def test_a_good_run_leaves_whole_files_with_provenance_and_no_path(papers):
    write_artifact(papers, "thirds")
    outcomes, lines = run(papers)
    made = papers.parent / "figures" / "mini"
    assert outcomes["thirds"].state == "made" and sorted(sums(made)) == ["thirds.csv", "thirds.json", "thirds.md", "thirds.tex"]
    assert pd.read_csv(made / "thirds.csv")["k"].tolist() == [2, 3], "the manifest's k, not the notebook's"
    record = json.loads((made / "thirds.json").read_text())
    assert record["parameters"] == {"k": 2} and record["run"]["git"].keys() == {"commit", "dirty"} and "python" in record["run"]
    assert set(record) >= {"notebook", "collections", "versions", "data", "key", "seed", "files", "verdicts"}
    executed = papers.parent / "figures" / ".work" / "mini" / "executed" / "thirds.ipynb"
    for path in (*made.iterdir(), executed):
        assert str(papers.parent) not in path.read_text(), f"{path.name} holds an absolute path"
    assert re.fullmatch(r"\[1/1\] made +\d+\.\d s  thirds", lines[0])
    assert "1 made" in driver.summary(list(outcomes.values()), 1.0, "figures/mini")


def test_the_profile_sets_parameters(papers):
    write_artifact(papers, "thirds")
    run(papers, profile="local")
    assert pd.read_csv(papers.parent / "figures" / "local" / "thirds.csv")["k"].tolist() == [3, 4]


FIGURE = """
import matplotlib.pyplot as plt
import pandas as pd
from crumb_nb.paper import Artifact, style_path
frame = pd.DataFrame({"k": [1, 3, 5], "recall": [0.2, 0.5, 0.9]})
with plt.style.context(style_path()):
    figure, axes = plt.subplots()
    axes.plot("k", "recall", data=frame)
    axes.text(3, 0.5, "bm25")
    shown = Artifact("drawn", profile=profile, data=data, out=out, k=k).figure(figure, frame)
shown
"""


def test_two_runs_from_an_empty_cache_give_the_same_bytes(papers, cache_dir):
    "csv, md, tex, png, svg; the json apart from its run block (DESIGN 5)."
    write_artifact(papers, "thirds")
    write_artifact(papers, "drawn", FIGURE, manifest=MANIFEST.replace("table", "figure"))
    folders = []
    for n in range(2):
        shutil.rmtree(cache_dir, ignore_errors=True)
        outcomes, _ = run(papers, out=papers.parent / f"figures{n}")
        assert {o.state for o in outcomes.values()} == {"made"}
        folders.append(papers.parent / f"figures{n}" / "mini")
    first, second = (sums(f) for f in folders)
    assert {n: s for n, s in first.items() if not n.endswith(".json")} == {n: s for n, s in second.items() if not n.endswith(".json")}
    assert {Path(n).suffix for n in first} == {".csv", ".md", ".tex", ".png", ".svg", ".json"}
    for name in ("thirds.json", "drawn.json"):
        assert without_run(folders[0] / name) == without_run(folders[1] / name)


# --- unchanged, changed ----------------------------------------------------------------------------------------------------


def test_unchanged_is_not_run_again_and_every_change_is(papers, monkeypatch):
    path = write_artifact(papers, "thirds")
    state = lambda **more: run(papers, **more)[0]["thirds"].state
    assert state() == "made"
    before = sums(papers.parent / "figures" / "mini")
    os.utime(path)
    assert state() == "unchanged", "a time stamp decides nothing"
    assert sums(papers.parent / "figures" / "mini") == before
    assert state(force=True) == "made"
    path.with_suffix(".yaml").write_text(MANIFEST.replace("k: 2", "k: 4"))
    assert state() == "made" and state() == "unchanged"
    (papers.parent / "figures" / "mini" / "thirds.md").write_text("changed by hand")
    assert state() == "made", "a file that is not ours any more is made again"
    (papers.parent / "figures" / "mini" / "thirds.tex").unlink()
    assert state() == "made"
    monkeypatch.setattr(driver, "package_versions", lambda names: {"pandas": "0"})
    assert state() == "made"


def test_the_key_follows_data_files_and_source(papers, monkeypatch):
    manifest = read_manifest(write_artifact(papers, "thirds").with_suffix(".yaml"))
    same = driver.artifact_key(manifest, {"k": 2}, {"a": "1"})
    assert driver.artifact_key(manifest, {"k": 2}, {"a": "1"}) == same
    assert driver.artifact_key(manifest, {"k": 2}, {"a": "2"}) != same
    assert driver.artifact_key(manifest, {"k": 3}, {"a": "1"}) != same
    assert driver.artifact_key(manifest, {"k": 2}, {"a": "1"}, {"mine.jsonl": "1"}) != same
    monkeypatch.setattr(driver, "code_hashes", lambda modules: "other code")
    assert driver.artifact_key(manifest, {"k": 2}, {"a": "1"}) != same


def test_a_users_run_file_is_part_of_the_key(papers):
    parameters = STANDARD + "\nsystems = ''"
    cell = TABLE.replace("NAME", "'thirds'").replace("k=k)", "k=k, systems=systems)\nartifact.note(' '.join(artifact.systems()))")
    write_artifact(papers, "thirds", cell, parameters=parameters, manifest=MANIFEST + "systems: {all: [bm25]}\n")
    mine = papers.parent / "mine.jsonl"
    mine.write_text('{"query": {"id": "q"}, "items": []}\n')
    state = lambda: run(papers, systems="run(mine.jsonl) bm25")[0]["thirds"].state
    assert (state(), state()) == ("made", "unchanged")
    assert "bm25 run(mine.jsonl)" in (papers.parent / "figures" / "mini" / "thirds.md").read_text()
    mine.write_text('{"query": {"id": "q2"}, "items": []}\n')
    assert state() == "made"
    assert run(papers, systems="bm52(")[0]["thirds"].state == "failed"


def test_files_of_one_name_are_each_part_of_the_key(papers):
    "Two run files a/run.jsonl and b/run.jsonl: the table is made again whichever of them changes."
    notebook = write_artifact(papers, "thirds", parameters=STANDARD + "\nsystems = ''", manifest=MANIFEST + "systems: {all: [bm25]}\n")
    manifest, specs = read_manifest(notebook.with_suffix(".yaml")), "run(a/run.jsonl) run(b/run.jsonl)"
    for name in ("a", "b"):
        (papers.parent / name).mkdir()
        (papers.parent / name / "run.jsonl").write_text("")
    for name in ("a", "b"):
        before = driver.plan_artifact(manifest, "mini", "", specs, papers, {}).key
        (papers.parent / name / "run.jsonl").write_text("\n")
        assert driver.plan_artifact(manifest, "mini", "", specs, papers, {}).key != before, name


def test_fetched_data_is_named_below_its_folder(papers, cache_dir):
    "In the profile hub DATA is the fetched folder: files of one name in two folders are two files, both hashed."
    for name in ("x", "y"):
        (cache_dir / "data" / "documents" / name).mkdir(parents=True)
        (cache_dir / "data" / "documents" / name / "page.md").write_text(name)
    manifest = read_manifest(write_artifact(papers, "thirds", manifest=MANIFEST + "inputs: [documents]\n").with_suffix(".yaml"))
    plan = driver.plan_artifact(manifest, "hub", "", "", papers, {})
    assert list(plan.data) == ["documents/x/page.md", "documents/y/page.md"] and len(set(plan.data.values())) == 2


# --- what papermill lets pass ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tagged": 0}, "0 cells are tagged"),
        ({"tagged": 2}, "2 cells are tagged"),
        ({"parameters": None}, "0 cells are tagged"),
        ({"parameters": STANDARD.replace("k = 1", "top_k = 1")}, "no such parameter"),
        ({"parameters": STANDARD.replace("k = 1", "k = 'one'")}, "the default is str 'one'"),
        ({"parameters": STANDARD.replace("k = 1", "k = 1 + 1")}, "not a literal"),
        ({"parameters": STANDARD + "\nprint(k)"}, "only `name = literal`"),
        ({"parameters": STANDARD + "\nif True: pass"}, "only `name = literal`"),
        ({"parameters": STANDARD + "\nx ="}, "not Python"),
        ({"parameters": STANDARD.replace("out = ''", "elsewhere = ''")}, "field 'out'"),
        ({"cells": ("k = 10",)}, "assigns the parameter again"),
        ({"cells": ("(k, l) = 1, 2",)}, "assigns the parameter again"),
        ({"cells": ("for k in (1, 2):\n    pass",)}, "assigns the parameter again"),
        ({"cells": ("if k:\n    exit()", "k")}, "a kernel ignores"),
        ({"manifest": MANIFEST.replace("kind: table", "kind: chart")}, "choose one of"),
    ],
)
def test_a_notebook_is_refused_before_it_runs(papers, change, said):
    "PM01 and its relatives: exit 0 with a table made from other parameters than it names."
    cells = change.pop("cells", ())
    write_artifact(papers, "wrong", *cells, **change)
    if "manifest" in change:
        with pytest.raises(DataError, match=said):
            run(papers)
    else:
        outcome = run(papers)[0]["wrong"]
        assert outcome.state == "failed" and said in outcome.reason and "wrong.ipynb" in outcome.reason
    assert not (papers.parent / "figures" / "mini").exists()


@pytest.mark.parametrize(
    "cell",
    [
        "for k in (1, 2):\n    pass",
        "for n, (m, *k) in []:\n    pass",
        "with open('x') as k:\n    pass",
        "if True:\n    k = 3",
        "if False:\n    pass\nelse:\n    k: int = 3",
        "try:\n    k += 3\nexcept ValueError:\n    pass",
        "try:\n    pass\nexcept ValueError as k:\n    pass",
        "while True:\n    k = 3",
        "match 1:\n    case k:\n        pass",
        "match [1]:\n    case [*k]:\n        pass",
        "match {}:\n    case {**k}:\n        pass",
        "print(k := 3)",
        "[(k := n) for n in (1, 2)]",
        "import json as k",
        "import k.part",
        "from json import dumps as k",
        "def k():\n    pass",
        "class k:\n    pass",
    ],
)
def test_every_way_to_bind_a_parameter_again_is_seen(papers, cell):
    "Each of these leaves another k to the cells below than the manifest gave."
    with pytest.raises(DataError, match="field 'k': cell 2 assigns the parameter again"):
        runner.notebook_parameters(write_artifact(papers, "again", cell))


@pytest.mark.parametrize("cell", ["def f(k):\n    k = 3\n    for k in (): pass", "class A:\n    k = 3", "f = lambda k: k", "[k for k in (1, 2)], {k: 1 for k in ()}, {k for k in ()}, list(k for k in ())", "import json.k, k_ as other", "a.k = b['k'] = k", "f(k=3)"])
def test_a_name_with_a_scope_of_its_own_is_not_the_parameter(papers, cell):
    assert runner.notebook_parameters(write_artifact(papers, "apart", cell))["k"] == 1


def test_pm01_the_recorded_case(cases, papers):
    case = cases["PM01"]["input"]
    write_artifact(papers, "pm01", *case["cells"], parameters=None)
    outcome = run(papers)[0]["pm01"]
    assert outcome.state == "failed" and "tagged `parameters`" in outcome.reason


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("raise ValueError('no luck')", r"bad.ipynb, cell 3 \(`raise ValueError\('no luck'\)`\): ValueError: no luck"),
        ("import sys; sys.exit(0)", "cell 3 .*SystemExit: 0"),
        ("import os; os._exit(0)", "bad.ipynb.*(Kernel died|DeadKernelError)"),
        ("(Path(out) / 'bad.json').unlink()", "left no bad.json"),
        ("(Path(out) / 'other.csv').write_text('x')", "files of another name: other.csv"),
        ("(Path(out) / 'bad.tex').write_text('')", "left no bad.tex"),
    ],
)
def test_a_notebook_that_does_not_finish_publishes_nothing(papers, cell, said):
    "PM02; sys.exit(0) raises nothing in papermill."
    write_artifact(papers, "bad", "from pathlib import Path\n" + TABLE.replace("NAME", "'bad'"), cell, "print('after')" if "Path" not in cell else "pass")
    outcome = run(papers)[0]["bad"]
    assert outcome.state == "failed" and re.search(said, outcome.reason), outcome.reason
    assert not (papers.parent / "figures" / "mini").exists()
    kept = papers.parent / "figures" / ".work" / "mini" / "executed"
    assert [p.name for p in kept.iterdir()] == ["bad.failed.ipynb"], "kept for reading, under another name"
    assert "mini" == kept.parent.name and not list(kept.parent.glob("run-*")), "nothing temporary is left"


def test_an_earlier_good_artifact_stays_and_the_others_are_made(papers):
    path = write_artifact(papers, "first", manifest=MANIFEST + "order: 1\n")
    write_artifact(papers, "second", manifest=MANIFEST + "order: 2\n")
    run(papers)
    good = sums(papers.parent / "figures" / "mini")
    notebook = nbformat.read(path, 4)
    notebook.cells[1].source = "(__import__('pathlib').Path(out) / 'first.csv').write_text('half')\n1 / 0"
    nbformat.write(notebook, path)
    write_artifact(papers, "second", manifest=MANIFEST.replace("Thirds of", "The thirds of") + "order: 2\n")
    stopped, _ = run(papers, keep_going=False, jobs=1)
    assert (stopped["first"].state, stopped["second"].state) == ("failed", "not run")
    assert sums(papers.parent / "figures" / "mini") == good
    going, _ = run(papers, keep_going=True)
    assert (going["first"].state, going["second"].state) == ("failed", "made")
    assert {n: s for n, s in sums(papers.parent / "figures" / "mini").items() if n.startswith("first")} == {n: s for n, s in good.items() if n.startswith("first")}
    text = driver.summary(list(going.values()), 3, "x")
    assert text.splitlines()[0].startswith("failed: first: first.ipynb, cell 2") and "1 made, 1 failed" in text


@pytest.mark.parametrize("kernel", [None, {"name": "my_old_env", "display_name": "old", "language": "python"}])
def test_a_foreign_or_missing_kernel_runs_on_python3(papers, kernel):
    "PM04."
    write_artifact(papers, "thirds", kernel=kernel)
    assert run(papers)[0]["thirds"].state == "made"


def test_an_executed_notebook_is_refused_as_input(papers):
    "PM06: its injected values would stay."
    path = write_artifact(papers, "thirds")
    run(papers)
    shutil.copy(papers.parent / "figures" / ".work" / "mini" / "executed" / "thirds.ipynb", path)
    outcome = run(papers)[0]["thirds"]
    assert outcome.state == "failed" and "output of an earlier run" in outcome.reason


def test_a_cell_that_takes_too_long_is_named(papers):
    write_artifact(papers, "slow", "import time; time.sleep(60)")
    outcome = run(papers, timeout=2)[0]["slow"]
    assert outcome.state == "failed" and "slow.ipynb, cell 2" in outcome.reason and outcome.seconds < 40


def test_a_missing_or_broken_notebook_is_named(papers):
    write_artifact(papers, "gone").unlink()
    write_artifact(papers, "broken").write_text("{")
    outcomes, _ = run(papers)
    assert "no such notebook" in outcomes["gone"].reason and "not a notebook" in outcomes["broken"].reason


# --- not available ---------------------------------------------------------------------------------------------------------


def test_missing_data_is_not_available_with_its_reason(papers):
    write_artifact(papers, "needs", manifest=MANIFEST + "inputs: [locomo]\n")
    write_artifact(papers, "says", "from crumb_nb.datasets.profiles import Unavailable\nraise Unavailable('no runs; put them into DATA/runs')")
    outcomes, _ = run(papers, profile="local", data=papers)
    assert outcomes["needs"].state == outcomes["says"].state == "N/A"
    assert "locomo10.json" in outcomes["needs"].reason and outcomes["says"].reason == "no runs; put them into DATA/runs"
    assert run(papers, profile="local")[0]["needs"].reason.startswith("locomo: no folder was given")
    assert run(papers)[0]["needs"].state == "made", "mini has its own"
    record = json.loads((papers.parent / "figures" / "mini" / "needs.json").read_text())
    assert list(record["data"]) == ["data/locomo/locomo_mini.json"]


# --- order, choice, errors -------------------------------------------------------------------------------------------------


def test_an_artifact_after_others_reads_their_tables(papers):
    write_artifact(papers, "thirds")
    cell = "import os\nfrom pathlib import Path\nassert (Path(figures) / 'thirds.csv').is_file()\n" + TABLE.replace("NAME", "'all'")
    write_artifact(papers, "all", cell, parameters=STANDARD + "\nfigures = ''", manifest=MANIFEST + "order: 1\nafter: [all]\n")
    states = lambda: {o.id: o.state for o in run(papers)[0].values()}
    assert states() == {"all": "made", "thirds": "made"}
    assert states() == {"all": "unchanged", "thirds": "unchanged"}
    (papers / "demo" / "thirds.yaml").write_text(MANIFEST.replace("k: 2", "k: 5"))
    assert states() == {"all": "made", "thirds": "made"}, "it depends on what was made before"


def test_choosing_by_id_and_paper(papers):
    write_artifact(papers, "thirds", manifest=MANIFEST + "profiles: [mini]\n")
    manifests = find_manifests(papers)
    assert driver.choose(manifests, ["demo"], "mini") == driver.choose(manifests, ["thirds"], "mini") == manifests
    assert driver.choose(manifests, [], "local") == []
    with pytest.raises(DataError, match="thirds"):
        driver.choose(manifests, ["third"], "mini")
    with pytest.raises(DataError, match="unknown profile"):
        driver.run_paper(profile="real", papers=papers)


def test_outside_a_checkout_the_command_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(driver.crumb_nb, "__file__", str(tmp_path / "lib" / "crumb_nb" / "__init__.py"))
    with pytest.raises(DataError, match="not part of the installed package"):
        driver.find_papers()


AS_NOBODY = """
import os, sys
from pathlib import Path
import crumb_nb.datasets.crumb
from crumb_nb import driver
from crumb_nb.datasets.profiles import Unavailable, data_path, input_files
from crumb_nb.records import DataError
os.chdir(sys.argv[1])
if not os.getuid():
    os.setuid(65534)  # permissions do not bind root
def said(call, *given):
    try:
        return str(call(*given))
    except (DataError, Unavailable) as error:
        return f"{type(error).__name__}: {error}"
"""


def as_nobody(folder: Path, *calls: str) -> list[str]:
    "What each call gives or raises for a user without rights; paths are relative to the folder, for nobody may not pass through pytest's own."
    script = AS_NOBODY + "".join(f"print({call})\n" for call in calls)
    folder.chmod(0o755)
    return subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_output_folder_is_all_that_must_be_writable(tmp_path):
    "Work is done inside of it: its parent may be locked."
    for name, mode in (("open", 0o777), ("locked", 0o555), ("half", 0o777)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    (tmp_path / "half" / "mini").mkdir(mode=0o555)
    lines = as_nobody(tmp_path, *(f"said(driver._work_folder, Path({name!r}))" for name in ("open/mini", "locked/mini", "half/mini", "open/new/mini", "locked/new/mini")))
    refused = "cannot be written (Permission denied); choose another folder with --out"
    assert lines == ["open/.work/mini", f"DataError: locked: {refused}", f"DataError: half/mini: {refused}", "open/new/.work/mini", f"DataError: locked/new: {refused}"]
    (tmp_path / "half" / "mini").chmod(0o755)


def test_an_output_that_is_no_folder_is_told_before_the_first_notebook(papers):
    write_artifact(papers, "thirds")
    (papers.parent / "file").write_text("")
    (papers.parent / "circle").symlink_to("circle")
    (papers.parent / "taken").mkdir()
    (papers.parent / "taken" / "mini").write_text("")
    for out, why in (("file", "Not a directory"), ("file/below", "Not a directory"), ("circle", "Too many levels"), ("x" * 300, "File name too long"), ("taken", "Not a directory"), ("/proc/figures", "No such file")):
        with pytest.raises(DataError, match=rf"{out}.*: cannot be written \({why}.*\); choose another folder with --out"):
            run(papers, out=out)


def test_a_data_folder_that_cannot_be_read_is_not_called_absent(tmp_path):
    from crumb_nb.datasets.profiles import package_data

    (tmp_path / "locomo").mkdir(mode=0o000)
    (tmp_path / "longmemeval").mkdir(mode=0o644)  # its names may be listed, its files not opened
    (tmp_path / "documents" / "deep").mkdir(parents=True)
    (tmp_path / "lost+found").mkdir(mode=0o000)
    shutil.copytree(package_data() / "crumb", tmp_path / "tasks")
    lines = as_nobody(tmp_path, *(f"said(data_path, {kind!r}, 'local', '.')" for kind in ("locomo", "longmemeval", "crumb", "chunk_spans")))
    refused = "cannot be read (Permission denied)"
    assert lines[0].startswith(f"DataError: locomo: {refused}") and lines[1].startswith(f"DataError: longmemeval: {refused}") and lines[2] == "tasks"
    assert lines[3].startswith("Unavailable: chunk_spans: none of"), "what is absent is still absent"
    (tmp_path / "documents" / "deep").chmod(0o000)
    task = next(p.parent for p in sorted((tmp_path / "tasks").glob("*/eval")))
    task.chmod(0o000)
    lines = as_nobody(tmp_path, "said(input_files, 'documents', 'local', '.')", "said(data_path, 'crumb', 'local', '.')")
    assert lines[0].startswith(f"DataError: documents/deep: {refused}") and lines[1].startswith(f"DataError: tasks/{task.name}: {refused}")
    for path in (task, tmp_path / "documents" / "deep", tmp_path / "locomo", tmp_path / "longmemeval", tmp_path / "lost+found"):
        path.chmod(0o755)


def test_beside_the_tasks_in_data_may_stand_what_cannot_be_read(tmp_path):
    from crumb_nb.datasets.profiles import package_data

    shutil.copytree(package_data() / "crumb", tmp_path / "data")
    (tmp_path / "data" / "lost+found").mkdir(mode=0o000)
    assert int(as_nobody(tmp_path, "len(input_files('crumb', 'local', 'data'))")[0]) > 20
    (tmp_path / "data" / "lost+found").chmod(0o755)


def test_a_task_folder_that_is_a_link_is_hashed(tmp_path):
    "Its files would be read and not be part of the key; a link back to DATA is followed once."
    from crumb_nb.datasets.profiles import input_files, package_data

    (tmp_path / "data").mkdir()
    for folder in (package_data() / "crumb").iterdir():
        (tmp_path / "data" / folder.name).symlink_to(folder)
    (tmp_path / "data" / "circle").symlink_to(tmp_path / "data")
    found = input_files("crumb", "local", tmp_path / "data")
    assert len(found) == len(input_files("crumb")) and not any("circle" in p.parts for p in found)


def test_no_time_left_is_told_before_there_is_something_to_tell_it_from(papers):
    "The first to finish is the fastest, and a failure takes no time: neither is a mean."
    for n in range(5):
        write_artifact(papers, f"t{n}", manifest=MANIFEST + f"order: {n}\n")
    lines = run(papers, jobs=1)[1]
    assert ["left" in line for line in lines] == [False, False, True, True, False]
    write_artifact(papers, "t5", "raise ValueError", manifest=MANIFEST + "order: 0\n")
    lines = run(papers, jobs=1, force=True)[1]
    assert [("left" in line) for line in lines] == [False, False, True, True, True, False], "earlier runs tell at once, once the failure has no part in it"


# --- kill -9 ---------------------------------------------------------------------------------------------------------------


def test_kill_and_again_gives_the_same_bytes(papers, cache_dir):
    "kill -9 in the middle of a run: nothing half-written is published; the next run starts from cell 1 and cleans up."
    flag = papers.parent / "slow"
    write_artifact(papers, "one", manifest=MANIFEST + "order: 1\n")
    cell = f"import time, os\n(open(os.path.join(out, 'two.csv'), 'w')).write('half')\nwhile os.path.exists({str(flag)!r}): time.sleep(.05)\n" + TABLE.replace("NAME", "'two'")
    write_artifact(papers, "two", cell, manifest=MANIFEST + "order: 2\n")
    run(papers, out=papers.parent / "undisturbed")
    flag.write_text("")
    script = f"from crumb_nb import driver; driver.code_hashes = lambda modules: 'the same code'; driver.run_paper(papers={str(papers)!r}, out={str(papers.parent / 'figures')!r}, jobs=1)"
    process = subprocess.Popen([sys.executable, "-c", script], cwd=papers.parent, env={**os.environ, "CRUMB_NB_CACHE": str(cache_dir)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    work = papers.parent / "figures" / ".work" / "mini"
    deadline = time.monotonic() + 120
    while not list(work.glob("run-*/out/two.csv")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    figures = papers.parent / "figures" / "mini"
    assert {p.name.split(".")[0] for p in figures.iterdir()} == {"one"}, "only what was complete is there"
    assert list(work.glob("run-*")), "the kill left its temporary folder"
    flag.unlink()
    outcomes, _ = run(papers)
    assert (outcomes["one"].state, outcomes["two"].state) == ("unchanged", "made")
    assert not list(work.glob("run-*")), "the next run cleans up"
    same = lambda folder: {n: s for n, s in sums(folder).items() if not n.endswith(".json")}
    assert same(figures) == same(papers.parent / "undisturbed" / "mini")


# --- manifests and verdicts ------------------------------------------------------------------------------------------------


def manifest(tmp_path, text: str) -> Manifest:
    (tmp_path / "m.yaml").write_text("title: T\nkind: table\ncaption: C\n" + text)
    return read_manifest(tmp_path / "m.yaml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("titel: x", "unknown key"),
        ("profiles: [real]", "unknown profile"),
        ("parameters: {real: {}}", "unknown key"),
        ("parameters: {all: [1]}", "dict is expected"),
        ("systems: {all: bm25}", "list is expected"),
        ("published: [{row: {a: 1}, values: {v: 1}, source: s, mark: X, why_not: w}]", "P, C or S"),
        ("published: [{row: {a: 1}, values: {v: 1}, source: s, why_not: w}]", "needs row, values, source and mark"),
        ("published: [{row: {a: 1}, values: {v: 1}, source: s, mark: P}]", "why_not"),
        ("published: [{row: {a: 1}, values: {v: 1}, source: s, mark: P, ours: {a: 1}, tolerence: 1}]", "unknown key"),
        ("expected: {mini: {keys: [a], cells: [[1, 2]]}}", "must have 1 key values"),
        ("expected: {mini: [1]}", "must be a mapping"),
        ("expected: {mini: {keys: [a], tolerance: narrow, cells: []}}", "not negative is needed, not 'narrow'"),
        ("published: [{row: {a: 1}, values: {v: 1}, source: s, mark: P, why_not: w, tolerance: -1}]", "not negative"),
        ("published: [{row: {a: 1}, values: {v: about half}, source: s, mark: P, why_not: w}]", r"field 'published.values.v': 'about half' is not a number.*row \{'a': 1\}"),
        ("published: [{row: {a: 1}, values: {v: '1,526'}, source: s, mark: P, why_not: w}]", "without separators of thousands"),
        ("published: [{row: {a: 1}, values: {v: '84.6 %'}, source: s, mark: P, why_not: w}]", "per cent"),
        ("published: [{row: {a: 1}, values: {v: nan}, source: s, mark: P, why_not: w}]", "'nan' is not a number"),
        ("published: [{row: {a: 1}, values: {v: }, source: s, mark: P, why_not: w}]", "'None' is not a number"),
        ("published: [{row: {a: 1}, values: {v: true}, source: s, mark: P, why_not: w}]", "'True' is not a number"),
        ("published: [{row: {a: 1}, values: [0.5], source: s, mark: P, why_not: w}]", "field 'published.values': a mapping"),
        ("published: [{row: page, values: {v: 0.5}, source: s, mark: P, why_not: w}]", "field 'published.row': a mapping"),
        ("title: ''", "non-empty"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_manifest_is_checked_key_by_key(tmp_path, text, said):
    with pytest.raises(DataError, match=said) as error:
        manifest(tmp_path, text)
    assert "m.yaml" in str(error.value)
    with pytest.raises(DataError, match="needs a manifest"):
        read_manifest(tmp_path / "absent.yaml")


def test_a_tolerance_is_a_number_however_it_is_written(tmp_path):
    made = manifest(tmp_path, "expected: {mini: {keys: [a], tolerance: 1e-07, cells: [[1, v, 0.5]]}}")
    assert made.expected["mini"].tolerance == 1e-07, "YAML reads 1e-07 as text"
    assert verdicts(made, "mini", pd.DataFrame({"a": [1], "v": [0.50001]}))["verdict"].tolist() == ["FAIL"]


@pytest.mark.parametrize(("written", "number"), [("0.5", 0.5), ("'0.50'", 0.5), ("12", 12), ("-3", -3), ("0.00001", 1e-05), ("1e-7", 1e-07), (".5", 0.5)])
def test_whatever_is_accepted_as_published_becomes_a_number(tmp_path, written, number):
    "YAML writes 0.00001 as 1e-05."
    made = manifest(tmp_path, f"published: [{{row: {{a: 1}}, values: {{v: {written}}}, source: s, mark: P, why_not: w}}]")
    beside = Artifact("m", manifest=made.path, profile="local").beside(pd.DataFrame({"a": [0], "v": [1]}))
    assert beside["v"].tolist() == [1, number] and verdict(made.published[0].values["v"], number) == "OK"


def test_two_artifacts_of_one_name_are_refused(papers):
    write_artifact(papers, "thirds")
    shutil.copytree(papers / "demo", papers / "other")
    with pytest.raises(DataError, match="overwrite each other"):
        find_manifests(papers)


@pytest.mark.parametrize(
    ("printed", "ours", "said"),
    [
        ("0.8460", 1291 / 1526, "OK"),  # .84600… rounds to what was printed
        ("0.8460", 0.84605, "OK"),
        ("0.8460", 0.8464, "OKish"),
        ("0.8460", 0.8465, "OKish"),
        ("0.8460", 0.84651, "FAIL"),
        ("98.09", 98.1, "FAIL"),
        ("1460", 1460.0, "OK"),
        ("1460", 1461, "FAIL"),
        ("0.5", float("nan"), "N/A (not computed)"),
        ("0.5", None, "N/A (not computed)"),
        ("1e-3", 0.001, "OK"),
    ],
)
def test_the_verdict(printed, ours, said):
    assert verdict(printed, ours) == said


def test_verdicts_never_say_ok_for_what_was_not_computed(tmp_path):
    made = manifest(
        tmp_path,
        """
published:
  - {row: {system: page}, values: {v: "0.50"}, source: page, mark: P, ours: {system: a}}
  - {row: {system: page}, values: {v: "0.50", w: "1"}, source: page, mark: P, ours: {system: b}}
  - {row: {system: page}, values: {v: "0.50"}, source: page, mark: S, why_not: another corpus}
expected: {local: {keys: [system], cells: [[a, v, 0.5], [b, v, 0.1], [c, v, 0.1], [a, note, yes it is], [a, note, no], [a, v, 0.5004], [a, v, "0.5"]]}}
""",
    )
    frame = pd.DataFrame({"system": ["a", "b"], "v": [0.5, float("nan")], "note": ["yes it is", ""]})
    table = verdicts(made, "local", frame)
    assert table["verdict"].tolist() == [
        "OK", "FAIL (not computed)", "FAIL (0 rows match system=c)", "OK", "FAIL", "OK", "OK",
        "OK", "N/A (not computed)", "N/A (no column w)", "N/A (another corpus)",
    ]  # fmt: skip
    assert verdicts(made, "mini", frame)["verdict"].str.startswith("N/A").all()
    assert verdicts(made, "local", None, "no data")["verdict"].str.startswith("N/A").all()


def test_expected_values_can_be_recorded_and_then_hold(papers):
    path = write_artifact(papers, "thirds").with_suffix(".yaml")
    outcomes, _ = run(papers)
    folder = papers.parent / "figures" / "mini"
    assert driver.record_expected(read_manifest(path), "mini", folder) == 2
    made = read_manifest(path)
    assert made.expected["mini"].keys == ("k",) and made.title == "Thirds"
    judged = driver.check_verdicts([made], "mini", folder, list(outcomes.values()))
    assert judged["verdict"].tolist() == ["OK", "OK"]
    path.write_text(path.read_text().replace("0.66666667", "0.7"))
    assert driver.check_verdicts([read_manifest(path)], "mini", folder)["verdict"].tolist() == ["FAIL", "OK"]
    assert driver.record_expected(read_manifest(path), "mini", folder, most=1) == 1, "a long table is thinned"
    assert driver.check_verdicts([], "mini", folder).empty


# --- the artifact in a notebook --------------------------------------------------------------------------------------------


@pytest.fixture()
def artifact(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(
        "title: Recall_1 & more\nkind: table\ncaption: Of k.\nsystems: {all: [bm25, 'bm25(k1=1)'], local: [dense]}\n"
        "published:\n  - {row: {system: page}, values: {r: '0.80', n: '12'}, source: page, mark: P, why_not: another corpus}\n"
        "  - {row: {system: other}, values: {r: '0.50'}, source: other, mark: S, ours: {system: a}, note: a note}\n"
    )
    return lambda **more: Artifact("a", **{"out": str(tmp_path / "out"), **more})


def test_published_rows_stand_below_ours_in_local_only(artifact):
    frame = pd.DataFrame({"system": ["a"], "r": [0.5], "n": [10]})
    assert artifact().beside(frame)["source"].tolist() == ["ours"]
    both = artifact(profile="local").beside(frame)
    assert both["source"].tolist() == ["ours", "page (P)", "other (S)"] and both["r"].tolist() == [0.5, 0.8, 0.5]
    assert both["n"].tolist()[:2] == [10, 12] and pd.isna(both["n"].tolist()[2]), "a cell that was not published stays empty"
    assert "Int64" == str(both["n"].dtype)


def test_notes_verdicts_and_caption_are_printed(artifact, tmp_path):
    made = artifact(profile="local")
    made.note("once").note("once")
    text = str(made.table(made.beside(pd.DataFrame({"system": ["a"], "r": [0.5004], "n": [10]}))))
    assert text.startswith("**Recall_1 & more.** Of k.\n\n| system | r | n | source |")
    assert text.count("once") == 1 and "page: another corpus." in text and "ours 0.5004: OK" in text
    tex = (tmp_path / "out" / "a.tex").read_text()
    assert r"\caption{Recall\_1 \& more. Of k.}" in tex and r"\footnotesize" in tex


def test_systems_are_the_manifests_then_the_users_each_once(artifact):
    assert artifact().systems() == ["bm25", "bm25(k1=1)"]
    assert artifact(profile="local", systems="bm25 dense rrf(bm25,dense)").systems() == ["dense", "bm25", "rrf(bm25, dense)"]
    with pytest.raises(DataError, match="unknown profile"):
        artifact(profile="real")


def test_without_out_nothing_is_written(artifact, tmp_path):
    artifact(out="").table(pd.DataFrame({"system": ["a"]}))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.yaml"]


def test_a_finished_table_of_the_tables_module_is_accepted(artifact, tmp_path):
    from crumb_nb.tables import results_table

    long = pd.DataFrame({"system": ["x"] * 2 + ["y"] * 2, "query_id": ["1", "2"] * 2, "measure": "RR", "value": [1.0, 0.5, 0.5, 0.5]})
    table = results_table(long, chance={"RR": 0.1})
    text = str(artifact().table(table))
    assert text.startswith("**Recall_1 & more.**") and "chance" in text
    csv = pd.read_csv(tmp_path / "out" / "a.csv")
    assert csv.loc[csv["system"] == "x", "value"].tolist() == [0.75]


def test_collections_and_results_are_recorded(artifact, tmp_path):
    from crumb_nb.datasets.profiles import open_collections
    from crumb_nb.experiment import run_system

    made = artifact()
    turns, sessions = (open_collections("locomo", unit=u)[0] for u in ("turn", "session"))
    made.use(turns, sessions, sessions, run_system("bm25", sessions), run_system("bm25", sessions))
    made.table(pd.DataFrame({"system": ["bm25"]}))
    record = json.loads((tmp_path / "out" / "a.json").read_text())
    assert len(record["collections"]) == 2 and {c["fingerprint"] for c in record["collections"].values()} == {turns.fingerprint, sessions.fingerprint}
    assert all("gold rule" in c["protocol"] for c in record["collections"].values())
    assert len(record["systems"]["bm25"]) == 1 and record["systems"]["bm25"][0]["asked"] == sessions.protocol.asked


def test_collections_of_one_name_are_told_apart(artifact):
    "Equal in name, protocol, filter and unit: the gold rule tells them apart, at last a number. None is lost, and the same one is recorded once."
    from crumb_nb.datasets.mini import load_mini

    plain = load_mini("documents")
    base, short = plain.protocol, f"{plain.name}, {plain.protocol.name}, {plain.protocol.question_filter}, {plain.protocol.unit}"
    made = artifact()
    variants = [plain.with_(protocol=base.with_(gold_rule=rule, asked=asked)) for rule, asked in (("g", 100), ("g2", 100), ("g3", 100), ("g3", 50), ("g3", 25))]
    made.use(*variants, *variants)
    cards = made._collections
    assert list(cards) == [plain.name, short, f"{short}, g3", f"{short}, g3, 2", f"{short}, g3, 3"]
    assert [card["protocol"]["gold rule"] for card in cards.values()] == ["g", "g2", "g3", "g3", "g3"]


def test_a_figure_shows_its_picture_and_is_closed(artifact):
    import matplotlib.pyplot as plt

    with plt.style.context(style_path()):
        figure, axes = plt.subplots()
        shown = artifact(out="").figure(figure, pd.DataFrame({"system": ["a"], "r": [1.0]}))
    bundle = shown._repr_mimebundle_()
    assert bundle["text/html"].startswith('<img src="data:image/png;base64,') and "<b>Recall_1 &amp; more.</b>" in bundle["text/html"]
    assert not plt.get_fignums()


def test_printing_of_cells():
    assert [format_value(v) for v in (None, float("nan"), pd.NA, pd.NaT, np.float32("nan"), 3, 1234567, 0.12345, "x", True)] == ["–"] * 5 + ["3", "1,234,567", "0.123", "x", "True"]
    assert format_value(2.0, 1) == "2.0" and format_value(7, 2) == "7.00"
    frame = pd.DataFrame({"a|b": ["x\ny", "_"], "n": [1, 2]})
    assert to_markdown(frame).splitlines() == ["| a\\|b | n |", "|---|---:|", "| x y | 1 |", "| _ | 2 |"]
    assert r"\begin{tabular}{lr}" in to_tex(frame, "c", "l") and to_markdown(pd.DataFrame({"a": []})) == "| a |\n|---:|"


def test_csv_reads_back_to_the_same_floats(tmp_path):
    frame = pd.DataFrame({"v": [0.1 + 0.2, 1 / 3, 1e-17]})
    write_csv(frame, tmp_path / "x.csv")
    assert [float(line) for line in (tmp_path / "x.csv").read_text().split()[1:]] == frame["v"].tolist()


def test_figures_have_no_date_and_do_not_depend_on_the_folder(tmp_path):
    import matplotlib.pyplot as plt

    for name in ("a", "b"):
        with plt.style.context(style_path()):
            figure, axes = plt.subplots()
            axes.bar(["x", "y"], [1, 2])
            write_figure(figure, tmp_path / name / "f")
            plt.close(figure)
    assert sums(tmp_path / "a") == sums(tmp_path / "b")
    assert b"Date" not in (tmp_path / "a" / "f.svg").read_bytes() and b"matplotlib" not in (tmp_path / "a" / "f.png").read_bytes().lower()


# --- the paper notebooks of this checkout ----------------------------------------------------------------------------------

MANIFESTS = find_manifests(ROOT / "nbs" / "papers")


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda m: m.id)
def test_paper_notebooks_keep_the_rules(manifest):
    "One parameters tag, the standard names, mini values as defaults, no output stored, one artifact of the same id, published figures marked."
    notebook = runner.read_notebook(manifest.notebook)
    defaults = runner.notebook_parameters(manifest.notebook, notebook)
    needed = (*runner.STANDARD, *(("systems",) if manifest.systems else ()), *(("figures",) if manifest.after else ()))
    for profile in manifest.profiles:
        runner.check_parameters(manifest.parameters_of(profile), defaults, manifest.notebook, needed)
    assert {**defaults, **manifest.parameters_of("mini")} == defaults, "the defaults are the mini profile"
    assert defaults["profile"] == "mini" and not defaults["data"] and not defaults["out"]
    code = "\n".join(c.source for c in notebook.cells if c.cell_type == "code")
    assert f'Artifact("{manifest.id}"' in code
    assert all(p.mark in MARKS and p.source for p in manifest.published)
    assert notebook.cells[0].source.startswith("# ") and len({c["id"] for c in notebook.cells}) == len(notebook.cells)
    lines = next(c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])).source.splitlines()
    assert all("#" in line for line in lines if line.strip()), "each parameter has its comment"


def test_notebooks_that_run_at_once_are_of_different_data():
    "Neighbours of one kind of data would compute the same runs at the same moment; every plan stays in, each once."
    plans = [driver.Plan(Manifest(f"{kind}{n}", Path(f"{kind}{n}.yaml"), "T", "table", "C", inputs=(kind,)), {}, {}, "") for kind, count in (("crumb", 4), ("locomo", 2), ("longmemeval", 1)) for n in range(count)]
    spread = [plan.manifest.id for plan in driver._spread(plans)]
    assert spread == ["crumb0", "locomo0", "longmemeval0", "crumb1", "locomo1", "crumb2", "crumb3"]


def test_a_small_p_value_is_not_printed_as_zero():
    "10,000 resamples cannot give 0: the smallest p is 1/10,001."
    frame = pd.DataFrame({"difference": [1e-5], "p": [9.999e-05]})
    assert to_markdown(frame).splitlines()[-1] == "| 0.000 | <0.001 |" and to_markdown(frame, {"p": 4}).endswith("| 0.0001 |")
    assert to_markdown(pd.DataFrame({"p": [0.0, float("nan"), 0.0005, 0.9999]})).splitlines()[2:] == ["| 0.000 |", "| – |", "| 0.001 |", "| 1.000 |"]


def test_a_linked_data_folder_is_hashed_by_the_names_it_has_below_data(tmp_path):
    "Resolved, the files of eight tasks all were `passage_corpus.jsonl`, and a change in all but one went unseen."
    from crumb_nb.datasets.crumb import mini_folder

    (tmp_path / "data").mkdir()
    (tmp_path / "elsewhere").symlink_to(mini_folder())
    (tmp_path / "data" / "crumb").symlink_to(tmp_path / "elsewhere")
    manifest = next(m for m in find_manifests(driver.find_papers()) if m.id == "crumb_tasks")
    plan = driver.plan_artifact(manifest, "local", str(tmp_path / "data"), "", tmp_path, {})
    assert len(plan.data) > 20 and all(name.startswith("crumb/") for name in plan.data)


def test_what_is_read_where_it_is_there_is_part_of_the_key(tmp_path):
    manifest = next(m for m in find_manifests(driver.find_papers()) if m.id == "audit_published")
    plan = driver.plan_artifact(manifest, "mini", "", "", tmp_path, {})
    assert any(name.startswith("data/published/") for name in plan.data), "the tables that are audited"


def test_what_a_system_lacks_is_said_below_the_table(artifact, tmp_path):
    "A row that is missing, and one that is low because its file lacks queries, look like findings about the system."
    from crumb_nb.datasets.mini import load_mini
    from crumb_nb.experiment import run_grid
    from crumb_nb.record_files import write_run

    trials, code = load_mini("clinical_trial"), load_mini("code_retrieval")
    queries, docs = list(trials.queries.index), list(trials.corpus.index)
    write_run(Run.from_dict({q: {docs[0]: 1.0, "nowhere": 2.0} for q in queries[:5]}), tmp_path / "part.jsonl")
    made = artifact().use(*run_grid(["run(part.jsonl)"], [trials, code]).results)
    text = made._footnotes()
    assert f"run(part.jsonl): {len(queries) - 5} queries of mini/clinical_trial are not in the file and count 0." in text
    assert "run(part.jsonl): 5 of its rows name no document of mini/clinical_trial." in text
    assert "run(part.jsonl): N/A on mini/code_retrieval: part.jsonl: holds none of the queries of this collection." in text


def test_an_input_that_cannot_be_read_fails_its_own_artifact(papers, monkeypatch):
    write_artifact(papers, "needs", manifest=MANIFEST + "inputs: [locomo]\n")
    write_artifact(papers, "thirds")

    def unreadable(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(driver, "file_sha256", lambda path: unreadable(path) if "locomo" in str(path) else file_sha256(path))
    outcomes, _ = run(papers)
    assert (outcomes["needs"].state, outcomes["thirds"].state) == ("failed", "made") and "Permission denied" in outcomes["needs"].reason and "locomo_mini.json" in outcomes["needs"].reason


def test_labels_are_moved_apart_and_systems_look_different():
    "Two labels at one height move half a gap each; nothing stands above the top. Black and grey belong to ceiling and random order."
    import matplotlib.pyplot as plt

    from crumb_nb.paper import apart, system_looks

    assert apart([0.5, 0.5, 0.9], 0.1).tolist() == pytest.approx([0.45, 0.55, 0.9])
    assert apart([1.0, 1.0], 0.1, top=1.0).tolist() == pytest.approx([0.9, 1.0])
    with plt.style.context(style_path()):
        looks = system_looks(map(str, range(12)))
    assert len(set(looks.values())) == 12 and not {"#000000", "#8C8C8C"} & {colour.upper() for colour, _ in looks.values()}
