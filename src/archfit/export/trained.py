"""The folder of a finished run, read with suspicion, as Hugging Face has its like."""

from dataclasses import dataclass, replace
from pathlib import Path

from archfit.export import formats
from archfit.export.formats import Export, ExportFormat, ExportShape
from archfit.spec import Factorised, Full, Head, Positions, RunRecord, RunSpec, files
from archfit.spec.counting import table_weights

FORMAT_OF_NETWORK = {  # the one with such blocks, by block, norms of queries and keys, objective
    ("gpt2", False, "causal"): "hf-gpt2",
    ("gpt2", False, "masked"): "hf-esm",
    ("llama", False, "causal"): "hf-llama",
    ("llama", True, "causal"): "hf-qwen3",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedRun:
    """A run that is done, and the file of its weights."""

    spec: RunSpec
    weights: Path

    @property
    def format(self) -> ExportFormat:
        """The one that holds its weights."""
        shape = self.spec.architecture
        name = FORMAT_OF_NETWORK.get((shape.block, shape.qk_norm, shape.objective))
        if name is None:
            rule = "an encoder of Llama's blocks is a network that no format has"
            way_out = "export one of GPT-2's blocks, or a decoder"
            raise ValueError(f"{rule}; {way_out}; its weights stay usable by archfit")
        return formats.FORMATS[name]


def open_run(folder: Path) -> TrainedRun:
    """The finished run in `folder`; a sentence says what is missing or damaged."""
    where = repr(str(folder))
    if not (folder / files.SPEC).is_file():
        way_out = "give a folder that archfit train made inside its --out"
        raise ValueError(f"{where} is not the folder of a run: it has no {files.SPEC}; {way_out}")
    if not (folder / files.RECORD).is_file():
        way_out = "give the command that trains it again, and it goes on"
        raise ValueError(f"the run in {where} is not finished: it has no {files.RECORD}; {way_out}")
    path = folder / files.SPEC
    try:
        spec = files.load_file(RunSpec, path, most_bytes=files.LARGEST_SPEC)
        path = folder / files.RECORD
        record = files.load_file(RunRecord, path, most_bytes=files.LARGEST_RECORD)
    except ValueError as problem:
        raise ValueError(f"{path} is damaged: {problem}; train the run again") from problem
    if record.spec != spec:
        rule = f"{files.RECORD} is of run {record.spec.name} and {files.SPEC} of {spec.name}"
        raise ValueError(f"{where} is damaged: {rule}; train it again")
    if record.status != "finished":
        rule = f"diverged at step {record.diverged_at_step}, so its weights are of no use"
        raise ValueError(f"the run in {where} {rule}; train it with a smaller learning rate")
    if not (folder / files.WEIGHTS).is_file():
        rule = f"has no {files.WEIGHTS}: it was trained with --no-keep-weights"
        raise ValueError(f"{where} {rule}; train it again without")
    return TrainedRun(spec=spec, weights=folder / files.WEIGHTS)


def export_run(run: TrainedRun, *, separator: int | None) -> Export:
    """The config.json of the trained network, its factorised tables multiplied out."""
    given, tables = run.spec.architecture, ("embedding", "positions", "head")
    factorised = [name for name in tables if isinstance(getattr(given, name), Factorised)]
    merged = replace(given, **dict.fromkeys(factorised, Full()))  # type: ignore[arg-type]  # tables
    try:
        each = run.spec.training_tokens / given.params
        shape = replace(formats.shape_of(merged), separator=separator, tokens_per_param=each)
    except ValueError as problem:
        raise ValueError(f"{problem}; its weights stay usable by archfit") from problem
    if obstacles := run.format.obstacles(shape):
        rule = f"{obstacles[0]}, and no other format has such blocks"
        way_out = "train with head_dim = width / heads to export"
        raise ValueError(f"{run.format.name} cannot hold these weights: {rule}; {way_out}")
    export = formats.export_config(shape, run.format.name)
    return replace(export, notes=(*export.notes, *_notes(run, shape)))


def _notes(run: TrainedRun, shape: ExportShape) -> list[str]:
    architecture, rule = run.spec.architecture, run.spec.recipe.learning_rate_rule
    notes = [f"trained weights of run {run.spec.name} in float32"]
    tables: list[tuple[str, int, Positions | Head]] = [
        ("tokens", shape.vocab, architecture.embedding),
        ("positions", shape.context, architecture.positions),
        *([("predictions", shape.vocab, architecture.head)] if run.format.has_head else []),
    ]
    notes += [
        f"the table of {name} was factorised to {table.inner} and is multiplied out: "
        f"{table_weights(rows, shape.width, table.inner):,} parameters became "
        f"{rows * shape.width:,}"
        for name, rows, table in tables
        if isinstance(table, Factorised)
    ]
    if rule == "completep":
        notes.append("the multipliers of completep are folded into the weights")
    return notes


def with_tokenizer(export: Export, text: str, *, separator: str, context: int) -> Export:
    """The export with a tokenizer.json of Hugging Face, and the file that says how to load it."""
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context,
        "bos_token": separator,
        "eos_token": separator,
        "clean_up_tokenization_spaces": False,
    }
    added = {files.TOKENIZER: text, files.TOKENIZER_CONFIG: formats.as_json(config)}
    return replace(export, files=export.files | added)


def without_tokenizer(export: Export, why: str) -> Export:
    """The export with a note that says why it has no tokenizer."""
    return replace(export, notes=(*export.notes, f"no tokenizer: {why}"))
