"""Every library notebook and lesson runs from top to bottom in a real kernel, within a time limit."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 600  # seconds a single cell may take: the data card encodes every embedded passage once on two cores
NOTEBOOKS = sorted(p for p in (ROOT / "nbs").glob("*.ipynb")) + sorted((ROOT / "nbs" / "lessons").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_runs(path, tmp_path, monkeypatch):
    "Runs on a copy in memory: the committed outputs are what the reader sees, this shows that they can be made."
    monkeypatch.setenv("CRUMB_NB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=LIMIT, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}, env=dict(os.environ))
    try:
        client.execute()
    except CellExecutionError as error:
        pytest.fail(f"{path.name}: {error}", pytrace=False)
    assert all(cell.get("execution_count") for cell in notebook.cells if cell.cell_type == "code"), "a code cell was not executed"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_anatomy(path):
    "A title, a one-line subtitle, stable cell ids, no leftover of an error."
    notebook = nbformat.read(path, as_version=4)
    first = notebook.cells[0]
    assert first.cell_type == "markdown" and first.source.startswith("# "), "starts with a title"
    assert first.source.split("\n\n")[1].startswith("> "), "has a one-line subtitle after the title"
    identifiers = [cell["id"] for cell in notebook.cells]
    assert len(set(identifiers)) == len(identifiers)
    assert not any(output.output_type == "error" for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs)
    assert not any("import *" in cell.source for cell in notebook.cells if cell.cell_type == "code"), "no star imports"
