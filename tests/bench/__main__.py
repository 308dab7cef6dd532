"""`python -m tests.bench [NAME …]`: run the benches, write figures/bench/<name>.csv, .md and, where a bench draws one, .png.

A bench is a file `bench_<name>.py` in this folder with `rows()` -> list of dicts (one per line of its table; a ratio, where there is a peer, from
the same run) and, if it likes, `figure(rows) -> matplotlib figure`. The result names the machine; other machines give other seconds and
similar ratios.
"""

import argparse
import importlib
import os
import platform
import sys
from datetime import date
from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).resolve().parent
OUT = FOLDER.parents[1] / "figures" / "bench"


def names() -> list[str]:
    "The benches there are."
    return sorted(path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py"))


def machine() -> str:
    "Processor, cores, system and the versions that decide speed, in one line."
    model = next((line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), platform.processor() or "unknown processor")
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{model}, {os.cpu_count()} cores{load}, {platform.system()} {platform.machine()}, Python {platform.python_version()}, {date.today()}"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def markdown(rows: list[dict], name: str, title: str, where: str, drawn: bool) -> str:
    "The result as a page: what was measured, where, the tables (rows with the same columns share one)."
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault(tuple(row), []).append(row)
    tables = [_table(list(columns), group) for columns, group in groups.items()]
    image = [f"![{name}]({name}.png)"] if drawn else []
    return "\n\n".join([f"# Bench: {name}", title, where, *tables, *image]) + "\n"


def _table(columns: list[str], rows: list[dict]) -> str:
    "A markdown table."
    cell = lambda value: f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value).replace("|", "\\|")
    lines = [columns, ["---"] * len(columns), *([cell(row[column]) for column in columns] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def run(name: str) -> None:
    "Run one bench and write its result."
    sys.path.insert(0, str(FOLDER))  # benches start processes that import them by their own name
    bench = importlib.import_module(f"bench_{name}")
    where, rows = machine(), bench.rows()
    OUT.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).assign(machine=where).to_csv(OUT / f"{name}.csv", index=False, lineterminator="\n")
    if hasattr(bench, "figure"):
        bench.figure(rows).savefig(OUT / f"{name}.png", dpi=130, metadata={"Software": None})
    page = markdown(rows, name, (bench.__doc__ or "").strip(), where, hasattr(bench, "figure"))
    (OUT / f"{name}.md").write_text(page, encoding="utf-8")
    print(page)


def main(arguments: list[str] | None = None) -> int:
    "Run the benches named, or all of them; a bench that fails is reported and the others still run."
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure speed and memory against the named peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which of {', '.join(names())} (default: all)")
    chosen = parser.parse_args(arguments).names or names()
    if unknown := set(chosen) - set(names()):
        parser.error(f"no bench {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    failed = []
    for name in chosen:
        try:
            run(name)
        except Exception as error:  # noqa: BLE001 one peer missing must not lose the other results
            failed.append(f"{name}: {type(error).__name__}: {error}")
    print("\n".join(failed), file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
