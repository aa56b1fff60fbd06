"""The batch file: what it says, and that a Slurm cluster completes a sweep by it."""

import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from archfit.data.prepared import PreparedData
from archfit.spec.files import is_done, is_held
from archfit.sweep.clusters import check_script_file, slurm_script
from archfit.sweep.folder import open_sweep
from tests_slurm import missing_daemons, said, slurm_cluster
from tests_sweeps import (
    assert_same_results,
    runner_options,
    tiny_specs,
    tiny_sweep,
    undisturbed,
    wait_until,
)
from tests_training import checkpoints

needs_slurm = pytest.mark.skipif(
    bool(missing_daemons()), reason=f"no Slurm can be started here: {missing_daemons()} missing"
)


def script(data: PreparedData, out: Path, name: str = "tiny", needs_gpu: bool = False) -> str:
    return slurm_script(name, runner_options(data, out), tasks=2, workers=3, needs_gpu=needs_gpu)


def parsed(text: str) -> None:
    """Refuse what bash cannot read."""
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)


@pytest.mark.parametrize("name", ["plain", "with blanks and 'quotes'"])
def test_the_script_is_bash_and_goes_on_with_the_folder(
    data: PreparedData, tmp_path: Path, name: str
) -> None:
    text = script(data, tmp_path / name)
    parsed(text)
    (line,) = [line for line in text.splitlines() if line.endswith(" &")]
    words = shlex.split(line.removesuffix(" &"))
    out = str(tmp_path / name)
    assert words[:7] == [
        sys.executable,
        "-m",
        "archfit",
        "sweep",
        f"{out}/sweep.json",
        "--out",
        out,
    ]
    assert words[-1] == "--no-wait"
    assert "#SBATCH --array=0-1\n" in text
    assert "#SBATCH --cpus-per-task=3\n" in text
    assert "gpu" not in text
    assert "#SBATCH --gpus-per-task=1\n" in script(data, tmp_path, needs_gpu=True)


def test_the_name_of_a_sweep_can_write_no_line_of_the_script(
    data: PreparedData, tmp_path: Path
) -> None:
    lines = script(data, tmp_path, "a\nrm -rf ~ #").splitlines()
    assert lines[2] == "#SBATCH --job-name=archfit-a-rm--rf-"
    assert len(lines) == len(script(data, tmp_path).splitlines())


def test_a_folder_whose_name_breaks_a_line_is_refused(data: PreparedData, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot stand in a batch file"):
        script(data, tmp_path / "a\nb")


def test_a_checkout_that_is_not_installed_is_found_from_anywhere(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "src")
    assert f"\nexport PYTHONPATH={tmp_path}/src\n" in script(data, tmp_path)
    monkeypatch.delenv("PYTHONPATH")
    assert "PYTHONPATH" not in script(data, tmp_path)


def test_a_file_in_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"does not exist; make .*nowhere first"):
        check_script_file(tmp_path / "nowhere" / "job.sh")
    with pytest.raises(ValueError, match="is a folder; name the file"):
        check_script_file(tmp_path)


class Cluster:
    """Slurm's commands."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment

    def submit(self, file: Path, *options: str) -> str:
        """The number of the job."""
        number = said(["sbatch", "--parsable", *options, str(file)], self.environment).strip()
        assert number
        return number

    def queue(self, job: str) -> list[str]:
        """The states of its tasks that are not over."""
        command = ["squeue", "--noheader", "--jobs", job, "--format", "%T"]
        return said(command, self.environment).split()

    def cancel(self, job: str) -> str:
        """Says nothing."""
        return said(["scancel", job], self.environment)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as environment:
        yield Cluster(environment)


@needs_slurm
@pytest.mark.slow
def test_an_array_completes_a_sweep_though_a_task_is_cancelled(
    data: PreparedData, tmp_path: Path, cluster: Cluster
) -> None:
    specs = tiny_specs(data, 4, steps=600, evaluation_steps=100)
    out, file = tmp_path / "out", tmp_path / "job.sh"
    open_sweep(out, tiny_sweep(data, specs))
    options = runner_options(data, out)
    file.write_text(slurm_script("tiny", options, tasks=2, workers=1, needs_gpu=False))
    runs = [out / spec.name for spec in specs]
    job = cluster.submit(file)
    wait_until(lambda: sum(map(is_held, runs)) == 2, "both tasks at work")
    cluster.cancel(f"{job}_0")
    wait_until(lambda: len(cluster.queue(job)) == 1, "one task left")
    log = (out / f"slurm-{job}_0.log").read_text()
    assert "archfit: stopped; run the same command again to resume" in log
    cluster.cancel(job)
    wait_until(lambda: not cluster.queue(job), "no task left")
    assert not all(map(is_done, runs))
    assert sum(len(checkpoints(run)) for run in runs) == 2
    again = cluster.submit(file)
    wait_until(lambda: not cluster.queue(again), "the array done")
    assert_same_results(out, undisturbed(specs, data, tmp_path / "by itself"))
    assert len((out / "results.csv").read_text().splitlines()) == 1 + len(specs)


@needs_slurm
@pytest.mark.slow
def test_a_task_whose_time_is_up_saves_its_run_and_queues_again(
    data: PreparedData, tmp_path: Path, cluster: Cluster
) -> None:
    (spec,) = specs = tiny_specs(data, 1, steps=10**6)
    out, file = tmp_path / "out", tmp_path / "job.sh"
    open_sweep(out, tiny_sweep(data, specs))
    options = runner_options(data, out)
    file.write_text(slurm_script("tiny", options, tasks=1, workers=1, needs_gpu=False))
    job = cluster.submit(file, "--time=1", "--signal=B:USR1@50")
    log, run = out / f"slurm-{job}_0.log", out / spec.name
    wait_until(lambda: log.exists() and "archfit: stopped;" in log.read_text(), "its time up")
    (saved,) = checkpoints(run)
    assert not is_held(run)
    wait_until(lambda: cluster.queue(job) == ["PENDING"], "in the queue again")
    wait_until(lambda: is_held(run), "at work again")
    wait_until(lambda: checkpoints(run)[-1] > saved, "further than before")  # its time is up again
    wait_until(  # again and again: it may be about to put itself back
        lambda: cluster.cancel(job) or not cluster.queue(job), "out of the queue"
    )
