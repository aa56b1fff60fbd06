"""Configs that anybody may have written: each gives a model or one sentence, at once."""

import copy
import json
import random
import time
import tracemalloc
from pathlib import Path
from typing import cast

import pytest

from archfit.audit.config import model_from_config
from archfit.audit.model import Model
from archfit.spec import standard_architecture, to_json

CONFIGS = sorted((Path(__file__).parent / "configs").glob("*.json"))
DOCUMENTS = [cast(dict[str, object], json.loads(path.read_text())) for path in CONFIGS]


OWN = cast(
    dict[str, object],
    to_json(standard_architecture(depth=2, width=32, heads=4, vocab=11, context=8)),
)
DOCUMENTS.append(OWN)


def _nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def _nested_object(levels: int) -> object:
    value: object = {}
    for _ in range(levels):
        value = {"text_config": value}
    return value


ODD: tuple[object, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    3,
    7,
    2.5,
    float("nan"),
    float("inf"),
    10**12,
    10**12 + 1,
    -(10**30),
    10**5000,
    "",
    "12",
    "gated-gelu",
    "x" * 100_000,
    [],
    [1, 2],
    ["a"],
    list(range(100_000)),
    {},
    {"hidden_size": 8},
    _nested(900),
    _nested_object(900),
)


def _mutated(draw: random.Random) -> dict[str, object]:
    """One of the real configs with up to six things wrong."""
    document = {key: copy.copy(value) for key, value in draw.choice(DOCUMENTS).items()}
    for _ in range(draw.randint(1, 6)):
        target = document
        parts = [value for value in document.values() if isinstance(value, dict)]
        if parts and draw.random() < 0.5:
            target = draw.choice(parts)
        _mutate(target, draw)
    return document


def _mutate(target: dict[str, object], draw: random.Random) -> None:
    key = draw.choice(sorted(target)) if target else "hidden_size"
    other = draw.choice(DOCUMENTS)
    change = draw.randrange(5)
    if change == 0:
        target.pop(key, None)
    elif change == 1:
        target[key] = copy.copy(draw.choice(ODD))
    elif change == 2:
        target[draw.choice(sorted(other))] = copy.copy(draw.choice(ODD))
    elif change == 3:
        for name in draw.sample(sorted(other), min(5, len(other))):
            target[name] = copy.copy(other[name])
    else:
        part = draw.choice(("text_config", "vision_config", "encoder", "decoder", "architecture"))
        target[part] = copy.copy(draw.choice((other, draw.choice(ODD))))


def _check(cases: int, seed: int) -> tuple[int, int]:
    """How many of the cases became models, and how many were refused."""
    draw = random.Random(seed)
    models = refused = 0
    for _ in range(cases):
        document = _mutated(draw)
        start = time.process_time()
        try:
            model = model_from_config(document, name="a model", origin="a file")
        except ValueError as problem:
            sentence = str(problem)
            assert 10 < len(sentence) < 400, sentence
            assert "\n" not in sentence
            refused += 1
        else:
            assert isinstance(model, Model)
            assert model.width >= 1
            models += 1
        assert time.process_time() - start < 1
    return models, refused


def test_500_mutated_configs_give_a_model_or_a_sentence() -> None:
    models, refused = _check(500, seed=0)
    assert models > 50
    assert refused > 50


@pytest.mark.slow
def test_10000_mutated_configs_give_a_model_or_a_sentence_in_little_memory() -> None:
    tracemalloc.start()
    models, refused = _check(10_000, seed=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert models + refused == 10_000
    assert min(models, refused) > 1000
    assert peak < 64 * 2**20


def test_a_spec_nested_without_end_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="nested too deeply to be one"):
        model_from_config(OWN | {"depth": _nested(100_000)}, name="a", origin="b")


def test_a_mixture_of_a_trillion_layers_is_counted_without_walking_through_them() -> None:
    document: dict[str, object] = {
        "model_type": "qwen3_moe",
        "hidden_size": 8,
        "num_hidden_layers": 10**12,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "decoder_sparse_step": 2,
        "mlp_only_layers": list(range(1_000_000)),
    }
    start = time.process_time()
    model = model_from_config(document, name="a", origin="b")
    assert time.process_time() - start < 1
    assert model.depth == 10**12
