"""A folder of artifacts whose data tries everything: markup in ids, queries, titles and headings."""

import json
from pathlib import Path

import matplotlib
import pandas as pd
import yaml

from crumb_nb.experiment import run_grid
from crumb_nb.paper import Artifact
from crumb_nb.protocols import Protocol
from crumb_nb.records import Collection, Qrels, corpus_frame, queries_frame

matplotlib.use("agg")

BAD_ID = "<script>window.hit = 'id'</script>"
BAD_QUERY = "\"><img src=x onerror=\"window.hit = 'query'\"> herons"
BAD_TITLE = "Herons </script><script>window.hit = 'title'</script>"
BAD_HEADING = "<b onmouseover=window.hit='heading'>Birds</b>"
BAD_SYSTEM_NOTE = "a note with <img src=x onerror=window.hit='note'> & `code`"
SYSTEMS = ["bm25", "bm25(stemmer=porter)", "oracle"]


def collection(extra: int = 0) -> Collection:
    "Four birds and three queries; `extra` further queries, each with a document of its own."
    texts = {
        BAD_ID: "Herons stand in shallow water. </p><script>window.hit = 'text'</script>",
        "d-2": "A heron was standing by the lake.",
        "d-3": "Kestrels hover above the verge of a road.",
        "d-4": "Nothing here is of any use.",
    }
    queries = {"q-1": BAD_QUERY, "q-2": "standing heron", "q-3": "kestrel hovering"}
    gold = {"q-1": {BAD_ID: 1.0, "d-4": 0.0}, "q-2": {"d-2": 2.0}, "q-3": {"d-3": 1.0}}
    for n in range(extra):
        texts[f"x-{n:04d}"] = f"Word{n} and more of the same kind. " * 12
        queries[f"x-{n:04d}"] = f"word{n} kinds"
        gold[f"x-{n:04d}"] = {f"x-{n:04d}": 1.0}
    notes = [json.dumps({"headings": [BAD_HEADING, "Waders"]})] + ["{}"] * (len(texts) - 1)
    protocol = Protocol("birds", "passage", "passage", "by hand", ("R@1", "RR"), asked=10, k=(1,))
    return Collection(
        name="birds <i>", corpus=corpus_frame(list(texts), list(texts.values()), None, notes), queries=queries_frame(list(queries), list(queries.values())), qrels=Qrels.from_dict(gold),
        protocol=protocol, licence="CC BY 4.0 <script>window.hit = 'licence'</script>", source="made for this test", citation="nobody",
    )


def make_folder(folder: Path, extra: int = 0, figure: bool = True) -> Path:
    "A table (and a figure) of the birds in `folder`/mini; returns that folder."
    out = Path(folder) / "mini"
    birds = collection(extra)
    grid = run_grid(SYSTEMS, [birds])
    wide = grid.wide()
    wide.insert(2, "note", [BAD_SYSTEM_NOTE, "a|b", "–"])
    padding = pd.DataFrame({"collection": "birds", "system": [f"row {n}" for n in range(6)], "note": "", "R@1": [0.1, 0.9, 0.5, 0.3, 1.0, 0.0], "RR": 0.5})
    (Path(folder) / "birds_table.yaml").write_text(yaml.safe_dump({"title": BAD_TITLE, "kind": "table", "caption": "Three queries, `R@1`, <u>asked</u> 10.", "expected": _expected()}))
    table = Artifact("birds_table", out=str(out), manifest=Path(folder) / "birds_table.yaml").use(birds, *grid.results).note(BAD_SYSTEM_NOTE)
    table.table(pd.concat([wide, padding], ignore_index=True))
    if figure:
        import matplotlib.pyplot as plt

        (Path(folder) / "birds_figure.yaml").write_text(yaml.safe_dump({"title": "Birds drawn", "kind": "figure", "caption": "One line."}))
        drawn, axes = plt.subplots(figsize=(3.4, 2.4))
        axes.plot([0, 1], [0, 1])
        Artifact("birds_figure", out=str(out), manifest=Path(folder) / "birds_figure.yaml").use(birds).figure(drawn, pd.DataFrame({"x": [0, 1], "y": [0, 1]}))
    return out


def _expected() -> dict:
    "One value that is right, one that is wrong."
    return {"mini": {"keys": ["system"], "tolerance": 0, "cells": [["row 1", "R@1", 0.9], ["row 2", "R@1", 0.7]]}}
