"""Run the notebooks of docs/notebooks and keep what they print: python docs/site/notebooks.py.

`tests/docs` runs them too, and compares.
"""

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "notebooks"


def executed(file: Path) -> Any:
    """The notebook with the outputs of this run, without times and counts of its own."""
    notebook = nbformat.read(file, as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":  # on stderr libraries warn of this machine
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def main() -> None:
    """Bring all notebooks up to date."""
    for file in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(executed(file), file)


if __name__ == "__main__":
    main()
