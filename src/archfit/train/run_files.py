"""What a run leaves on disk, whole or not at all: its lock, spec, log, checkpoints and record.

`checkpoint/step-000000120/` holds model.safetensors, optimiser.safetensors and state.json: weights,
moments and the losses so far, in files that can never run code. The first line of state.json has
the hashes of both other files, its second line is the hash of the first. A checkpoint is written
under another name and renamed when complete; the newest two are kept. Tensors are stored whole, so
a run may go on with another number of processes.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from archfit.data.prepared import sha256
from archfit.model import Transformer
from archfit.model.padding import part_inside
from archfit.spec import Evaluation, RunSpec, Stretch, canonical_json, files, loads
from archfit.spec.errors import check_at_least, check_real, refusal, refuse_if
from archfit.train.hardware import ProcessGroup, fill, gathered
from archfit.train.optimiser import AdamW

KEPT = 2
STATE, MODEL, OPTIMISER = "state.json", files.WEIGHTS, "optimiser.safetensors"
LONGEST_ENTRY = 1000  # bytes of a safetensors header about one tensor


class HeldElsewhereError(ValueError):
    """Another process trains this run."""


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Make the folder and keep others out; the lock goes with the process that holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    with files.open_lock(folder / files.LOCK) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as problem:
            raise HeldElsewhereError(refusal("run-held", folder=folder)) from problem
        yield


def write_lines(path: Path, *documents: object) -> None:
    """A document a line, whole or not at all."""
    files.write_whole(path, "".join(f"{canonical_json(each)}\n" for each in documents).encode())


def append_to_log(folder: Path, evaluation: Evaluation) -> None:
    """Write one more line."""
    with open(folder / files.LOG, "a", encoding="utf-8") as log:
        log.write(f"{canonical_json(evaluation)}\n")


def write_weights(folder: Path, weights: dict[str, Tensor]) -> None:
    """Put the weights in place at once; a killed process leaves its part in `checkpoint` only."""
    unfinished = _new_folder(folder, ".new-weights")
    _write_tensors(unfinished / files.WEIGHTS, weights)
    (unfinished / files.WEIGHTS).replace(folder / files.WEIGHTS)
    files.flush_folder(folder)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunState:
    """What a run knows besides its tensors."""

    step: int  # steps made
    loss_sum: float  # nats per token of each step since the last evaluation, added up
    evaluations: tuple[Evaluation, ...]
    timed_seconds: float
    timed_steps: int
    made_by: Stretch | None = None  # where its last steps were made; its `steps` say nothing yet
    history: tuple[Stretch, ...] = ()  # where earlier ones were made, if elsewhere

    def __post_init__(self) -> None:
        check_at_least(0, step=self.step, timed_steps=self.timed_steps)
        check_real(0, 1e18, loss_sum=self.loss_sum, timed_seconds=self.timed_seconds)


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointState:
    """What state.json holds."""

    spec_hash: str
    saved: RunState
    model_sha256: str
    optimiser_sha256: str


class Stored(NamedTuple):
    """Where numbers of a run lie, and the shape that they have in files."""

    place: Tensor  # a view of what is trained, perhaps with more dimensions
    shape: torch.Size


class NamedTensors:
    """The tensors of a run by name: weights, and Adam's moments of each; those of the network
    that was asked for, also where it lies inside a larger one."""

    def __init__(self, model: nn.Module, optimiser: AdamW, shapes: dict[str, torch.Size]) -> None:
        self._parameters, self._optimiser = dict(model.named_parameters()), optimiser
        self._inside = model.inside if isinstance(model, Transformer) else None
        self._shapes = shapes

    def weights(self) -> dict[str, Stored]:
        """The parameters themselves: what is copied into them is trained."""
        return {name: self._stored(name, each.detach()) for name, each in self._parameters.items()}

    def moments(self) -> dict[str, Stored]:
        """Adam's moments and step counts themselves."""
        return {
            f"{name}.{moment}": self._stored(name, tensor)
            for name, parameter in self._parameters.items()
            for moment, tensor in self._optimiser.state[parameter].items()
        }

    def _stored(self, name: str, tensor: Tensor) -> Stored:
        shape = self._shapes[name] if tensor.ndim else tensor.shape
        if tensor.shape == shape or self._inside is None:
            return Stored(tensor, shape)
        return Stored(part_inside(name, tensor, self._inside), shape)


def on_host(tensors: dict[str, Stored]) -> dict[str, Tensor]:
    """Whole copies in the memory of the host; every process of a group must ask."""
    return {
        name: gathered(stored.place.detach()).cpu().reshape(stored.shape).contiguous()
        for name, stored in tensors.items()
    }


def save_checkpoint(
    run: Path, spec: RunSpec, group: ProcessGroup, tensors: NamedTensors, state: RunState
) -> None:
    """Write a checkpoint; all processes of a group must ask, the first one writes."""
    model, moments = on_host(tensors.weights()), on_host(tensors.moments())
    if not group.is_main:
        return
    unfinished, folder = _new_folder(run, f".new-{state.step:09}"), run / files.CHECKPOINTS
    document = CheckpointState(
        spec_hash=spec.hash,
        saved=state,
        model_sha256=_write_tensors(unfinished / MODEL, model),
        optimiser_sha256=_write_tensors(unfinished / OPTIMISER, moments),
    )
    write_lines(unfinished / STATE, document, sha256(canonical_json(document)))
    finished = folder / f"step-{state.step:09}"
    if finished.exists():  # written by a process that was killed before it could go on
        shutil.rmtree(finished)
    for old in _newest_first(folder)[KEPT - 1 :]:  # before the new one: never more than two
        shutil.rmtree(old)
    unfinished.rename(finished)
    files.flush_folder(folder)


