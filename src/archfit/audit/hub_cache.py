"""Models that were downloaded before: folders of the local Hugging Face cache, offline only.

hub/models--org--name/refs/main            the commit that was asked for last
hub/models--org--name/snapshots/COMMIT/    its files
"""

import re
from collections.abc import Mapping
from pathlib import Path

from archfit.spec import open_regular

NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)  # never leads elsewhere
COMMIT = re.compile(r"[0-9a-f]{1,64}")
MOST_NAMES = 1000  # of a cache, listed for suggestions


def hub_folder(environment: Mapping[str, str]) -> Path:
    """Where the cache is: HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub."""
    if environment.get("HF_HUB_CACHE"):
        return Path(environment["HF_HUB_CACHE"]).expanduser()
    if environment.get("HF_HOME"):
        return Path(environment["HF_HOME"]).expanduser() / "hub"
    home = environment.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser() / "huggingface" / "hub"


def snapshot(name: str, hub: Path) -> Path | None:
    """The folder of the commit that refs/main names, else of the newest; None if there is none."""
    if not NAME.fullmatch(name):
        return None
    model = hub / f"models--{name.replace('/', '--')}"
    commits = [folder for folder in _listed(model / "snapshots") if COMMIT.fullmatch(folder.name)]
    main = _main_commit(model / "refs" / "main")
    chosen = [folder for folder in commits if folder.name == main and folder.is_dir()]
    newest = sorted(filter(Path.is_dir, commits), key=lambda folder: folder.stat().st_mtime)
    return next(iter(chosen or newest[-1:]), None)


def cached_names(hub: Path) -> list[str]:
    """`org/name` of each model in the cache."""
    folders = [folder.name for folder in _listed(hub) if folder.name.startswith("models--")]
    return [name.removeprefix("models--").replace("--", "/") for name in folders[:MOST_NAMES]]


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # not there, or not ours to look into: as good as empty
        return []


def _main_commit(reference: Path) -> str:
    try:
        with open_regular(reference) as file:
            return file.read(100).decode("ascii", "replace").strip()
    except (OSError, ValueError):
        return ""
