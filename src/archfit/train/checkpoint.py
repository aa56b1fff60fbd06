"""Checkpoints: weights, moments and the losses so far, in files that can never run code.

`checkpoint/step-000000120/` holds model.safetensors, optimiser.safetensors and state.json, which
has the hashes of both. It is written under another name and renamed when complete; the newest two
are kept. Tensors are stored whole, so a run may go on with another number of processes.
"""

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from archfit.spec import Evaluation, RunSpec, canonical_json, flush_folder, load_file, write_whole
from archfit.spec.checks import check_at_least, check_real
from archfit.spec.run_folder import LARGEST_JSON
from archfit.train.team import Team, fill, whole

KEPT = 2
STATE, MODEL, OPTIMISER = "state.json", "model.safetensors", "optimiser.safetensors"
LONGEST_ENTRY = 1000  # bytes of a safetensors header about one tensor
MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True, kw_only=True, slots=True)
class Saved:
    """What a run knows besides its tensors."""

    step: int  # steps made
    loss_sum: float  # nats per token of each step since the last evaluation, added up
    evaluations: tuple[Evaluation, ...]
    timed_seconds: float
    timed_steps: int

    def __post_init__(self) -> None:
        check_at_least(0, step=self.step, timed_steps=self.timed_steps)
        check_real(0, 1e18, loss_sum=self.loss_sum, timed_seconds=self.timed_seconds)


@dataclass(frozen=True, kw_only=True, slots=True)
class _State:
    spec_hash: str
    saved: Saved
    model_sha256: str
    optimiser_sha256: str


def save(folder: Path, tensors: "Tensors", saved: Saved, *, spec: RunSpec, team: Team) -> None:
    """Write a checkpoint; all processes of a team must ask, the first one writes."""
    model, moments = tensors.model(), tensors.optimiser()
    if not team.leads:
        return
    folder.mkdir(exist_ok=True)
    discard_unfinished(folder)
    unfinished = folder / f".new-{saved.step:09}"
    unfinished.mkdir()
    state = _State(
        spec_hash=spec.hash,
        saved=saved,
        model_sha256=write_tensors(unfinished / MODEL, model),
        optimiser_sha256=write_tensors(unfinished / OPTIMISER, moments),
    )
    write_whole(unfinished / STATE, (canonical_json(state) + "\n").encode())
    finished = folder / f"step-{saved.step:09}"
    if finished.exists():  # written by a process that was killed before it could go on
        shutil.rmtree(finished)
    for old in _newest_first(folder)[KEPT - 1 :]:  # before the new one: never more than two
        shutil.rmtree(old)
    unfinished.rename(finished)
    flush_folder(folder)


def load_newest(folder: Path, tensors: "Tensors", *, spec: RunSpec) -> Saved | None:
    """Fill the tensors from the newest checkpoint, in place; None if there is none."""
    _check_is_folder(folder)
    checkpoints = _newest_first(folder)
    if not checkpoints:
        return None
    newest = checkpoints[0]
    try:
        return _load(newest, tensors, spec)
    except (ValueError, OSError, SafetensorError) as problem:
        earlier = f"step {_step(checkpoints[1])}" if len(checkpoints) > 1 else "the start"
        raise ValueError(
            f"the checkpoint {newest} cannot be used: {problem}; delete that folder to go on from "
            f"{earlier}"
        ) from problem


def discard_unfinished(folder: Path) -> None:
    """Remove what a killed process left half-written."""
    _check_is_folder(folder)
    for left in folder.glob(".new-*"):
        shutil.rmtree(left)


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> str:
    """Write a safetensors file to the disk; its SHA-256."""
    try:
        save_file(tensors, path)
    except SafetensorError as problem:  # it wraps what the system said
        raise OSError(f"{path} could not be written: {problem}") from problem
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    path.chmod(path.parent.stat().st_mode & 0o666)  # safetensors lets only its owner read it
    return _sha256(path)


def write_weights(path: Path, tensors: dict[str, Tensor], *, by_way_of: Path) -> None:
    """Put the weights in place at once; a killed process leaves its part in `by_way_of` only."""
    by_way_of.mkdir(exist_ok=True)
    discard_unfinished(by_way_of)
    unfinished = by_way_of / ".new-weights"
    unfinished.mkdir()
    write_tensors(unfinished / path.name, tensors)
    (unfinished / path.name).replace(path)
    flush_folder(path.parent)


