"""Shared fixtures: where real data lies, the known cases, hypothesis profiles."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

ROOT = Path(__file__).resolve().parents[1]

settings.register_profile("dev", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", max_examples=500, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def _beside(name: str) -> Path:
    "A folder of the test material beside the checkout."
    return ROOT.parent / "shared" / name


def real_data_folder() -> Path | None:
    "The folder with real data: CRUMB_DATA, else the one beside the checkout, else None."
    named = os.environ.get("CRUMB_DATA")
    folder = Path(named) if named else _beside("data")
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def root() -> Path:
    "The checkout."
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    "The folder with real data; the test is skipped where there is none."
    folder = real_data_folder()
    if folder is None:
        pytest.skip("no real data: set CRUMB_DATA to a folder with locomo/, longmemeval/, crumb_standins/ …")
    return folder


@pytest.fixture(scope="session")
def cases() -> dict:
    "Known faults of other tools by id, as {id: {input, expected, …}}; the test is skipped where the file is absent."
    path = _beside("cases") / "cases.json"
    if not path.is_file():
        pytest.skip("the file of known cases is not beside the checkout; the tests' own copies of the values still run")
    return {case["id"]: case for case in json.loads(path.read_text(encoding="utf-8"))}


@pytest.fixture()
def cache_dir(tmp_path, monkeypatch) -> Path:
    "An empty cache for one test."
    folder = tmp_path / "cache"
    monkeypatch.setenv("CRUMB_NB_CACHE", str(folder))
    return folder
