import hashlib
import itertools
import subprocess
import sys

import numpy as np
import pytest

from archfit.data.loader import Loader
from archfit.data.prepare import prepare
from archfit.data.prepared import PreparedData
from archfit.data.sources import DataSettings


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    return prepare("sample", tmp_path_factory.mktemp("d") / "data", DataSettings(kind="bytes")).data


def philox4x64_10(key: tuple[int, int], counter: int) -> list[int]:
    """Four 64-bit numbers by the rounds of Salmon et al. 2011, written out with Python integers."""
    mask, (key0, key1) = (1 << 64) - 1, key
    x0, x1, x2, x3 = counter, 0, 0, 0
    for _ in range(10):
        product0, product2 = 0xD2E7470EE14C6C93 * x0, 0xCA5A826395121157 * x2
        x0, x1, x2, x3 = (
            (product2 >> 64) ^ x1 ^ key0,
            product2 & mask,
            (product0 >> 64) ^ x3 ^ key1,
            product0 & mask,
        )
        key0, key1 = (key0 + 0x9E3779B97F4A7C15) & mask, (key1 + 0xBB67AE8584CAA73B) & mask
    return [x0, x1, x2, x3]


@pytest.mark.parametrize(("seed", "step"), [(0, 0), (7, 123), (2**64 - 1, 10**9)])
def test_starts_are_those_of_philox_written_out(data: PreparedData, seed: int, step: int) -> None:
    loader = Loader(data=data, batch=6, context=32, seed=seed)
    words = philox4x64_10((seed, step), 1) + philox4x64_10((seed, step), 2)
    places = len(data.tokens("train")) - 32
    assert loader.starts(step).tolist() == [word % places for word in words[:6]]


def test_rows_are_stretches_of_the_file(data: PreparedData) -> None:
    loader = Loader(data=data, batch=8, context=20, seed=1)
    tokens = np.fromfile(data.folder / "train.bin", "<u2")
    expected = [tokens[start : start + 21].tolist() for start in loader.starts(5)]
    batch = loader.training_batch(5)
    assert batch.tolist() == expected
    assert batch.dtype == np.int64


def test_equal_seed_and_step_agree_and_others_differ(data: PreparedData) -> None:
    first, second = (Loader(data=data, batch=4, context=16, seed=3) for _ in range(2))
    other = Loader(data=data, batch=4, context=16, seed=4)
    assert np.array_equal(first.training_batch(9), second.training_batch(9))
    assert not np.array_equal(first.training_batch(9), first.training_batch(10))
    assert not np.array_equal(first.training_batch(9), other.training_batch(9))


def test_another_process_sees_the_same_batch(data: PreparedData) -> None:
    code = (
        "import sys, hashlib; from pathlib import Path\n"
        "from archfit.data.loader import Loader; from archfit.data.prepared import open_prepared\n"
        "data = open_prepared(Path(sys.argv[1]))\n"
        "batch = Loader(data=data, batch=64, context=64, seed=11).training_batch(1000)\n"
        "print(hashlib.sha256(batch.tobytes()).hexdigest(), 'torch' in sys.modules)\n"
    )
    command = [sys.executable, "-c", code, str(data.folder)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    here = Loader(data=data, batch=64, context=64, seed=11).training_batch(1000)
    assert done.stdout.split() == [hashlib.sha256(here.tobytes()).hexdigest(), "False"]


@pytest.mark.parametrize("world", [1, 2, 4])
def test_workers_share_the_rows_of_one_batch(data: PreparedData, world: int) -> None:
    whole = Loader(data=data, batch=8, context=16, seed=5).training_batch(2)
    parts = [
        Loader(data=data, batch=8, context=16, seed=5, rank=rank, world=world).training_batch(2)
        for rank in range(world)
    ]
    assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("world", [1, 2])
def test_every_held_out_token_is_predicted_once(data: PreparedData, world: int) -> None:
    targets = [
        (rank, row[1:])
        for rank in range(world)
        for batch in Loader(
            data=data, batch=64, context=100, seed=0, rank=rank, world=world
        ).heldout_batches()
        for row in batch
    ]
    tokens = data.tokens("heldout")
    whole = (len(tokens) - 1) // 100
    assert len(targets) == whole
    seen = sorted(row.tolist() for _, row in targets)
    expected = sorted(tokens[1 + 100 * n : 101 + 100 * n].tolist() for n in range(whole))
    assert seen == expected


@pytest.mark.parametrize("world", [3, 4])
def test_workers_take_every_held_out_row_once(data: PreparedData, world: int) -> None:
    tokens = data.tokens("heldout")
    rows = [tokens[start : start + 51].tolist() for start in range(0, len(tokens) - 50, 50)]
    found = []
    for rank in range(world):
        loader = Loader(data=data, batch=24, context=50, seed=0, rank=rank, world=world)
        batches = list(loader.heldout_batches())
        assert all(len(batch) == 24 // world for batch in batches[:-1])
        found += [row.tolist() for batch in batches for row in batch]
    assert len(found) == len(rows)
    assert sorted(found) == sorted(rows)


@pytest.mark.parametrize("world", [1, 4])
@pytest.mark.parametrize("most", [1, 7, 10**6])
def test_fewer_held_out_rows_are_spread_evenly_and_shared(
    data: PreparedData, most: int, world: int
) -> None:
    tokens = data.tokens("heldout")
    there = (len(tokens) - 1) // 50
    count = min(most, there)
    chosen = [at * there // count for at in range(count)]
    gaps = {after - before for before, after in itertools.pairwise(chosen)}
    assert max(gaps, default=1) - min(gaps, default=1) <= 1
    found = []
    for rank in range(world):
        loader = Loader(data=data, batch=8, context=50, seed=0, rank=rank, world=world)
        found += [row.tolist() for batch in loader.heldout_batches(most) for row in batch]
    assert sorted(found) == sorted(tokens[50 * row : 50 * row + 51].tolist() for row in chosen)


@pytest.mark.parametrize("step", [-1, 1 << 64])
def test_a_step_that_cannot_be_is_refused(data: PreparedData, step: int) -> None:
    loader = Loader(data=data, batch=8, context=16, seed=0)
    with pytest.raises(
        ValueError, match=rf"step={step} is not in 0\.\.2\^64-1; count steps from 0"
    ):
        loader.training_batch(step)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"batch": 0}, "batch=0 is below 1"),
        ({"seed": -1}, r"seed=-1 is not in 0\.\."),
        ({"world": 3}, "rank=0 of world=3 has no equal share of batch=8; use a world that"),
        ({"context": 10**6}, "the train side has 920269 tokens, too few for context=1000000"),
    ],
)
def test_a_loader_that_cannot_be_is_refused(
    data: PreparedData, options: dict[str, int], sentence: str
) -> None:
    settings = {"batch": 8, "context": 16, "seed": 0} | options
    with pytest.raises(ValueError, match=sentence):
        Loader(data=data, **settings)


