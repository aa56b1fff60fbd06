"""The folder of a finished run, read with suspicion, as Hugging Face has its like."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from archfit.export.formats import FORMATS, Export, ExportFormat, as_json, export_config
from archfit.export.shape import ExportShape, shape_of
from archfit.spec import (
    Architecture,
    Factorised,
    Full,
    Head,
    Positions,
    RunRecord,
    RunSpec,
    load_file,
)
from archfit.spec.counting import table_weights
from archfit.spec.files import (
    LARGEST_RECORD,
    LARGEST_SPEC,
    RECORD,
    SPEC,
    TOKENIZER,
    TOKENIZER_CONFIG,
    WEIGHTS,
)

FORMAT_OF_NETWORK = {  # the one with such blocks, by block, norms of queries and keys, objective
    ("gpt2", False, "causal"): "hf-gpt2",
    ("gpt2", False, "masked"): "hf-esm",
    ("llama", False, "causal"): "hf-llama",
    ("llama", True, "causal"): "hf-qwen3",
}
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
        names = ("embedding", "positions", "head")
        parts = [name for name in names if isinstance(getattr(architecture, name), Factorised)]
        full: dict[str, Full] = dict.fromkeys(parts, Full())
        return replace(architecture, **full)  # type: ignore[arg-type]  # each is a table

    @property
    def format(self) -> ExportFormat:
        """The one that holds its weights."""
        shape = self.spec.architecture
        name = FORMAT_OF_NETWORK.get((shape.block, shape.qk_norm, shape.objective))
        if name is None:
            raise ValueError(
                "an encoder of Llama's blocks is a network that no format has; export one of "
                "GPT-2's blocks, or a decoder; its weights stay usable by archfit"
            )
        return FORMATS[name]


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
    spec = _load(RunSpec, folder / SPEC, LARGEST_SPEC)
    record = _load(RunRecord, folder / RECORD, LARGEST_RECORD)
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
    """The config.json of the trained network; the weights are for `write_weights`."""
    try:
        shape = replace(shape_of(run.merged), separator=separator)
    except ValueError as problem:
        raise ValueError(f"{problem}; its weights stay usable by archfit") from problem
    if obstacles := run.format.obstacles(shape):
        raise ValueError(
            f"{run.format.name} cannot hold these weights: {obstacles[0]}, and no other format has "
            "such blocks; train with head_dim = width / heads to export"
        )
    export = export_config(shape, run.format.name)
    return replace(export, notes=(*export.notes, *_notes(run, shape)))


def _notes(run: TrainedRun, shape: ExportShape) -> list[str]:
    architecture, rule = run.spec.architecture, run.spec.recipe.learning_rate_rule
    notes = [f"trained weights of run {run.spec.name} in float32"]
    tables: dict[str, Positions | Head] = {
        "tokens": architecture.embedding,
        "positions": architecture.positions,
    }
    if run.format.has_head:
        tables["predictions"] = architecture.head
    for name, table in tables.items():
        if isinstance(table, Factorised):
            rows = shape.context if name == "positions" else shape.vocab
            before = table_weights(rows, shape.width, table.inner)
            notes.append(
                f"the table of {name} was factorised to {table.inner} and is multiplied out: "
                f"{before:,} parameters became {rows * shape.width:,}"
            )
    if rule == "completep":
        notes.append("the multipliers of completep are folded into the weights")
    return notes


def _load(kind: type[Value], path: Path, most_bytes: int) -> Value:
    try:
        return load_file(kind, path, most_bytes=most_bytes)
    except ValueError as problem:
        raise ValueError(f"{path} is damaged: {problem}; train the run again") from problem


def with_tokenizer(export: Export, text: str, *, separator: str, context: int) -> Export:
    """The export with a tokenizer.json of Hugging Face, and the file that says how to load it."""
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context,
        "bos_token": separator,
        "eos_token": separator,
        "clean_up_tokenization_spaces": False,
    }
    files = export.files | {TOKENIZER: text, TOKENIZER_CONFIG: as_json(config)}
    return replace(export, files=files)


def without_tokenizer(export: Export, why: str) -> Export:
    """The export with a note that says why it has no tokenizer."""
    return replace(export, notes=(*export.notes, f"no tokenizer: {why}"))
