"""The house keeps its order: exports are in step, imports go down, pins agree, the wheel is whole."""

import ast
import configparser
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "crumb_nb"
CONFIG = configparser.ConfigParser()
CONFIG.read(ROOT / "settings.ini", encoding="utf-8")
DEVELOPMENT_ONLY = {"nbdev", "fastcore", "execnb", "ghapi", "pytest", "hypothesis", "jupyterlab"}


def notebook_numbers() -> dict[str, str]:
    "Module name → number of the notebook that exports it, such as '00' or '41b'."
    found = {}
    for path in (ROOT / "nbs").glob("*.ipynb"):
        match = re.search(r'"#\| default_exp ([\w.]+)', path.read_text(encoding="utf-8"))
        if match:
            found[f"crumb_nb.{match[1]}"] = path.name.split("_")[0]
    return found


def imports_of(path: Path) -> set[str]:
    "Absolute names of the crumb_nb modules a module imports, lazily or not."
    module = ["crumb_nb", *path.relative_to(PACKAGE).with_suffix("").parts]
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = module[: len(module) - node.level] if node.level else []
            name = ".".join([*base, *( [node.module] if node.module else [])])
            names |= {name, *(f"{name}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p.name not in ("__init__.py", "_modidx.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down(path):
    "A module imports only modules whose notebook has a lower number (DESIGN: floors)."
    numbers = notebook_numbers()
    own = "crumb_nb." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    assert own in numbers, "every module is exported by a notebook"
    up = sorted(name for name in imports_of(path) if name in numbers and name != own and numbers[name] > numbers[own])
    # the command line names its commands by module name and loads them at need; that table is data, not an import
    assert not up, f"{own} ({numbers[own]}) imports upwards: {up}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_modules_are_ordinary_python(path):
    names = {name.split(".")[0] for name in imports_of(path)}
    assert not names & DEVELOPMENT_ONLY
    text = path.read_text(encoding="utf-8")
    assert "import *" not in text and "import pickle" not in text and "trust_remote_code=True" not in text


def test_clean_and_export_leave_no_diff(tmp_path):
    "nbdev_clean and nbdev_export on a copy give the committed files back, byte for byte."
    for name in ("nbs", "crumb_nb"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
    for name in ("settings.ini", "pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    bin = Path(sys.executable).parent
    for command in ("nbdev_clean", "nbdev_export"):
        done = subprocess.run([bin / command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    for name in ("nbs", "crumb_nb"):
        for made in sorted((tmp_path / name).rglob("*")):
            if made.suffix in (".ipynb", ".py"):
                committed = ROOT / made.relative_to(tmp_path)
                assert committed.exists(), f"{committed} is not there: run `make export`"
                assert committed.read_bytes() == made.read_bytes(), f"{made.relative_to(tmp_path)} differs: run `make export`"


def test_readme_is_made_from_the_index():
    done = subprocess.run([sys.executable, ROOT / ".ci" / "readme.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def listed(name: str) -> list[str]:
    return CONFIG["DEFAULT"][name].split()


def test_pins_agree():
    "Every direct dependency is pinned in the lock within its range; environment.yml installs that lock."
    from packaging.requirements import Requirement

    lock = dict(line.split("==") for line in (ROOT / "requirements.lock").read_text().splitlines() if "==" in line)
    pins = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in lock.items()}
    wanted = [Requirement(line) for key in CONFIG["DEFAULT"] if key.endswith("requirements") for line in listed(key)]
    for requirement in wanted:
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        assert name in pins, f"{name} is not in requirements.lock: run `make lock`"
        assert requirement.specifier.contains(pins[name], prereleases=True), f"{name} {pins[name]} is outside {requirement.specifier}"
    assert not [line for line in pins.values() if "+" in line], "no local version suffix such as +cpu"
    environment = (ROOT / "environment.yml").read_text()
    assert "-r requirements.lock" in environment and f"torch=={pins['torch']}" in environment
    assert f"TORCH   ?= torch=={pins['torch']}" in (ROOT / "Makefile").read_text()
    text = "".join((ROOT / name).read_text() for name in ("settings.ini", "requirements.lock", "environment.yml", "Makefile", "pyproject.toml", ".ci/run"))
    assert "://" not in text.replace("https://example.org", ""), "no registry host is written anywhere"


def test_nbdev_works_with_the_pins():
    done = subprocess.run([sys.executable, "-c", "import nbdev; print(nbdev.__version__)"], capture_output=True, text=True)
    assert done.stdout.strip() == "2.4.14", done.stderr


def test_every_named_package_is_used():
    "The packages that the project was founded on are really used."
    text = "".join(p.read_text(encoding="utf-8") for p in [*MODULES, ROOT / "Makefile", *(ROOT / "nbs").rglob("*.ipynb")])
    for name in ("jupyter lab", "papermill", "nbdev", "pandas", "matplotlib", "seaborn", "rank_bm25", "sentence_transformers"):
        assert name in text, name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    "The wheel, built from a copy of the tracked files so that nothing is left in the checkout."
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    shutil.copytree(PACKAGE, source / "crumb_nb", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("settings.ini", "setup.py", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "MANIFEST.in"):
        shutil.copy(ROOT / name, source / name)
    done = subprocess.run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, source], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return next(out.glob("*.whl"))


def test_wheel_is_whole(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(n for n in names if n.endswith("METADATA"))).decode()
    assert "crumb_nb/py.typed" in names and any(n.endswith("licenses/LICENSE") for n in names)
    assert "Apache-2.0" in metadata.split("\n\n")[0] and "Requires-Dist: nbdev" not in metadata.split("Provides-Extra: dev")[0]
    committed = {str(p.relative_to(ROOT)) for folder in ("data", "assets") for p in (PACKAGE / folder).rglob("*") if p.is_file()}
    assert committed <= set(names), f"missing in the wheel: {sorted(committed - set(names))[:5]}"
    assert sum(p.stat().st_size for p in (PACKAGE / "data").rglob("*") if p.is_file()) < 3_000_000


def test_wheel_imports_without_nbdev(wheel, tmp_path):
    "Every module of the installed wheel imports in an interpreter in which nbdev and its friends do not exist."
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path, wheel], check=True)
    script = f"""
import importlib, pkgutil, sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in {sorted(DEVELOPMENT_ONLY)!r}:
            raise ModuleNotFoundError(f'{{name}} is not installed here', name=name)
sys.meta_path.insert(0, Blocker())
sys.path.insert(0, {str(tmp_path)!r})
import crumb_nb
assert crumb_nb.__file__.startswith({str(tmp_path)!r}), crumb_nb.__file__
names = [m.name for m in pkgutil.walk_packages(crumb_nb.__path__, 'crumb_nb.') if m.name != 'crumb_nb._modidx']
for name in names:
    importlib.import_module(name)
print(len(names))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) >= len(MODULES)
