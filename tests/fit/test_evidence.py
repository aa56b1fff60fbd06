"""The shipped records are what their commands train, whole, and small."""

import json
import lzma
from collections import Counter
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from archfit.fit.evidence import RECORDS, ShippedSweep, evidence_records, packed_runs, read_evidence
from archfit.spec import RunSpec
from archfit.sweep.named import NAMED, named_sweep
from archfit.sweep.sweep import Corpus
from archfit.sweep.sweep_file import read_sweep_file


def named(sweep: ShippedSweep) -> str:
    """What its command asks for: archfit sweep NAME, or a file."""
    return sweep.command.split()[2]


EVIDENCE = read_evidence()
NAMES = [sweep.name for sweep in EVIDENCE.shipped]
OF_A_NAME = [sweep for sweep in EVIDENCE.shipped if named(sweep) in NAMED]
OF_A_FILE = [sweep for sweep in EVIDENCE.shipped if named(sweep) not in NAMED]
SINGLE = ("fair-depth-third", "figure-one-257", "figure-one-500", "rank-long")  # one seed
PARTIAL = "depth-long"  # its note says so
SMALL = 3_000_000  # bytes


def corpora(sweep: ShippedSweep) -> list[Corpus]:
    """The data of a sweep, the smallest vocabulary first, as its command names them."""
    found = {record.spec.data_hash: record.spec for record in evidence_records(sweep.name)}
    listed = [
        Corpus(
            label=data.label,
            kind=data.kind,
            vocab=found[data.hash].architecture.input.vocab,
            hash=data.hash,
            folder="",
        )
        for data in EVIDENCE.data
        if data.hash in found
    ]
    return sorted(listed, key=lambda corpus: corpus.vocab)


@pytest.mark.parametrize("sweep", OF_A_NAME, ids=lambda sweep: sweep.name)
def test_the_documented_command_asks_for_the_very_runs_that_are_shipped(
    sweep: ShippedSweep,
) -> None:
    name, words = named(sweep), sweep.command.split()
    option = "--learning-rate-rule"
    rule = {"learning_rate_rule": words[words.index(option) + 1]} if option in words else {}
    asked = named_sweep(name, "small", corpora(sweep), seeds=[0, 1, 2], changes=rule)
    assert set(asked.specs) == {record.spec for record in evidence_records(sweep.name)}


@pytest.mark.parametrize("sweep", OF_A_FILE, ids=lambda sweep: sweep.name)
def test_a_sweep_file_has_the_shipped_runs(sweep: ShippedSweep) -> None:
    file = Path(__file__).parents[2] / named(sweep)
    labels = {257: "bytes", 500: "bpe-500", 2000: "bpe-2000"}
    given = [replace(corpus, label=labels[corpus.vocab]) for corpus in corpora(sweep)]
    asked = set(read_sweep_file(file, given, "auto").specs)
    shipped = {record.spec for record in evidence_records(sweep.name)}
    assert shipped <= asked
    assert (shipped == asked) != (sweep.name == PARTIAL)


@pytest.mark.parametrize("sweep", EVIDENCE.sweeps, ids=lambda sweep: sweep.name)
def test_a_sweep_that_is_not_shipped_yet_has_a_command_that_gives_cells(
    sweep: ShippedSweep,
) -> None:
    assert (sweep in EVIDENCE.shipped) == bool(sweep.date and sweep.wall_seconds)
    assert named(sweep) in NAMED or (Path(__file__).parents[2] / named(sweep)).is_file()


def test_every_cell_has_three_seeds() -> None:
    for name in NAMES:
        seeds: Counter[RunSpec] = Counter()
        for record in evidence_records(name):
            seeds[replace(record.spec, seed=0)] += 1
        wanted = {1} if name in SINGLE else {2} if name == "fair-depth" else {3}
        assert set(seeds.values()) == wanted, name


def test_all_finished_on_a_named_machine_by_a_named_commit() -> None:
    for line in packed_runs():
        assert line.record.status == "finished"
        assert line.record.machine.device == "NVIDIA H200"
        assert "commit" in line.record.machine.archfit
        assert EVIDENCE.labels[line.record.spec.data_hash]


def test_runs_that_sweeps_share_are_the_same_and_counted_once() -> None:
    depth = {record.spec: record for record in evidence_records("levine-depth")}
    for name in ("wies-lowrank", "wies-vocab"):
        shared = [record for record in evidence_records(name) if record.spec in depth]
        assert len(shared) == 30
        assert all(record == depth[record.spec] for record in shared)
    trained = [sweep.trained() for sweep in EVIDENCE.shipped]
    assert sum(map(len, trained)) == len(packed_runs()) - 60


def test_the_runner_cost_less_than_a_seventh_on_top_of_training() -> None:
    for sweep in EVIDENCE.shipped:
        spent = sum(record.timing.training_seconds for record in sweep.trained())
        assert sweep.wall_seconds <= 1.15 * spent, sweep.name


def test_the_file_is_small_and_plain_json_lines() -> None:
    file = resources.files("archfit.resources").joinpath(RECORDS)
    packed = file.read_bytes()
    assert len(packed) < SMALL
    lines = lzma.decompress(packed).decode().splitlines()
    assert len(lines) == len(packed_runs())
    assert all(json.loads(line)["sweep"] in NAMES for line in lines)
