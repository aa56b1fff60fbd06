"""A Slurm cluster of one node on this machine, from the daemons of the distribution."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests_sweeps import wait_until

DAEMONS = ("munged", "slurmctld", "slurmd")
SETTINGS = """
ClusterName=archfit
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
KillWait=60
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing_daemons() -> list[str]:
    """Those that this machine or this user cannot start."""
    found = [name for name in DAEMONS if shutil.which(name, path=_search_path()) is None]
    return [*found, *(["root"] if os.geteuid() else [])]


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[Mapping[str, str]]:
    """Start the daemons, with all their files in `folder`; the environment of Slurm's commands."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    settings, key = folder / "slurm.conf", folder / "munge.key"
    settings.write_text(
        SETTINGS.format(
            host=socket.gethostname(), ports=_ports(2), folder=folder, cores=os.cpu_count()
        )
    )
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    environment = os.environ | {"SLURM_CONF": str(settings), "PATH": _search_path()}
    munge = {"key-file": key, "socket": folder / "munge.socket", "pid-file": folder / "munged.pid"}
    munge |= {"log-file": folder / "munged.log", "seed-file": folder / "munge.seed"}
    named = [f"--{name}={path}" for name, path in munge.items()]
    with ExitStack() as running:
        for command in (
            ["munged", "--foreground", "--force", *named],
            ["slurmctld", "-D", "-f", str(settings)],
            ["slurmd", "-D", "-f", str(settings), "-N", socket.gethostname()],
        ):
            running.enter_context(_daemon(command, environment))
        wait_until(lambda: "idle" in said(["sinfo", "--noheader"], environment), "an idle node")
        yield environment
        said(["scancel", "--user", "root", "--signal", "KILL", "--full"], environment)


def said(command: list[str], environment: Mapping[str, str]) -> str:
    """What one of Slurm's commands says; nothing while the daemons are not up."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


@contextmanager
def _daemon(command: list[str], environment: Mapping[str, str]) -> Iterator[None]:
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet) as process:
        try:
            yield
        finally:
            process.terminate()


def _ports(count: int) -> list[int]:
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def _search_path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"