def test_nothing_of_the_corpus_is_held(data: PreparedData) -> None:
    tokens = data.tokens("train")
    assert not tokens.flags.owndata
    assert not tokens.flags.writeable


MASK = 257


def taken_apart(rows: np.ndarray, context: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What an encoder sees, the places that were chosen, what stood there."""
    hidden = (rows.shape[1] - context) // 2
    return rows[:, :context], rows[:, context : context + hidden], rows[:, context + hidden :]


def test_an_encoder_is_shown_its_tokens_but_for_the_chosen_ones(data: PreparedData) -> None:
    plain = Loader(data=data, batch=8, context=60, seed=3)
    loader = Loader(data=data, batch=8, context=60, seed=3, mask_id=MASK)
    tokens = plain.training_batch(5)[:, :60]
    seen, places, targets = taken_apart(loader.training_batch(5), 60)
    assert places.shape == (8, 9)  # 15 % of 60
    assert (np.diff(places, axis=1) > 0).all()
    np.testing.assert_array_equal(targets, np.take_along_axis(tokens, places, 1))
    kept = np.ones_like(tokens, bool)
    np.put_along_axis(kept, places, False, 1)
    np.testing.assert_array_equal(seen[kept], tokens[kept])


def test_of_the_chosen_tokens_eight_in_ten_are_hidden_and_one_is_another(
    data: PreparedData,
) -> None:
    loader = Loader(data=data, batch=400, context=100, seed=0, mask_id=MASK)
    seen, places, targets = taken_apart(loader.training_batch(0), 100)
    shown = np.take_along_axis(seen, places, 1)
    assert targets.size == 6000
    counts = [(shown == MASK).sum(), (shown == targets).sum()]
    others = shown[(shown != MASK) & (shown != targets)]
    # 4,800, about 600 / 257 more than 600, and the rest; standard deviations 31 and 23
    assert abs(counts[0] - 4800) < 120
    assert abs(counts[1] - 602) < 90
    assert others.min() >= 0
    assert others.max() < data.vocab
    assert len(set(others.tolist())) > 200  # of 257, evenly drawn
    frequency = np.bincount(places.ravel(), minlength=100) / 60
    assert abs(frequency - 1).max() < 0.6  # every place as often as any other


def test_hidden_tokens_are_a_function_of_seed_and_step_and_in_held_out_rows_of_neither(
    data: PreparedData,
) -> None:
    first, other = (
        Loader(data=data, batch=4, context=40, seed=seed, mask_id=MASK) for seed in (1, 2)
    )
    np.testing.assert_array_equal(first.training_batch(7), first.training_batch(7))
    assert (first.training_batch(7) != first.training_batch(8)).any()
    for mine, theirs in zip(first.heldout_batches(9), other.heldout_batches(9), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_workers_hide_what_one_alone_would_hide(data: PreparedData) -> None:
    def loader(rank: int, world: int) -> Loader:
        return Loader(data=data, batch=4, context=40, seed=1, mask_id=MASK, rank=rank, world=world)

    both = [loader(rank, 2).training_batch(3) for rank in (0, 1)]
    np.testing.assert_array_equal(np.concatenate(both), loader(0, 1).training_batch(3))
    alone = np.concatenate(list(loader(0, 1).heldout_batches(9)))
    shares = [list(loader(rank, 2).heldout_batches(9)) for rank in (0, 1)]
    together = [
        rows for pair in itertools.zip_longest(*shares) for rows in pair if rows is not None
    ]
    np.testing.assert_array_equal(np.concatenate(together), alone)