class Tensors:
    """The tensors of a run by name: weights, and Adam's moments of each."""

    def __init__(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        self._parameters = dict(model.named_parameters())
        self._optimiser = optimiser

    def model(self) -> dict[str, Tensor]:
        """The weights, whole and on the host."""
        return {name: _on_host(parameter) for name, parameter in self._parameters.items()}

    def optimiser(self) -> dict[str, Tensor]:
        """Adam's moments and step counts, whole and on the host."""
        return {name: _on_host(moment) for name, moment in self._moments().items()}

    def places(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Where weights and moments of a checkpoint go."""
        return {name: p.detach() for name, p in self._parameters.items()}, self._moments()

    def _moments(self) -> dict[str, Tensor]:
        return {
            f"{name}.{moment}": self._optimiser.state[parameter][moment]
            for name, parameter in self._parameters.items()
            for moment in MOMENTS
        }


def _load(checkpoint: Path, tensors: Tensors, spec: RunSpec) -> Saved:
    if checkpoint.is_symlink():
        raise ValueError("it is a link, not a folder")
    state = load_file(_State, checkpoint / STATE, most_bytes=LARGEST_JSON)
    if state.spec_hash != spec.hash:
        raise ValueError(f"it belongs to another run, {state.spec_hash[:16]}")
    _check_steps(state.saved, spec, named=_step(checkpoint))
    hashes = state.model_sha256, state.optimiser_sha256
    files = list(zip((MODEL, OPTIMISER), hashes, tensors.places(), strict=True))
    for name, expected, places in files:
        _check_size(checkpoint / name, places)
        if _sha256(checkpoint / name) != expected:
            raise ValueError(f"{name} is not what was written")
    for name, _, places in files:
        read_tensors(checkpoint / name, places)
    return state.saved


def _check_steps(saved: Saved, spec: RunSpec, *, named: int) -> None:
    if saved.step != named or saved.step > spec.recipe.steps:
        raise ValueError(f"it says step {saved.step} of {spec.recipe.steps}, its name {named}")
    every = spec.recipe.evaluation_steps
    found = [evaluation.step for evaluation in saved.evaluations]
    ends_between = saved.step == spec.recipe.steps and saved.step % every > 0
    last = [saved.step] if ends_between else []
    if len(found) != saved.step // every + len(last) or found != [
        *range(every, saved.step + 1, every),
        *last,
    ]:
        raise ValueError(f"it has evaluations at steps {found}, not every {every}")


def _check_size(path: Path, places: dict[str, Tensor]) -> None:
    """Refuse what would take long to read and cannot be it: a pipe, or a file far too large."""
    content = sum(place.numel() * place.element_size() for place in places.values())
    header = LONGEST_ENTRY * (len(places) + 1)
    if path.exists() and not (path.is_file() and path.stat().st_size <= content + header):
        raise ValueError(f"{path.name} is not what was written")


def _check_is_folder(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ValueError(
            f"{folder} is a file or a link, and checkpoints go into a folder; move it away"
        )


def read_tensors(path: Path, places: dict[str, Tensor]) -> None:
    """Fill `places` from a safetensors file with exactly these tensors, in place."""
    with safe_open(path, framework="pt") as file:
        names = set(file.keys())
        if names != places.keys():
            odd = sorted(names ^ places.keys())[0]
            raise ValueError(f"{path.name} and the network differ in {odd!r}")
        for name, place in places.items():
            shape = tuple(file.get_slice(name).get_shape())
            if shape != tuple(place.shape):
                raise ValueError(f"{name} has shape {shape}, not {tuple(place.shape)}")
            content = file.get_tensor(name)
            if content.dtype != place.dtype:
                raise ValueError(f"{name} holds {content.dtype}, not {place.dtype}")
            fill(place, content)


def _on_host(tensor: Tensor) -> Tensor:
    return whole(tensor.detach()).cpu().contiguous()


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*"), key=_step, reverse=True)


def _step(checkpoint: Path) -> int:
    digits = checkpoint.name.removeprefix("step-")
    return int(digits) if digits.isdecimal() else -1


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
