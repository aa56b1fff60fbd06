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
NAMES = [sweep.name for sweep in EVIDENCE.sweeps]
OF_A_NAME = [sweep for sweep in EVIDENCE.sweeps if named(sweep) in NAMED]
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
    rule = {"learning_rate_rule": words[words.index("--learning-rate-rule") + 1]}
    asked = named_sweep(name, "small", corpora(sweep), seeds=[0, 1, 2], changes=rule)
    assert set(asked.specs) == {record.spec for record in evidence_records(sweep.name)}


@pytest.mark.parametrize("name", ["depth-rates", "depth-lengths", "depth-long"])
def test_a_sweep_file_has_the_shipped_runs(name: str) -> None:

    entry = next(sweep for sweep in EVIDENCE.sweeps if sweep.name == name)
    file = Path(__file__).parents[2] / "docs" / "evidence" / f"{name}.toml"
    asked = set(read_sweep_file(file, corpora(entry), "auto").specs)
    shipped = {record.spec for record in evidence_records(name)}
    assert shipped <= asked
    assert (shipped == asked) != (name == PARTIAL)


def test_every_cell_has_three_seeds() -> None:
    for name in NAMES:
        seeds: Counter[RunSpec] = Counter()
        for record in evidence_records(name):
            seeds[replace(record.spec, seed=0)] += 1
        assert set(seeds.values()) == {3}, name


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
    trained = [sweep.trained() for sweep in EVIDENCE.sweeps]
    assert sum(map(len, trained)) == len(packed_runs()) - 60


def test_the_runner_cost_less_than_a_seventh_on_top_of_training() -> None:
    for sweep in EVIDENCE.sweeps:
        spent = sum(record.timing.training_seconds for record in sweep.trained())
        assert sweep.wall_seconds <= 1.15 * spent, sweep.name


def test_the_file_is_small_and_plain_json_lines() -> None:
    file = resources.files("archfit.resources").joinpath(RECORDS)
    packed = file.read_bytes()
    assert len(packed) < SMALL
    lines = lzma.decompress(packed).decode().splitlines()
    assert len(lines) == len(packed_runs())
    assert all(json.loads(line)["sweep"] in NAMES for line in lines)