def load_newest_checkpoint(run: Path, tensors: NamedTensors, spec: RunSpec) -> RunState | None:
    """Fill the tensors from the newest checkpoint, in place; None if there is none."""
    _check_is_folder(run / files.CHECKPOINTS)
    if not (checkpoints := _newest_first(run / files.CHECKPOINTS)):
        return None
    newest = checkpoints[0]
    try:
        return _load(newest, tensors, spec)
    except (ValueError, OSError, SafetensorError) as problem:
        earlier = f"step {_step(checkpoints[1])}" if len(checkpoints) > 1 else "the start"
        about = {"folder": newest, "problem": problem, "earlier": earlier}
        raise refusal("run-checkpoint", **about) from problem


def discard_unfinished(run: Path) -> None:
    """Remove what a killed process left half-written."""
    _check_is_folder(run / files.CHECKPOINTS)
    for left in (run / files.CHECKPOINTS).glob(".new-*"):
        shutil.rmtree(left)


def _new_folder(run: Path, name: str) -> Path:
    """An empty folder among the checkpoints, to write into before anything is replaced."""
    folder = run / files.CHECKPOINTS / name
    folder.parent.mkdir(exist_ok=True)
    discard_unfinished(run)
    folder.mkdir()
    return folder


def _write_tensors(path: Path, tensors: dict[str, Tensor]) -> str:
    """Write a safetensors file to the disk; its SHA-256."""
    try:
        save_file(tensors, path)
    except SafetensorError as problem:  # it wraps what the system said
        raise OSError(f"{path} could not be written: {problem}") from problem
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    path.chmod(path.parent.stat().st_mode & 0o666)  # safetensors lets only its owner read it
    return _sha256(path)


def _load(checkpoint: Path, tensors: NamedTensors, spec: RunSpec) -> RunState:
    if checkpoint.is_symlink():
        raise ValueError("it is a link, not a folder")
    state = _read_state(checkpoint / STATE)
    if state.spec_hash != spec.hash:
        raise ValueError(f"it belongs to another run, {state.spec_hash[:16]}")
    _check_steps(state.saved, spec, named=_step(checkpoint))
    parts = (
        (checkpoint / MODEL, state.model_sha256, tensors.weights()),
        (checkpoint / OPTIMISER, state.optimiser_sha256, tensors.moments()),
    )
    for path, expected, places in parts:
        _check_size(path, places)
        if _sha256(path) != expected:
            raise ValueError(f"{path.name} is not what was written")
    for path, _, places in parts:
        _read_tensors(path, places)
    return state.saved


def _read_state(path: Path) -> CheckpointState:
    """What the first line says, if the second is its hash."""
    content = files.read_bounded(path, files.LARGEST_RECORD)
    first, _, second = content.decode().partition("\n")
    if second != f"{canonical_json(sha256(first))}\n":
        raise ValueError(f"{STATE} is not what was written, or was written by archfit 0.1")
    return loads(CheckpointState, first)


def _check_steps(state: RunState, spec: RunSpec, *, named: int) -> None:
    steps, every = spec.recipe.steps, spec.recipe.evaluation_steps
    if state.step != named or state.step > steps:
        raise ValueError(f"it says step {state.step} of {steps}, its name {named}")
    found = [evaluation.step for evaluation in state.evaluations]
    regular = range(every, state.step + 1, every)
    last = [steps] if state.step == steps and steps % every else []  # evaluated, too
    if len(found) != len(regular) + len(last) or found != [*regular, *last]:
        raise ValueError(f"it has evaluations at steps {found}, not every {every}")


def _check_size(path: Path, places: dict[str, Stored]) -> None:
    """Refuse what would take long to read and cannot be it: a pipe, or a file far too large."""
    content = sum(place.numel() * place.element_size() for place, _ in places.values())
    header = LONGEST_ENTRY * (len(places) + 1)
    if path.exists() and not (path.is_file() and path.stat().st_size <= content + header):
        raise ValueError(f"{path.name} is not what was written")


def _read_tensors(path: Path, places: dict[str, Stored]) -> None:
    """Fill `places` from a safetensors file with exactly these tensors, in place."""
    with safe_open(path, framework="pt") as file:
        names = set(file.keys())
        if names != places.keys():
            odd = sorted(names ^ places.keys())[0]
            raise ValueError(f"{path.name} and the network differ in {odd!r}")
        for name, (place, expected) in places.items():
            shape = tuple(file.get_slice(name).get_shape())
            if shape != tuple(expected):
                raise ValueError(f"{name} has shape {shape}, not {tuple(expected)}")
            content = file.get_tensor(name)
            if content.dtype != place.dtype:
                raise ValueError(f"{name} holds {content.dtype}, not {place.dtype}")
            fill(place, content.view(place.shape))


def _check_is_folder(folder: Path) -> None:
    is_other = folder.is_symlink() or (folder.exists() and not folder.is_dir())
    refuse_if(is_other, "run-no-folder", folder=folder)


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*"), key=_step, reverse=True)


def _step(checkpoint: Path) -> int:
    digits = checkpoint.name.removeprefix("step-")
    return int(digits) if digits.isdecimal() else -1


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
