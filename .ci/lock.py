"""Write requirements.lock: install everything settings.ini names into a new environment and freeze it."""

import configparser
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAD = "# The exact tested versions. Made by `make lock` from settings.ini; the pinned torch is installed first (see Makefile).\n"


def wanted() -> list[str]:
    "Every requirement of settings.ini, extras included."
    config = configparser.ConfigParser()
    config.read(ROOT / "settings.ini", encoding="utf-8")
    return [line for name, value in config["DEFAULT"].items() if name.endswith("requirements") for line in value.split()]


def main(torch: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", torch], check=True)
        subprocess.run([*pip, "install", *wanted(), "setuptools"], check=True)
        frozen = subprocess.run([*pip, "freeze", "--all"], check=True, capture_output=True, text=True).stdout
    lines = [re.sub(r"(==[^+]+)\+.*| @ .*", r"\1", line) for line in frozen.splitlines()]
    lines = [line for line in lines if "==" in line and not line.startswith(("pip==", "crumb"))]
    (ROOT / "requirements.lock").write_text(HEAD + "\n".join(sorted(lines, key=str.lower)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
