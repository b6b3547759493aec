"""A Slurm of one node for the tests: its own controller, node daemon and munge in a folder of their own.

Nothing outside that folder is read or written, so that a Slurm which the machine already has is left alone. Accounting
is not started: the launcher has to tell a dead job from a waiting one without it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

PROGRAMS = ("munged", "munge", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
HINT = "apt-get install --no-install-recommends slurm-wlm munge"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cores():
    return len(os.sched_getaffinity(0))


CONF = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=2
SlurmctldTimeout=300
SlurmdTimeout=300
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} Gres=gpu:2 State=UNKNOWN
PartitionName=tests Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """The daemons, and the commands in their environment."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self.processes = []

    def run(self, *command, check=True):
        """What a command of Slurm prints."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def start(self):
        for name in ("munge", "state", "spool", "log"):
            (self.folder / name).mkdir(mode=0o755)
        self._munge()
        host = socket.gethostname().split(".")[0]
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
        text = CONF.format(
            host=host, folder=self.folder, user=os.environ.get("USER") or subprocess.getoutput("id -un"), cpus=cores(),
            memory=max(512, pages * size // 2**20 - 1024), controller_port=free_port(), node_port=free_port(),
        )  # fmt: skip
        (self.folder / "slurm.conf").write_text(text)
        # Two accelerators that are none: devices that everybody has.
        lines = [f"NodeName={host} Name=gpu File=/dev/{name}\n" for name in ("null", "zero")]
        (self.folder / "gres.conf").write_text("".join(lines))
        self._daemon("slurmctld", "-D", "-f", self.folder / "slurm.conf")
        self._daemon("slurmd", "-D", "-f", self.folder / "slurm.conf")
        self._until(lambda: self.run("sinfo", "-h", "-o", "%t", check=False).strip() == "idle", "an idle node")

    def _munge(self):
        munge = self.folder / "munge"
        (munge / "key").write_bytes(secrets.token_bytes(1024))
        (munge / "key").chmod(0o400)
        self._daemon(
            "munged", "--foreground", f"--socket={munge}/socket", f"--key-file={munge}/key", f"--pid-file={munge}/pid",
            f"--log-file={munge}/log", f"--seed-file={munge}/seed", "--num-threads=1",
        )  # fmt: skip
        self._until(lambda: (munge / "socket").exists(), "munge")

    def _daemon(self, *command):
        with (self.folder / "log" / f"{command[0]}.out").open("wb") as log:
            process = subprocess.Popen(
                [str(c) for c in command], env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        self.processes.append(process)

    def _until(self, holds, what):
        for _ in range(150):
            if holds():
                return
            time.sleep(0.2)
        logs = "\n".join(p.read_text(errors="replace")[-1500:] for p in sorted(self.folder.rglob("log*/*.*")))
        raise RuntimeError(f"{what} did not come up:\n{logs}")

    def stop(self):
        self.run("scancel", f"--user={os.getuid()}", check=False)
        time.sleep(0.5)
        for process in reversed(self.processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture(scope="session")
def slurm():
    """A running Slurm; skips where its programs are not installed."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        pytest.skip(f"Slurm's {', '.join(absent)} not found; on Debian: {HINT}")
    pytest.importorskip("submitit", reason="pip install 'humanlike[slurm]'")
    folder = Path(tempfile.mkdtemp(prefix="humanlike-slurm-"))
    folder.chmod(0o755)
    cluster = Slurm(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
