"""Mirrors of a run in other people's dashboards; each library is imported only when asked for."""

from collections.abc import Sequence
from pathlib import Path

from archfit.train.watch import Watcher


def trackers(names: Sequence[str], folder: Path) -> list[Watcher]:
    """A watcher for each name."""
    del folder
    if names:
        raise ValueError(f"tracker {names[0]!r} is unknown")
    return []
