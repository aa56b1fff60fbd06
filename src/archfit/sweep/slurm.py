"""A Slurm job array whose tasks are runners on one folder, and nothing that waits for them.

Each task takes the cells that are neither done nor held, so tasks need no list, may be more or
fewer than cells, may die, and may be submitted again. Near its time limit a task is sent SIGUSR1,
saves its run and puts itself back into the queue; one that is cancelled gets SIGTERM and stays out.
"""

import re
import shlex
import sys
from pathlib import Path

from archfit.spec import write_whole
from archfit.spec.files import SWEEP
from archfit.sweep.runner import RunnerOptions
from archfit.sweep.worker import absolute_import_path

SECONDS_TO_SAVE = 120  # before the time limit, for a checkpoint


def slurm_script(
    name: str, options: RunnerOptions, *, tasks: int, workers: int, needs_gpu: bool
) -> str:
    """The batch file; `sbatch FILE` submits it."""
    out = options.out.resolve()
    if not str(out).isprintable():  # a line break in it would begin a line of the script
        raise ValueError(f"--out {str(out)!r} cannot stand in a batch file; use a plainer name")
    words = [
        *(sys.executable, "-m", "archfit", "sweep", str(out / SWEEP), "--out", str(out)),
        *("--device", options.device, "--threads", str(options.threads)),
        *("--workers", str(workers), "--checkpoint-seconds", str(options.checkpoint_seconds)),
        "--no-wait",
    ]
    gpu = "#SBATCH --gpus-per-task=1\n" if needs_gpu else ""
    path = absolute_import_path()  # by which a checkout is found, whatever shell submits
    export = f"\nexport PYTHONPATH={shlex.quote(path)}" if path else ""
    log = str(out / "slurm-%A_%a.log")
    log = f'"{log}"' if any(letter.isspace() for letter in log) else log
    return f"""#!/bin/bash
# Submit with sbatch; edit the time limit and add a partition or account as your cluster wants.
#SBATCH --job-name=archfit-{re.sub(r"[^A-Za-z0-9_.-]+", "-", name)}
#SBATCH --array=0-{tasks - 1}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={max(1, workers * options.threads)}
{gpu}#SBATCH --time=24:00:00
#SBATCH --output={log}
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@{SECONDS_TO_SAVE}
{export}
time_is_up=
trap 'time_is_up=yes; kill -TERM "$runner"' USR1
trap 'kill -TERM "$runner"' TERM
{shlex.join(words)} &
runner=$!
wait "$runner"; status=$?
while kill -0 "$runner" 2>/dev/null; do wait "$runner"; status=$?; done  # a trap ends a wait
if [ "$time_is_up" ] && [ "$status" -gt 128 ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$status"
"""


def write_script(file: Path, script: str) -> None:
    """Put the batch file in place."""
    check_script_file(file)
    write_whole(file, script.encode())


def check_script_file(file: Path) -> None:
    """Refuse a place where no batch file can be written."""
    if not file.parent.is_dir():
        raise ValueError(f"{file} is in a folder that does not exist; make {file.parent} first")
    if file.is_dir():
        raise ValueError(f"{file} is a folder; name the file that the batch script is to have")
