"""Which daemon of MPS a job has, and when it ends: prolog and epilog of a node, run by bash."""

import os
import subprocess
from pathlib import Path

import pytest

from local.waiting import eventually

STAGE = Path(__file__).parents[2] / "userdata" / "node" / "mps.sh"
ME, OTHER = os.getuid(), os.getuid() + 1
# A unit runs while its file is there; each start is a line of `started`. Its pipe is there at once.
SYSTEMD = """\
#!/bin/bash
cd "$UNITS" || exit
case "${0##*/} $*" in
    systemd-run*)
        all=$*
        unit=${all#*--unit=} unit=${unit%% *} pipes=${all#*PIPE_DIRECTORY=} pipes=${pipes%% *}
        user=${all#*--uid=} gpus=${all#*CUDA_VISIBLE_DEVICES=}
        [[ ! -e $unit && ! -e $pipes/control ]] || exit 1
        echo "${user%% *} ${gpus%% *}" >>../started
        touch "$unit" "$pipes/control"
        ;;
    *stop*) touch ../stopping; sleep "${STOPS_IN_S:-0}"; rm -f "${@: -1}" ;;
    *) [[ -e ${@: -1} ]] ;;
esac
"""


class Node:
    """A node with one or two GPUs whose jobs share them by gres/mps."""

    def __init__(self, folder: Path, gres: str) -> None:
        self._folder = folder
        for name in ("units", "bin", "run"):
            (folder / name).mkdir()
        (folder / "gres").write_text(f"Name=gpu Type=l4 File=/dev/nvidia[0-1]\n{gres}")
        for name in ("systemd-run", "systemctl"):
            self._command(name, SYSTEMD)
        self._command("install", '#!/bin/bash\nexec mkdir -p "${@: -1}"\n')

    def _command(self, name: str, text: str) -> None:
        file = self._folder / "bin" / name
        file.write_text(text)
        file.chmod(0o755)

    def start(self, script: str, job_id: int, **given: str) -> "subprocess.Popen[str]":
        """Slurm runs the script for a job."""
        text = subprocess.run(
            ["bash", "-c", f"source {STAGE}; {script}"], capture_output=True, text=True, check=True
        ).stdout
        text = text.replace("/etc/slurm/gres.node.conf", str(self._folder / "gres"))
        text = text.replace("/run/tidegate", str(self._folder / "run"))
        path = f"{self._folder / 'bin'}:{os.environ['PATH']}"
        env = {"PATH": path, "UNITS": str(self._folder / "units"), "SLURM_JOB_ID": str(job_id)}
        return subprocess.Popen(["bash", "-c", text], env=env | given, text=True)

    def begins(self, job_id: int, user: int, gpus: str = "0", mps: str = "50") -> None:
        given = {"SLURM_JOB_UID": str(user), "SLURM_JOB_GPUS": gpus}
        given |= {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": mps} if mps else {}
        assert self.start("prolog", job_id, **given).wait() == 0

    def ends(self, job_id: int) -> None:
        assert self.start("epilog", job_id).wait() == 0

    def daemon(self, job_id: int) -> str:
        """Whose the job's tasks are sent to, by the folder of its pipe; "": to none."""
        pipe = self._folder / "run" / "mps" / str(job_id) / "control"
        return pipe.parent.resolve().name if pipe.exists() else ""

    @property
    def started(self) -> list[str]:
        file = self._folder / "started"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def running(self) -> set[str]:
        units = (self._folder / "units").iterdir()
        return {each.name.removeprefix("tidegate-mps-") for each in units}

    def await_stop(self) -> None:
        """Until an epilog has told a daemon to end."""
        eventually("a daemon is told to end", (self._folder / "stopping").exists)

    def dies(self, name: str) -> None:
        (self._folder / "units" / f"tidegate-mps-{name}").unlink()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path, "Name=mps Count=200 Flags=all_sharing\n")


def test_jobs_of_a_user_share_the_daemon_of_a_gpu_which_ends_with_the_last(node: Node) -> None:
    node.begins(7, ME)
    node.begins(8, ME)
    node.ends(7)

    assert node.started == [f"{ME} 0"]
    assert (node.daemon(7), node.daemon(8)) == ("", f"{ME}-0")
    assert node.running == {f"{ME}-0"}

    node.ends(8)

    assert (node.daemon(8), node.running) == ("", set())


def test_each_user_has_a_daemon_on_each_gpu(node: Node) -> None:
    """One that served both would have the second wait for the end of the first."""
    node.begins(7, ME)
    node.begins(8, OTHER)
    node.begins(9, ME, gpus="1")

    assert node.started == [f"{ME} 0", f"{OTHER} 0", f"{ME} 1"]

    node.ends(7)

    assert node.running == {f"{OTHER}-0", f"{ME}-1"}


def test_a_job_with_a_whole_gpu_beside_them_has_none(node: Node) -> None:
    node.begins(7, ME, mps="")
    node.ends(7)

    assert node.started == []


def test_a_daemon_that_died_is_not_taken_for_one_that_hears(node: Node) -> None:
    node.begins(7, ME)
    node.dies(f"{ME}-0")
    node.begins(8, ME)

    assert node.started == [f"{ME} 0"] * 2
    assert node.daemon(8) == f"{ME}-0"


def test_a_job_that_begins_while_the_last_one_ends_keeps_its_daemon(node: Node) -> None:
    node.begins(7, ME)

    ending = node.start("epilog", 7, STOPS_IN_S="0.5")
    node.await_stop()
    node.begins(8, ME)
    ending.wait()

    assert node.daemon(8) == f"{ME}-0"
    assert node.running == {f"{ME}-0"}


def test_without_gres_mps_each_job_has_one_over_its_gpus(tmp_path: Path) -> None:
    node = Node(tmp_path, "")

    node.begins(7, ME, gpus="0,1", mps="")
    node.begins(8, ME, gpus="2", mps="")
    node.ends(7)

    assert node.started == [f"{ME} 0,1", f"{ME} 2"]
    assert (node.daemon(8), node.running) == ("8", {"8"})
