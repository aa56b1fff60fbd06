"""One tidy table of a sweep, derived from its records and nothing else."""

import csv
import io
from collections.abc import Iterable, Mapping

from archfit.spec import Factorised, Head, RunRecord, Table, Tied

COLUMNS = (
    "run", "data", "depth", "width", "heads", "head_dim", "attention_ratio", "vocab", "patch",
    "context", "embedding", "positions", "head", "embedding_rank", "seed",
    "steps", "batch_sequences", "peak_learning_rate", "learning_rate_rule",
    "block_params", "params_without_embeddings", "params",
    "C", "N", "D", "loss", "bits_per_byte",
    "status", "seconds", "tokens_per_second", "device", "archfit",
)  # fmt: skip


def results_csv(records: Iterable[RunRecord], labels: Mapping[str, str]) -> str:
    """The table as CSV; C, N, D and loss are the columns that tools for scaling laws read.

    C is in floating point operations, N in parameters without any table, D in tokens of the
    source; losses are held out, in nats per token. `labels` names data sets by their hash.
    """
    file = io.StringIO()
    table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    table.writeheader()
    for record in records:
        table.writerow(_row(record, labels))
    return file.getvalue()


def _row(record: RunRecord, labels: Mapping[str, str]) -> dict[str, object]:
    spec, shape, recipe = record.spec, record.spec.architecture, record.spec.recipe
    last = record.evaluations[-1] if record.status == "finished" else None
    return {
        "run": spec.name,
        "data": labels.get(spec.data_hash, spec.data_hash[:16]),
        "depth": shape.depth,
        "width": shape.width,
        "heads": shape.heads,
        "head_dim": shape.head_dim,
        "attention_ratio": f"{shape.attention_ratio:g}",
        "vocab": shape.input.vocab,
        "patch": shape.input.tokens_per_position,
        "context": shape.context,
        "embedding": _table(shape.embedding),
        "positions": _table(shape.positions),
        "head": _table(shape.head),
        "embedding_rank": shape.embedding_rank,
        "seed": spec.seed,
        "steps": recipe.steps,
        "batch_sequences": recipe.batch_sequences,
        "peak_learning_rate": recipe.peak_learning_rate,
        "learning_rate_rule": recipe.learning_rate_rule,
        "block_params": shape.block_params,
        "params_without_embeddings": shape.params_without_embeddings,
        "params": shape.params,
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


def _table(table: Table | Head) -> str:
    """full, tied, or the inner size of a factorised table."""
    if isinstance(table, Factorised):
        return str(table.inner)
    return "tied" if isinstance(table, Tied) else "full"
