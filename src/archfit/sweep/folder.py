"""The folder of a sweep: a folder for each run, `sweep.json`, and `results.csv`.

`sweep.json` says what was asked for, so that anybody who has the folder can go on with it. The
records are the truth; `results.csv` is derived from them, and made again whenever a runner ends.
"""

import contextlib
import csv
import fcntl
import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from archfit import __version__
from archfit.spec import RunRecord, canonical_json, files, from_json
from archfit.spec.codec import parse_object
from archfit.spec.errors import brief, refusal
from archfit.sweep.sweep import Sweep

COLUMNS = (
    "run", "data", "depth", "width", "heads", "head_dim", "attention_ratio", "feed_forward",
    "vocab", "patch", "context", "embedding", "positions", "head", "embedding_rank", "seed",
    "steps", "batch_sequences", "peak_learning_rate", "learning_rate_rule",
    "block_params", "params_without_embeddings", "params",
    "C", "N", "D", "loss", "bits_per_byte",
    "status", "seconds", "tokens_per_second", "device", "archfit",
    "block", "kv_heads", "qk_norm", "objective",
)  # fmt: skip


def open_sweep(out: Path, wanted: Sweep) -> Sweep:
    """The sweep that the folder now holds: the one wanted, with the cells it had before.

    Asking for more seeds or widths extends a sweep. One of another name is refused.
    """
    out.mkdir(parents=True, exist_ok=True)
    with locked(out):
        merged = wanted
        if (out / files.SWEEP).exists():
            before = read_sweep(out / files.SWEEP)
            if (before.name, before.scale) != (wanted.name, wanted.scale):
                held = {"held": before.name, "held_scale": before.scale}
                raise refusal("sweep-other", out=out, name=wanted.name, scale=wanted.scale, **held)
            data = {corpus.hash: corpus for corpus in (*before.data, *wanted.data)}
            specs = dict.fromkeys((*wanted.specs, *before.specs))
            merged = replace(wanted, data=tuple(data.values()), specs=tuple(specs))
            if merged == before:
                return merged
        files.write_whole(out / files.SWEEP, sweep_json(merged).encode())
    return merged


def sweep_json(sweep: Sweep) -> str:
    """The content of `sweep.json`."""
    return canonical_json(sweep) + "\n"


def read_sweep(path: Path) -> Sweep:
    """The sweep in a file; one that another version writes is refused."""
    try:
        content = files.read_bounded(path, files.LARGEST_SWEEP)
        document = parse_object(content, where="it", most_parts=files.LARGEST_SWEEP)
        form, version = document.get("format"), document.get("archfit")
        is_ours = form is not True and (form, version) == (files.SWEEP_FORMAT, __version__)
        sweep = from_json(Sweep, document) if is_ours else None
    except ValueError as problem:
        raise ValueError(f"{path} holds no sweep: {problem}; delete it to begin anew") from problem
    if sweep is None:
        written = version[:20] if isinstance(version, str) and version.isprintable() else "?"
        formats = {"form": brief(form), "own_form": files.SWEEP_FORMAT}
        raise refusal("other-version", path=path, version=written, own=__version__, **formats)
    return sweep


def write_results(out: Path, sweep: Sweep) -> Path:
    """Make `results.csv`, one tidy table, from the records that are there.

    C, N, D and loss are the columns that tools for scaling laws read: C is in floating point
    operations, N in parameters without any table, D in tokens of the source; losses are held out,
    in nats per token; `feed_forward` is in hidden units.
    """
    labels = {corpus.hash: corpus.label for corpus in sweep.data}
    with locked(out):
        file = io.StringIO()
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(_row(record, labels) for record in files.read_records(out))
        files.write_whole(out / files.RESULTS, file.getvalue().encode())
    return out / files.RESULTS


@contextlib.contextmanager
def locked(out: Path) -> Iterator[None]:
    """Wait until no other runner writes; the lock goes with its holder."""
    with files.open_lock(out / files.LOCK) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _row(record: RunRecord, labels: Mapping[str, str]) -> dict[str, object]:
    spec, shape, recipe = record.spec, record.spec.architecture, record.spec.recipe
    last = record.evaluations[-1] if record.status == "finished" else None
    tables = {name: getattr(shape, name) for name in ("embedding", "positions", "head")}
    return {
        **{name: getattr(shape, name) for name in COLUMNS if hasattr(shape, name)},
        **{name: getattr(recipe, name) for name in COLUMNS if hasattr(recipe, name)},
        "run": spec.name,
        "data": labels.get(spec.data_hash, spec.data_hash[:16]),
        "attention_ratio": f"{shape.attention_ratio:g}",
        "kv_heads": shape.key_value_heads,
        "vocab": shape.input.vocab,
        "patch": shape.input.tokens_per_position,
        **{name: getattr(table, "inner", table.TAG) for name, table in tables.items()},
        "seed": spec.seed,
        "C": f"{spec.training_flops:.6e}",
        "N": shape.params_without_embeddings,
        "D": spec.training_tokens,
        "loss": "" if last is None else last.heldout_nats_per_token,
        "bits_per_byte": "" if last is None else last.heldout_bits_per_byte,
        "status": record.status,
        "seconds": f"{record.timing.training_seconds:.3f}",
        "tokens_per_second": f"{record.timing.tokens_per_second:.0f}",
        "device": record.machine.device,
        "archfit": record.machine.archfit,
    }
