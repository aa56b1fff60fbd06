import math

import numpy as np
import pytest
import torch

from archfit.data.loader import Loader
from archfit.data.prepared import PreparedData
from archfit.model import Transformer, initialise, parametrisation
from archfit.spec import Patches, RunSpec
from archfit.train.evaluate import (
    Heldout,
    HeldoutReplay,
    bits_per_byte,
    full_context_loss,
    heldout_loss,
)
from archfit.train.hardware import ProcessGroup
from tests_training import HELDOUT, tiny_spec


def any_network(spec: RunSpec) -> Transformer:
    """One whose head does not start at zero."""
    numbers = parametrisation(spec.architecture, "standard")
    model = Transformer(spec.architecture, numbers, dropout=0.3)
    initialise(model, numbers, seed=0)
    chance = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=chance)
    return model


def heldout(spec: RunSpec, data: PreparedData) -> Heldout:
    group = ProcessGroup(rank=0, world=1, device=torch.device("cpu"))
    size = spec.architecture.input.tokens_per_position
    loader = Loader(data=data, batch=4, context=13 * size - 1, seed=0)
    return Heldout(spec=spec, loader=loader, group=group, rows=3)


def losses_of_windows(model: Transformer, windows: list[np.ndarray], size: int) -> np.ndarray:
    """-ln p of each token of each window but those of its first position."""
    tokens_BS = torch.from_numpy(np.stack(windows).astype(np.int64))
    with torch.no_grad():
        logits_BNP = model.eval()(tokens_BS[:, :-size])
    log_p_BSV = logits_BNP.reshape(*tokens_BS[:, size:].shape, -1).log_softmax(-1)
    losses_BS: np.ndarray = -log_p_BSV.gather(-1, tokens_BS[:, size:, None])[..., 0].numpy()
    return losses_BS


@pytest.mark.parametrize("rows", [7, 10**6])
def test_held_out_loss_is_the_mean_over_evenly_spread_rows(data: PreparedData, rows: int) -> None:
    spec = tiny_spec(data, evaluation_sequences=rows)
    model, tokens = any_network(spec), data.tokens("heldout")
    there = (len(tokens) - 1) // 12
    chosen = [at * there // rows for at in range(rows)] if rows < there else range(there)
    windows = [tokens[12 * row : 12 * row + 13] for row in chosen]
    expected = losses_of_windows(model, windows, 1).mean()
    assert heldout_loss(model, heldout(spec, data)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("wanted", [29, 10**6])
@pytest.mark.parametrize("size", [1, 3])
def test_full_context_loss_is_that_of_each_window_s_end(
    data: PreparedData, size: int, wanted: int
) -> None:
    patches = {"input": Patches(vocab=data.vocab, size=3, encoding="one-hot")} if size > 1 else {}
    spec = tiny_spec(data, full_context_tokens=wanted, **patches)
    model, tokens = any_network(spec), data.tokens("heldout")
    starts = [at for at in range(0, len(tokens), size) if at + 13 * size <= len(tokens)]
    starts = starts[: math.ceil(wanted / size)]
    windows = [tokens[at : at + 13 * size] for at in starts]
    expected = losses_of_windows(model, windows, size)[:, -size:]
    loss, count = full_context_loss(model, heldout(spec, data))
    assert count == expected.size
    assert loss == pytest.approx(expected.mean(), abs=1e-5)


def test_evaluation_leaves_dropout_on_for_training(data: PreparedData) -> None:
    model = any_network(tiny_spec(data))
    heldout_loss(model, heldout(tiny_spec(data), data))
    assert model.training


def test_bits_per_byte_counts_the_bytes_of_the_source(data: PreparedData) -> None:
    tokens = len(data.tokens("heldout"))
    assert tokens == len(HELDOUT) + 1  # the end of the document is predicted too
    assert bits_per_byte(math.log(4), data) == pytest.approx(2 * tokens / len(HELDOUT))


@pytest.mark.parametrize(("room", "rows"), [(2.5, 2), (1.0, 1), (0.1, 1), (1e9, 9)])
def test_a_recorded_evaluation_goes_through_in_parts_that_fit(
    data: PreparedData, monkeypatch: pytest.MonkeyPatch, room: float, rows: int
) -> None:
    """`room` is for so many rows of logits, hidden units and streams in float32."""
    spec = tiny_spec(data, evaluation_sequences=9)
    shape = spec.architecture
    a_row = (
        4 * shape.context * (2 * shape.input.predictions + 3 * shape.feed_forward + 8 * shape.width)
    )
    monkeypatch.setattr("archfit.train.evaluate.EVALUATION_BYTES", int(room * a_row))
    model, held = any_network(spec), heldout(spec, data)
    replay = HeldoutReplay(model, held)
    assert len(replay.parts[0]) == min(rows, sum(map(len, replay.parts)))
    assert float(replay._mean()) == pytest.approx(heldout_loss(model, held), abs=1e-6)
