"""What a word on the command line means: files of a model, a run of ours, or a published model."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from archfit.audit.bounded_json import read_object, shown
from archfit.audit.hub_cache import cached_names, hub_folder, snapshot
from archfit.audit.safetensors_header import refuse_pickle
from archfit.audit.sharded_index import INDEX_ENDING

CONFIG, SPEC, WEIGHTS, INDEX = (
    "config.json",
    "spec.json",
    "model.safetensors",
    "model" + INDEX_ENDING,
)
TENSORS = ".safetensors"
SHARD = re.compile(r"(?P<model>.+)-\d+-of-\d+\.safetensors")
MOST_CONFIG_BYTES = 16 * 10**6  # some list their labels; none of those seen has 1 MB
WAYS = (
    "a folder, a config.json, a .safetensors file or its index, org/name in the Hugging Face cache"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownModel:
    """A row of the built-in table."""

    id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFiles:
    """A model on disk; at least one of the two is there."""

    name: str
    config: Path | None
    checkpoint: Path | None  # a .safetensors file or an index of several
    folder: Path

    def weights(self) -> Path:
        """The checkpoint; if there is none, a sentence says what stands in its place."""
        if self.checkpoint is not None:
            return self.checkpoint
        _checkpoint_in(self.folder)  # says so if there are several, or shards without an index
        for path in sorted(self.folder.iterdir()):
            refuse_pickle(path)
        if self.config is None:
            raise ValueError(
                f"{self.folder} holds neither {CONFIG} nor a {TENSORS} file that can be read; "
                f"give {WAYS}"
            )
        raise ValueError(
            f"{self.config} has no weights beside it that are surely its own; "
            f"give the {TENSORS} file"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedRun:
    """The folder of an `archfit train` run."""

    name: str
    spec: Path
    checkpoint: Path | None  # written when the run is done


Target: TypeAlias = KnownModel | ModelFiles | TrainedRun


def find_target(word: str, *, known: Mapping[str, str], environment: Mapping[str, str]) -> Target:
    """What `word` means. A path that exists comes first, then the built-in table, whose ids `known`
    maps to printed names, then the cache that `environment` leads to."""
    path = Path(word)
    if word and _exists(path):
        return _of_folder(path) if path.is_dir() else _of_file(path)
    for id_, printed in known.items():
        if word.casefold() in (id_.casefold(), printed.casefold()):
            return KnownModel(id=id_)
    hub = hub_folder(environment)
    cached = snapshot(word, hub)
    if cached is not None:
        return _of_folder(cached, name=word)
    raise ValueError(_not_found(word, known, hub))


def read_config(path: Path) -> dict[str, object]:
    """The object in a config.json; NaN and infinities, which transformers writes, stay floats."""
    return read_object(path, most_bytes=MOST_CONFIG_BYTES)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long for a name, or with a zero byte
        return False


def _of_folder(folder: Path, *, name: str = "") -> Target:
    name = name or folder.resolve().name
    config, spec = _if_file(folder / CONFIG), _if_file(folder / SPEC)
    if config:
        return _of_config(config, name=name)
    if spec:
        return TrainedRun(name=name, spec=spec, checkpoint=_if_file(folder / WEIGHTS))
    checkpoint = _checkpoint_in(folder)
    files = ModelFiles(name=name, config=None, checkpoint=checkpoint, folder=folder)
    files.weights()  # says what is missing
    return files


def _of_config(config: Path, *, name: str) -> ModelFiles:
    """It suffices: what is wrong with weights beside it matters to those who ask for them."""
    try:
        checkpoint = _checkpoint_in(config.parent) if config.name == CONFIG else None
    except ValueError:
        checkpoint = None
    return ModelFiles(name=name, config=config, checkpoint=checkpoint, folder=config.parent)


def _of_file(path: Path) -> Target:
    refuse_pickle(path)
    if path.name == SPEC:
        return _of_folder(path.parent)
    folder = path.parent
    if path.name.endswith(INDEX_ENDING) or path.suffix == TENSORS:
        whole = _whole(path)
        spec, config = _if_file(folder / SPEC), _if_file(folder / CONFIG)
        if spec and not config and path.name == WEIGHTS:
            return TrainedRun(name=_name(path), spec=spec, checkpoint=whole)
        return ModelFiles(name=_name(path), config=config, checkpoint=whole, folder=folder)
    if path.suffix == ".json":
        return _of_config(path, name=_name(path))
    raise ValueError(f"{path} is no model file that archfit reads; give {WAYS}")


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
    if not index.is_file():
        raise ValueError(f"{path} is one shard of several; put {index.name} beside it")
    return index


def _checkpoint_in(folder: Path) -> Path | None:
    for name in (INDEX, WEIGHTS):
        if (folder / name).is_file():
            return folder / name
    files = sorted(path for path in folder.iterdir() if path.name.endswith((TENSORS, INDEX_ENDING)))
    whole = sorted({_whole(path) for path in files})
    if len(whole) > 1:
        names = ", ".join(path.name for path in whole[:5])
        raise ValueError(f"{folder} holds several checkpoints ({names}); name the file to audit")
    return next(iter(whole), None)


def _if_file(path: Path) -> Path | None:
    return path if path.is_file() else None


def _not_found(word: str, known: Mapping[str, str], hub: Path) -> str:
    names = {name.casefold(): name for name in (*cached_names(hub), *known.values(), *known)}
    names.pop(word.casefold(), None)  # a folder of the cache without a model in it
    close = difflib.get_close_matches(word[:200].casefold(), names, n=3, cutoff=0.6)
    suggestion = (
        f"close are {', '.join(names[name] for name in close)}" if close else f"give {WAYS}"
    )
    return (
        f"{shown(word)} is no file or folder here, none of {len(known)} models of the built-in "
        f"table, and not in the Hugging Face cache {hub}; {suggestion}"
    )
