"""What a word on the command line means: files of a model, a run of ours, or a published model.

Models that were downloaded before are found in the local Hugging Face cache, without
huggingface_hub, whose scan takes longer to import than the rest of an audit. Only who asks for a
download goes to the network:

hub/models--org--name/refs/main            the commit that was asked for last
hub/models--org--name/snapshots/COMMIT/    its files
"""

import contextlib
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

from archfit.audit.checkpoint_file import INDEX_ENDING, TENSORS, refuse_pickle
from archfit.audit.zoo import nearest, zoo_id, zoo_rows
from archfit.spec import open_regular
from archfit.spec.errors import brief, refusal, refuse_if
from archfit.spec.files import CONFIG, SPEC, WEIGHTS

INDEX = "model" + INDEX_ENDING
SHARD = re.compile(r"(?P<model>.+)-\d+-of-\d+\.safetensors")
CACHED_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)  # stays inside
COMMIT = re.compile(r"[0-9a-f]{1,64}")
LONGEST_REASON = 200  # characters of why a download failed
MOST_NAMES = 1000  # of a cache, listed for suggestions
WAYS = (
    "a folder, a config.json, a .safetensors file or its index, or org/name in the Hugging Face "
    "cache"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFiles:
    """A model on disk: at least one of the two files is there."""

    name: str
    folder: Path
    description: Path | None = None  # its config, or the spec of an `archfit train` run
    checkpoint: Path | None = None  # a .safetensors file or an index of several

    def weights(self) -> Path:
        """The checkpoint; if there is none, a sentence says what stands in its place."""
        if self.checkpoint is not None:
            return self.checkpoint
        described = self.description
        refuse_if(
            described is not None and described.name == SPEC, "no-weights-yet", name=self.name
        )
        _checkpoint_in(self.folder)  # says so if there are several, or shards without an index
        for path in sorted(self.folder.iterdir()):
            refuse_pickle(path)
        refuse_if(described is None, "no-files", folder=self.folder, ways=WAYS)
        raise refusal("no-weights", config=described)


def find_target(
    word: str, *, environment: Mapping[str, str], download: tuple[str, ...] = ()
) -> ModelFiles | str:
    """What `word` means: files, or the id of a published model. A path that exists comes first,
    then the built-in table, then the cache that `environment` leads to; an org/name is first
    brought there if there are files to `download`, patterns of names."""
    path = Path(word)
    if word and os.path.exists(path):  # false also where it is too long, or has a zero byte
        return _files_at(path)
    hub = _hub_folder(environment)
    if download and "/" in word and CACHED_NAME.fullmatch(word):
        _fetch(word, hub, download)
    elif identifier := zoo_id(word):
        return identifier
    cached = _snapshot(word, hub)
    if cached is None:
        raise _not_found(word, hub)
    return _files_at(cached, name=word)


def _files_at(path: Path, *, name: str = "") -> ModelFiles:
    """What belongs to a folder or file: a config beside weights, and the other way round.

    A config suffices: what is wrong with weights beside it matters to those who ask for them.
    """
    is_folder = path.is_dir()
    folder = path if is_folder else path.parent
    usual = (folder / each for each in (CONFIG, SPEC, WEIGHTS))
    config, spec, weights = (file if file.is_file() else None for file in usual)
    if not is_folder:
        refuse_pickle(path)
        if path.name.endswith((INDEX_ENDING, TENSORS)):
            own = config or (spec if path == weights else None)
            files = ModelFiles(name=_name(path), folder=folder, description=own)
            return replace(files, checkpoint=_whole(path))
        refuse_if(path.suffix != ".json", "no-model-file", path=path, ways=WAYS)
        if path.name not in (CONFIG, SPEC):
            return ModelFiles(name=_name(path), folder=folder, description=path)
    name = name or folder.resolve().name
    if config is None and spec is not None:
        return ModelFiles(name=name, folder=folder, description=spec, checkpoint=weights)
    files = ModelFiles(name=name, folder=folder, description=config)
    try:
        files = replace(files, checkpoint=_checkpoint_in(folder))
    except ValueError:
        if config is None:
            raise
    if config is None:
        files.weights()  # says what is missing
    return files


def _name(path: Path) -> str:
    """The folder's name if the file has the one that all models' files have, else its own."""
    if path.name in (CONFIG, WEIGHTS, INDEX) or SHARD.fullmatch(path.name):
        return path.parent.resolve().name  # not path.resolve(): a cache links to its blobs
    return path.name.removesuffix(INDEX_ENDING).removesuffix(TENSORS).removesuffix(".json")


def _whole(path: Path) -> Path:
    """The index of all shards if this is one of them, else the file itself."""
    shard = SHARD.fullmatch(path.name)
    if not shard:
        return path
    index = path.with_name(shard["model"] + INDEX_ENDING)
    refuse_if(not index.is_file(), "lone-shard", path=path, index=index.name)
    return index


def _checkpoint_in(folder: Path) -> Path | None:
    for name in (INDEX, WEIGHTS):
        if (folder / name).is_file():
            return folder / name
    files = sorted(path for path in folder.iterdir() if path.name.endswith((TENSORS, INDEX_ENDING)))
    whole = sorted({_whole(path) for path in files})
    if len(whole) > 1:
        names = ", ".join(path.name for path in whole[:5])
        raise refusal("several-checkpoints", folder=folder, names=names)
    return next(iter(whole), None)


def _not_found(word: str, hub: Path) -> ValueError:
    folders = [folder.name for folder in _listed(hub) if folder.name.startswith("models--")]
    cached = [name.removeprefix("models--").replace("--", "/") for name in folders[:MOST_NAMES]]
    others = {name for name in (*cached, *zoo_rows()) if name.casefold() != word.casefold()}
    ways = [f"close are {', '.join(near)}"] if (near := nearest(word, others)) else []
    if "/" in word and CACHED_NAME.fullmatch(word) and not word.endswith(".json"):
        ways.append("--download fetches it from Hugging Face")
    way_out = "; ".join(ways) or f"give {WAYS}"
    return refusal("not-found", word=brief(word), count=len(zoo_rows()), hub=hub, way_out=way_out)


# ---- the cache of Hugging Face


def _hub_folder(environment: Mapping[str, str]) -> Path:
    """Where the cache is: HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub."""
    cache = Path(environment.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    home = Path(environment.get("HF_HOME") or cache)
    return Path(environment.get("HF_HUB_CACHE") or home / "hub").expanduser()


def _fetch(name: str, hub: Path, patterns: tuple[str, ...]) -> None:
    """Bring files of a model into the cache, through Hugging Face's own library.

    What its server answers with is a sentence here, whatever went wrong.
    """
    try:
        from huggingface_hub import HfApi, hf_hub_download
    except ImportError as problem:
        raise ValueError("--download needs a library; pip install huggingface_hub") from problem
    try:
        listed = HfApi().model_info(name, files_metadata=True).siblings or []
        sizes = {file.rfilename: file.size or 0 for file in listed}
        wanted = [n for n in sizes if "/" not in n and any(fnmatch(n, each) for each in patterns)]
        refuse_if(CONFIG not in wanted, "no-config-there")
        needed = sum(sizes[each] for each in wanted)
        free = shutil.disk_usage(next(filter(Path.exists, (hub, *hub.absolute().parents)))).free
        refuse_if(needed > free, "no-room", needed=f"{needed:,}", free=f"{free:,}")
        for each in wanted:
            hf_hub_download(name, each, cache_dir=hub)
    except Exception as problem:
        reason = " ".join(str(problem).partition("Please")[0].split()).rstrip(".")
        raise refusal("no-download", name=name, reason=reason[:LONGEST_REASON]) from problem


def _snapshot(name: str, hub: Path) -> Path | None:
    """The folder of the commit that refs/main names, else of the newest; None if there is none."""
    if not CACHED_NAME.fullmatch(name):
        return None
    model = hub / f"models--{name.replace('/', '--')}"
    listed = [each for each in _listed(model / "snapshots")[::-1] if COMMIT.fullmatch(each.name)]
    main = ""
    with contextlib.suppress(OSError, ValueError), open_regular(model / "refs" / "main") as file:
        main = file.read(100).decode("ascii", "replace").strip()
    commits = filter(Path.is_dir, listed)
    return max(commits, key=lambda each: (each.name == main, each.stat().st_mtime), default=None)


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # not there, or not ours to look into: as good as empty
        return []
