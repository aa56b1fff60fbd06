"""The map of the house: which room may import which, and what must load without torch."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "archfit"

# Rooms are added here in the commit that builds them.
MAY_IMPORT: dict[str, set[str]] = {
    "spec": set(),
    "theory": {"spec"},
    "data": {"spec"},
    "model": {"spec"},
    "train": {"spec", "data", "model"},
    "sweep": {"spec"},
    "fit": {"spec", "theory", "sweep"},
    "advise": {"spec", "theory", "data", "sweep", "fit"},
    "audit": {"spec", "theory", "advise"},
    "exact": {"spec", "theory"},
    "export": {"spec"},
    "report": {"spec", "theory", "sweep", "fit", "advise", "audit", "exact"},
    "journey": {"spec", "data", "advise", "export", "report"},  # one file beside the rooms
    "answers": {  # another: what Python offers, and the command line shows
        *("spec", "theory", "data", "train", "sweep", "fit"),
        *("advise", "audit", "exact", "report", "journey"),
    },
    "cli": {
        *("spec", "theory", "data", "train", "sweep", "fit"),
        *("advise", "audit", "exact", "export", "report", "journey"),
        "answers",
    },
}
NEEDS_TORCH: set[str] = {"model", "train"}
CHARTS = "archfit.report.charts"  # what draws: its files need altair, and nobody loads them idly


def _archfit_names(file: Path) -> set[str]:
    """Full names of what `file` imports from archfit, at any depth of its code."""
    names: list[str] = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return {name for name in names if name.startswith("archfit.")}


def _rooms_imported_by(file: Path) -> set[str]:
    return {name.split(".")[1] for name in _archfit_names(file)} - {"__version__", "Room"}


def _files(room: str) -> list[Path]:
    """The files of a room, or the one file that stands beside the rooms under its name."""
    alone = SRC / f"{room}.py"
    return [alone] if alone.is_file() else sorted((SRC / room).rglob("*.py"))


def _modules(rooms: set[str]) -> list[str]:
    files = [file for room in sorted(rooms) for file in _files(room)]
    return [".".join(file.relative_to(SRC.parent).with_suffix("").parts) for file in files]


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_the_rooms_it_may(room: str) -> None:
    seen = {name for file in _files(room) for name in _rooms_imported_by(file)}
    assert seen <= MAY_IMPORT[room] | {room}


def test_plans_and_audits_read_the_evidences_points_and_recompute_nothing() -> None:
    """What the records say takes seconds to compute; the points are read from a file."""
    files = [file for room in ("advise", "audit") for file in _files(room)]
    names = {name for file in files for name in _archfit_names(file)}
    assert "archfit.fit.evidence_points.points_of" in names
    computing = ("archfit.fit.evidence.", "archfit.fit.paper_findings.")
    assert not any(f"{name}.".startswith(computing) for name in names)


def test_every_room_is_on_the_map() -> None:
    rooms = {file.parent.name for file in SRC.glob("*/__init__.py")}
    alone = {file.stem for file in SRC.glob("*.py")} - {"__init__", "__main__"}
    assert rooms | alone == set(MAY_IMPORT)


def test_the_map_has_no_way_back() -> None:
    """Data flows one way: no room can reach itself through those it imports."""
    reach = {room: set(names) for room, names in MAY_IMPORT.items()}
    for _ in MAY_IMPORT:
        reach = {
            room: names.union(*(reach[other] for other in names)) for room, names in reach.items()
        }
    assert [room for room, names in reach.items() if room in names] == []


def test_everything_but_model_and_train_loads_without_torch() -> None:
    """torch is made impossible to import, so the test means something where it is missing too."""
    modules = _modules(set(MAY_IMPORT) - NEEDS_TORCH)
    code = f"import sys; sys.modules['torch'] = None; import {', '.join(modules)}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_loading_any_room_leaves_slow_libraries_alone() -> None:
    """flint, scipy and numpy are imported by the functions that need them, as are all charts."""
    rooms = set(MAY_IMPORT) - NEEDS_TORCH
    modules = [name for name in _modules(rooms) if not name.startswith(f"{CHARTS}.")]
    slow = ["flint", "altair", "vl_convert", "scipy", "numpy", "rich"]
    code = f"import sys, {', '.join(modules)}; print([n for n in {slow} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
