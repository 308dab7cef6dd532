"""Make README.md from nbs/index.ipynb: Markdown cells as they are, code cells with their stored outputs."""

import re
import sys
from pathlib import Path

import nbformat
from nbconvert import MarkdownExporter
from traitlets.config import Config

ROOT = Path(__file__).resolve().parents[1]
NOTE = "<!-- made from nbs/index.ipynb by `make readme`; edit the notebook -->\n\n"


def readme(notebook: Path) -> str:
    "The README's text; cells tagged `hide` are left out, of those tagged `hide-input` the output stays."
    nb = nbformat.read(notebook, as_version=4)
    nb.cells = [cell for cell in nb.cells if "hide" not in cell.metadata.get("tags", ()) and not cell.source.startswith("#| hide")]
    nb.metadata["language_info"] = {"name": "python"}  # colours the code blocks
    only_output = Config({"TagRemovePreprocessor": {"enabled": True, "remove_input_tags": {"hide-input"}}})
    body, _ = MarkdownExporter(config=only_output).from_notebook_node(nb)
    body = re.sub(r"<style.*?</style>\n?", "", body, flags=re.DOTALL)
    body = body.replace("](../figures/", "](figures/")  # the README stands one folder higher than the notebook
    return NOTE + re.sub(r"\n{3,}", "\n\n", body).strip() + "\n"


if __name__ == "__main__":
    made = readme(ROOT / "nbs" / "index.ipynb")
    target = ROOT / "README.md"
    if "--check" in sys.argv:
        sys.exit(0 if target.read_text(encoding="utf-8") == made else "README.md differs from nbs/index.ipynb: run `make readme`")
    target.write_text(made, encoding="utf-8")
