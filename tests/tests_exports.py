"""What the tests of exports share: shapes, and finished runs with random weights."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

from safetensors.torch import save_file

from archfit.export.formats import ExportShape
from archfit.model import Transformer
from archfit.spec import (
    Architecture,
    Evaluation,
    Full,
    Machine,
    RunRecord,
    RunSpec,
    Timing,
    canonical_json,
    standard_architecture,
)
from tests_models import random_model
from tests_training import RECIPE

SMALL = ExportShape(
    depth=2,
    width=48,
    heads=4,
    head_dim=12,
    kv_heads=4,
    feed_forward="usual",
    vocab=101,
    context=33,
    embedding=Full(),
    tied=False,
    separator=None,
)
# The published shape of GPT-2, untied.
GPT2 = replace(
    SMALL, depth=12, width=768, heads=12, head_dim=64, kv_heads=12, vocab=50257, context=1024
)
# Nothing is a multiple of anything.
ODD = replace(
    SMALL, depth=3, width=50, head_dim=20, kv_heads=2, feed_forward=201, vocab=300, context=64
)
NETWORK = standard_architecture(depth=3, width=24, heads=4, vocab=31, context=9)


def record_of_random(spec: RunSpec) -> RunRecord:
    """What a finished run would leave."""
    return RunRecord(
        spec=spec,
        status="finished",
        diverged_at_step=None,
        evaluations=(
            Evaluation(
                step=spec.recipe.steps,
                training_nats_per_token=2.0,
                heldout_nats_per_token=2.0,
                heldout_bits_per_byte=2.0,
            ),
        ),
        full_context=None,
        timing=Timing(training_seconds=1.0, tokens_per_second=1.0, flop_utilisation=None),
        machine=Machine(
            device="cpu", devices=1, micro_batch_sequences=1, archfit="", python="", torch=""
        ),
    )


def random_run(
    folder: Path,
    architecture: Architecture = NETWORK,
    rule: Literal["standard", "completep"] = "standard",
) -> Transformer:
    """Make a finished run whose weights, norms and biases are random; its network."""
    spec = RunSpec(
        architecture=architecture,
        data_hash="0" * 64,
        recipe=replace(RECIPE, learning_rate_rule=rule),
        seed=0,
    )
    model = random_model(architecture, rule=rule)
    folder.mkdir(exist_ok=True)
    (folder / "spec.json").write_text(canonical_json(spec))
    (folder / "record.json").write_text(canonical_json(record_of_random(spec)))
    save_file(dict(model.named_parameters()), folder / "model.safetensors")
    return model
