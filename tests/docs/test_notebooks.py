"""The notebooks run, and print what they hold."""

from pathlib import Path
from typing import Any

import notebooks
import pytest

nbformat = pytest.importorskip("nbformat")
QUICK = "figure-1"
FILES = sorted(notebooks.FOLDER.glob("*.ipynb"))


def printed(notebook: Any) -> list[str]:
    """The text of each cell's outputs; charts and HTML hold ids and digits of their own."""
    told = []
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        streams = (each.get("text", "") for each in outputs)
        values = (each.get("data", {}).get("text/plain", "") for each in outputs)
        told.append("".join([*streams, *values]))
    return told


@pytest.mark.parametrize(
    "file",
    [pytest.param(f, marks=() if f.stem == QUICK else pytest.mark.slow, id=f.stem) for f in FILES],
)
@pytest.mark.filterwarnings("ignore")  # of the kernel's libraries, not of ours
def test_notebook_prints_what_it_holds(file: Path) -> None:
    held = nbformat.read(file, as_version=4)
    assert printed(notebooks.executed(file)) == printed(held), "python docs/site/notebooks.py"


def test_there_are_three() -> None:
    assert [file.stem for file in FILES] == ["audit-a-model", "choose-a-shape", "figure-1"]
