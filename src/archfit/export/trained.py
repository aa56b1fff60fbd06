"""The folder of a finished run, read with suspicion, and GPT-2's description of its network."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from archfit.export.format import Export
from archfit.export.formats import export_config
from archfit.export.gpt2 import HF_GPT2
from archfit.export.shape import ExportShape, shape_of
from archfit.spec import (
    Architecture,
    Factorised,
    Full,
    RunRecord,
    RunSpec,
    Tied,
    load_file,
)

SPEC, RECORD, WEIGHTS = "spec.json", "record.json", "model.safetensors"
LARGEST_JSON = 1 << 24  # bytes; a record of 50,000 evaluations has fewer
Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedRun:
    """A run that is done, and the file of its weights."""

    spec: RunSpec
    weights: Path

    @property
    def merged(self) -> Architecture:
        """The network with its factorised tables multiplied out."""
        architecture = self.spec.architecture
        head = architecture.head if isinstance(architecture.head, Tied) else Full()
        return replace(architecture, embedding=Full(), positions=Full(), head=head)


def open_run(folder: Path) -> TrainedRun:
    """The finished run in `folder`; a sentence says what is missing or damaged."""
    if not (folder / SPEC).is_file():
        raise ValueError(
            f"{str(folder)!r} is not the folder of a run: it has no {SPEC}; "
            "give a folder that archfit train made inside its --out"
        )
    if not (folder / RECORD).is_file():
        raise ValueError(
            f"the run in {str(folder)!r} is not finished: it has no {RECORD}; "
            "give the command that trains it again, and it goes on"
        )
    spec, record = _load(RunSpec, folder / SPEC), _load(RunRecord, folder / RECORD)
    if record.spec != spec:
        raise ValueError(
            f"{str(folder)!r} is damaged: {RECORD} is of run {record.spec.name} and {SPEC} of "
            f"{spec.name}; train it again"
        )
    if record.status != "finished":
        raise ValueError(
            f"the run in {str(folder)!r} diverged at step {record.diverged_at_step}, so its "
            "weights are of no use; train it with a smaller learning rate"
        )
    if not (folder / WEIGHTS).is_file():
        raise ValueError(
            f"{str(folder)!r} has no {WEIGHTS}: it was trained with --no-keep-weights; "
            "train it again without"
        )
    return TrainedRun(spec=spec, weights=folder / WEIGHTS)


def export_run(run: TrainedRun, *, separator: int | None) -> Export:
    """GPT-2's config.json for the trained network; the weights are for `write_weights`."""
    try:
        shape = replace(shape_of(run.merged), separator=separator)
    except ValueError as problem:
        raise ValueError(f"{problem}; its weights stay usable by archfit") from problem
    if obstacles := HF_GPT2.obstacles(shape):
        raise ValueError(
            f"hf-gpt2 cannot hold these weights: {obstacles[0]}, and no other format has such "
            "blocks with learned positions; train with head_dim = width / heads to export"
        )
    export = export_config(shape, HF_GPT2.name)
    return replace(export, notes=(*export.notes, *_notes(run, shape)))


def _notes(run: TrainedRun, shape: ExportShape) -> list[str]:
    architecture, rule = run.spec.architecture, run.spec.recipe.learning_rate_rule
    notes = [f"trained weights of run {run.spec.name} in float32"]
    tables = {
        "tokens": architecture.embedding,
        "positions": architecture.positions,
        "predictions": architecture.head,
    }
    for name, table in tables.items():
        if isinstance(table, Factorised):
            rows = shape.context if name == "positions" else shape.vocab
            notes.append(
                f"the table of {name} was factorised to {table.inner} and is multiplied out: "
                f"{(rows + shape.width) * table.inner:,} parameters became {rows * shape.width:,}"
            )
    if rule == "completep":
        notes.append("the multipliers of completep are folded into the weights")
    return notes


def _load(kind: type[Value], path: Path) -> Value:
    try:
        return load_file(kind, path, most_bytes=LARGEST_JSON)
    except ValueError as problem:
        raise ValueError(f"{path} is damaged: {problem}; train the run again") from problem
