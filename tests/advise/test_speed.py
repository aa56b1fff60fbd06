"""How long networks train: planted numbers are found, machines that were timed are met."""

import tomllib

import pytest

from archfit.advise.budgets import SPEEDS, Speed, Timed, fitted_speed, known_speed
from archfit.spec.errors import InvalidValue
from archfit.spec.files import packed_file

PLANTED = Speed(machine="planted", start=2e-8, layer=8e-9, width=1e-11, operation=2e-15)
SHAPES = [
    (2, 96, 257, 256),
    (8, 44, 257, 256),
    (24, 144, 257, 128),
    (48, 104, 257, 128),
    (12, 768, 50304, 1024),
    (24, 480, 2000, 256),
]


def timed(speed: Speed, noise: float = 0.0) -> list[Timed]:
    found = list[Timed]()
    for at, (depth, width, vocab, context) in enumerate(SHAPES):
        seconds = speed.seconds(depth=depth, width=width, vocab=vocab, context=context)
        found.append((depth, width, vocab, context, seconds * (1 + noise * (-1) ** at)))
    return found


def test_planted_numbers_are_found() -> None:
    found = fitted_speed("planted", timed(PLANTED))
    for name in ("start", "layer", "width", "operation"):
        assert getattr(found, name) == pytest.approx(getattr(PLANTED, name), rel=1e-6), name


def test_times_that_scatter_are_met_about_as_well_as_they_scatter() -> None:
    noisy = timed(PLANTED, noise=0.1)
    found = fitted_speed("noisy", noisy)
    for depth, width, vocab, context, took in noisy:
        seconds = found.seconds(depth=depth, width=width, vocab=vocab, context=context)
        assert seconds == pytest.approx(took, rel=0.25)


def test_no_part_of_the_time_is_negative() -> None:
    """As deeper networks would be, whose times only their start explains."""
    even = [(depth, 64, 257, 64, 1e-6 / depth) for depth in (1, 2, 4, 8)]
    found = fitted_speed("even", even)
    assert min(found.start, found.layer, found.width, found.operation) >= 0
    assert found.start > 0


@pytest.mark.parametrize("gpu", ["h200", "cpu", "H200"])
def test_a_machine_that_was_timed_is_met_in_every_network(gpu: str) -> None:
    table = tomllib.loads(packed_file(SPEEDS).read_text(encoding="utf-8"))[gpu.lower()]
    speed = known_speed(gpu)
    assert speed.machine == table["name"]
    for depth, width, vocab, context, tokens_a_second in table["networks"]:
        seconds = speed.seconds(depth=depth, width=width, vocab=vocab, context=context)
        assert 1 / seconds == pytest.approx(tokens_a_second, rel=0.35)


def test_more_layers_at_one_size_take_longer_on_a_gpu() -> None:
    deep, flat = (
        known_speed("h200").seconds(depth=depth, width=width, vocab=257, context=256)
        for depth, width in ((48, 100), (3, 400))
    )
    assert deep > 2 * flat


def test_a_machine_that_nobody_timed_is_refused_with_those_that_were() -> None:
    with pytest.raises(InvalidValue, match=r"^gpu='abacus' was not timed; use h200, cpu"):
        known_speed("abacus")
