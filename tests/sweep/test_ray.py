"""Cells on a real Ray cluster of two nodes, of which one is lost."""

import fcntl
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from archfit.data.prepared import PreparedData
from archfit.spec.files import is_done, is_held
from archfit.spec.gpu_cost import device_bytes
from archfit.sweep.clusters import GPU_BYTES, LEAST_SHARE, _needs
from tests_said import Said
from tests_sweeps import (
    PATIENCE,
    assert_same_results,
    descendants,
    document,
    is_alive,
    runner_options,
    started,
    sweep_command,
    tiny_specs,
    undisturbed,
    wait_until,
    write_sweep,
)
from tests_training import checkpoints, tiny_spec

ray = pytest.importorskip("ray")
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray leaves files open
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
]


class TwoNodes:
    """A head that runs nothing, and two nodes of one core each."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        self.nodes = [self.cluster.add_node(num_cpus=1) for _ in range(2)]
        self.address: str = self.cluster.address

    def lose_one(self) -> None:
        """Kill a node's processes, as a power cut would."""
        self.cluster.remove_node(self.nodes.pop(), allow_graceful=False)


def training_processes() -> list[int]:
    """Workers of the nodes, which are children of this process."""
    return [one for one in descendants(os.getpid()) if b"--spec" in _command_of(one)]


def _command_of(process: int) -> bytes:
    """What a process was started with; nothing once it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@pytest.fixture
def _no_other_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Wait until no other process of these tests has one: `auto` would find it."""
    with open(tmp_path_factory.getbasetemp().parent / "ray.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def cluster(_no_other_cluster: None) -> Iterator[TwoNodes]:
    nodes = TwoNodes()
    yield nodes
    nodes.cluster.shutdown()


@pytest.mark.slow  # the start of a cluster
def test_a_sweep_survives_the_loss_of_a_node(
    data: PreparedData, tmp_path: Path, cluster: TwoNodes
) -> None:
    # long enough that both nodes are at work at once, however unlike they start
    specs = tiny_specs(data, 3, steps=300, evaluation_steps=100)
    out = tmp_path / "out"
    runs = [out / spec.name for spec in specs]
    file = write_sweep(data, specs, tmp_path)
    command = sweep_command(file, out, "--ray", cluster.address, "--json")
    runner = started(command)
    wait_until(lambda: sum(map(is_held, runs)) == 2, "a cell on each node")
    workers = training_processes()
    assert sum(map(is_done, runs)) <= 1  # the third cell may stand in for the first
    cluster.lose_one()
    end = document(runner)  # nothing of what Ray says about the loss stands before it
    assert (end["done"], end["failed"], end["skipped"]) == (3, 0, 0)
    assert_same_results(out, undisturbed(specs, data, tmp_path / "by itself"))
    wait_until(lambda: not any(map(is_alive, workers)), "no worker left")


@pytest.mark.slow  # signals without Ray are tried every time
def test_a_runner_that_is_stopped_leaves_checkpoints_and_no_worker(
    data: PreparedData, tmp_path: Path, cluster: TwoNodes
) -> None:
    (spec,) = specs = tiny_specs(data, 1, steps=10**6)
    out = tmp_path / "out"
    file = write_sweep(data, specs, tmp_path)
    runner = started(sweep_command(file, out, "--ray", cluster.address))
    wait_until(lambda: (out / spec.name / "log.jsonl").exists(), "the cell begun")
    workers = training_processes()
    runner.terminate()
    complaint = runner.communicate(timeout=PATIENCE)[1]
    assert runner.returncode == 143, complaint
    assert "archfit: stopped; run the same command again to resume: 1 of 1 runs left\n" in complaint
    wait_until(lambda: not any(map(is_alive, workers)), "no worker left")
    assert len(checkpoints(out / spec.name)) == 1


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("auto", "Could not find any running Ray instance"),
        ("127.0.0.1:1", "Connection refused"),
        ("nonsense", "Invalid address format: nonsense"),
    ],
)
@pytest.mark.usefixtures("_no_other_cluster")
def test_without_a_cluster_one_sentence_says_so(
    data: PreparedData, tmp_path: Path, address: str, why: str
) -> None:
    file = write_sweep(data, tiny_specs(data, 1), tmp_path)
    runner = started(sweep_command(file, tmp_path / "out", "--ray", address))
    out, err = runner.communicate(timeout=PATIENCE)
    refusal = Said(runner.returncode, out, err).refusal()
    assert refusal.startswith(f"archfit: --ray {address} is no cluster that answers: ")
    assert why in refusal


def test_a_cell_asks_for_its_share_of_a_gpu(data: PreparedData, tmp_path: Path) -> None:
    options = runner_options(data, tmp_path)
    small = tiny_spec(data)
    assert _needs(small, options, alone=False) == {"num_cpus": 1, "max_retries": -1}
    on_gpu = tiny_spec(data, precision="bfloat16")
    assert _needs(on_gpu, options, alone=False)["num_gpus"] == LEAST_SHARE
    assert _needs(on_gpu, options, alone=True)["num_gpus"] == 1
    assert _needs(small, replace(options, device="cuda"), alone=False)["num_gpus"] == LEAST_SHARE
    large = tiny_spec(data, width=8192, depth=4, precision="bfloat16")
    share = _needs(large, options, alone=False)["num_gpus"]
    assert share == round(device_bytes(large) / GPU_BYTES, 3)
    assert LEAST_SHARE < share < 1
    vast = tiny_spec(data, width=16384, depth=12, precision="bfloat16")
    assert device_bytes(vast) > GPU_BYTES
    assert _needs(vast, options, alone=False)["num_gpus"] == 1
