"""Memory that runs out, simulated: `most` rows fit at once."""

from pathlib import Path

import pytest
import torch

from archfit.data.prepared import PreparedData
from archfit.train import train
from archfit.train.step import Stepper
from tests_training import HERE, Recorder, largest_difference, record_of, tiny_spec


def let_rows_fit(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    honest = Stepper._mean_loss

    def greedy(self: Stepper, micro_BS: torch.Tensor) -> torch.Tensor:
        if len(micro_BS) > most:
            raise torch.OutOfMemoryError("no more")
        return honest(self, micro_BS)

    monkeypatch.setattr(Stepper, "_mean_loss", greedy)


@pytest.mark.parametrize(("most", "micro"), [(4, 3), (3, 3), (2, 2), (1, 1)])
def test_less_memory_makes_smaller_micro_batches_of_the_same_batch(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, micro: int
) -> None:
    spec, watch = tiny_spec(data, batch_sequences=5), Recorder()
    expected = record_of(spec, data, tmp_path / "ample")
    assert expected.machine.micro_batch_sequences == 5
    let_rows_fit(monkeypatch, most)
    record = train(spec, data, tmp_path, HERE, watch)
    assert largest_difference(record, expected) < 1e-5
    assert record.machine.micro_batch_sequences == micro
    assert watch.notices[-1] == (
        f"out of memory: 5 sequences now go through in micro-batches of {micro}; "
        "the batch stays the same"
    )


def test_when_one_row_is_too_much_the_way_out_is_told(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_rows_fit(monkeypatch, 0)
    with pytest.raises(ValueError, match="use a smaller network or context, or more devices"):
        record_of(tiny_spec(data), data, tmp_path)
