"""How large a check is: as large as the time allows, and not larger."""

from dataclasses import replace

import pytest

from archfit.advise.design import SEEDS, SIZES, Design, Speed, affordable, check_cells, networks
from archfit.sweep.sweep import Corpus
from tests_advice import plan_of

SPEED = Speed(seconds_a_layer=1e-3, flops_per_second=4e10)
START = Design(share=1.0, steps=200, sizes=SIZES, scale="smoke", context=64)
CORPORA = {
    label: Corpus(label=label, kind="fasta", vocab=vocab, hash=f"{vocab:064x}", folder="")
    for label, vocab in (("as given", 24), ("kmer-2", 529))
}


def seconds(design: Design, workers: int) -> float:
    """The time of all runs by what each costs, added up here."""
    cells = check_cells(plan_of("fasta"), design, CORPORA)
    total = 0.0
    for one in cells:
        spec = one.cell.spec(0)
        per_step = 1e-3 * spec.architecture.depth + spec.training_flops / design.steps / 4e10
        total += SEEDS * design.steps * per_step
    return total / workers


@pytest.mark.parametrize("minutes", [2, 10, 60])
def test_the_runs_fill_the_time_and_do_not_exceed_it(minutes: float) -> None:
    plan = plan_of("fasta")
    design = affordable(plan, seconds=60 * minutes, speed=SPEED, start=START, workers=2)
    assert 0.6 * 60 * minutes < seconds(design, 2) <= 60 * minutes
    larger = replace(design, share=1.5 * design.share, steps=round(1.5 * design.steps))
    assert seconds(larger, 2) > 0.85 * 60 * minutes


def test_twice_the_workers_allow_larger_networks_and_a_slow_machine_smaller_ones() -> None:
    def share(workers: int, slower: float) -> float:
        speed = SPEED.slowed(slower)
        return affordable(
            plan_of("fasta"), seconds=600, speed=speed, start=START, workers=workers
        ).share

    assert share(2, 3.0) < share(2, 1.0) < share(4, 1.0)


def test_with_a_day_of_time_the_plan_itself_is_trained() -> None:
    fast = Speed(seconds_a_layer=1e-5, flops_per_second=1e14)
    plan = plan_of("fasta")
    design = affordable(plan, seconds=86400, speed=fast, start=START, workers=8)
    assert design.share == 1.0
    cells = check_cells(plan, design, CORPORA)
    shape = cells[0].cell.options
    assert (shape.depth, shape.width) == (plan.shape.depth, plan.shape.width)


def test_with_no_time_the_smallest_networks_are_trained_all_the_same() -> None:
    design = affordable(plan_of("fasta"), seconds=1e-3, speed=SPEED, start=START, workers=1)
    assert design.steps == 200
    assert 5_000 < design.share * plan_of("fasta").shape.block_params < 7_000


def test_the_first_two_depths_are_trained_at_every_size_and_a_repair_at_the_largest() -> None:
    plan, design = plan_of("fasta"), replace(START, share=0.02)
    sizes: dict[str, list[float]] = {}
    for one in check_cells(plan, design, CORPORA):
        sizes.setdefault(one.network.name, []).append(one.size)
    names = [one.name for one in networks(plan, 0.02)]
    assert [sizes[name] for name in names[:2]] == [list(SIZES), list(SIZES)]
    assert all(sizes[name] == [1.0] for name in names[2:])


def test_data_that_could_not_be_had_leave_their_network_out() -> None:
    given = {"as given": CORPORA["as given"]}
    cells = check_cells(plan_of("fasta"), replace(START, share=0.02), given)
    assert {one.network.name for one in cells}.isdisjoint({"kmer-2"})
    assert any(one.network.role == "repaired" for one in cells)  # patches need no other data
