"""The Prolog that starts NVIDIA's IMEX service for a job, with stand-ins for Slurm and driver."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.doc_commands import ROOT

HOOK = ROOT / "docs/recipes/ultraservers/imex.sh"
ADDRESSES = {"i-1": "10.0.0.1", "i-2": "10.0.0.2"}


class Node:
    """A node of which the hook has run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.bin.mkdir()
        resolved = "; ".join(
            f'[[ $2 != {k} ]] || echo "{v} STREAM {k}"' for k, v in ADDRESSES.items()
        )
        self.stub("nvidia-imex-ctl", ":")
        self.stub("scontrol", "tr , '\\n' <<<\"$3\"")
        self.stub("getent", f"{resolved}; [[ $2 == i-[12] ]]")
        self.stub("mknod", f'echo "mknod $*" >>{folder}/calls; touch "$3"')
        self.stub("systemctl", f'echo "systemctl $*" >>{folder}/calls')
        (folder / "devices").write_text("195 nvidia\n234 nvidia-caps-imex-channels\n")

    def stub(self, name: str, text: str) -> None:
        (self.bin / name).write_text(f"#!/bin/bash\n{text}\n")
        (self.bin / name).chmod(0o755)

    def run(
        self, script: Path, argument: str = "", **told: str
    ) -> subprocess.CompletedProcess[str]:
        env = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "PROLOG_DIR": str(self.folder),
            "IMEX_NODES": str(self.folder / "nodes.cfg"),
            "IMEX_CHANNELS": str(self.folder / "channels"),
            "PROC_DEVICES": str(self.folder / "devices"),
            "SLURM_JOB_ID": "7",
        }
        asked = [str(script), *([argument] if argument else [])]
        return subprocess.run(asked, env=env | told, capture_output=True, text=True, check=False)

    def starts(
        self, nodes: str, shared: str = "NO", **told: str
    ) -> subprocess.CompletedProcess[str]:
        prolog = self.folder / "30-imex.sh"
        return self.run(prolog, SLURM_JOB_NODELIST=nodes, SLURM_JOB_OVERSUBSCRIBE=shared, **told)

    @property
    def calls(self) -> list[str]:
        told = self.folder / "calls"
        return told.read_text().splitlines() if told.exists() else []


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path)
    assert made.run(HOOK).returncode == 0
    return made


def test_a_job_of_several_nodes_of_its_own_has_the_service_over_all_of_them(node: Node) -> None:
    assert node.starts("i-1,i-2").returncode == 0

    assert (node.folder / "nodes.cfg").read_text() == "10.0.0.1\n10.0.0.2\n"
    channel = node.folder / "channels/channel0"
    assert node.calls == [f"mknod -m 666 {channel} c 234 0", "systemctl restart nvidia-imex"]


def test_where_slurm_gives_each_job_a_channel_none_is_made_for_all(node: Node) -> None:
    assert node.run(HOOK, argument="--slurm-channels").returncode == 0

    assert node.starts("i-1,i-2").returncode == 0

    assert node.calls == ["systemctl restart nvidia-imex"]


def test_a_channel_that_is_there_stays(node: Node) -> None:
    node.starts("i-1,i-2")
    node.starts("i-1,i-2")

    assert [each.split()[0] for each in node.calls] == ["mknod", "systemctl", "systemctl"]


@pytest.mark.parametrize(
    ("nodes", "shared"), [("i-1", "NO"), ("i-1,i-2", "OK"), ("i-1,i-2", "USER")]
)
def test_nothing_is_restarted_below_other_jobs(node: Node, nodes: str, shared: str) -> None:
    done = node.starts(nodes, shared)

    assert (done.returncode, node.calls) == (0, [])
    assert ("--exclusive" in done.stdout) == (shared != "NO")


@pytest.mark.parametrize(
    ("exclusive", "has_it"), [("NODE", True), ("TOPO", True), ("NO", False), ("USER", False)]
)
def test_from_26_05_on_slurm_says_by_another_word_whose_the_nodes_are(
    node: Node, exclusive: str, *, has_it: bool
) -> None:
    """There SLURM_JOB_OVERSUBSCRIBE is NO also of a job that others share the nodes with."""
    node.starts("i-1,i-2", SLURM_JOB_EXCLUSIVE=exclusive)

    assert ("systemctl restart nvidia-imex" in node.calls) is has_it


def test_a_node_without_an_address_fails_the_prolog_and_leaves_the_list(node: Node) -> None:
    """Slurm drains the node then, and requeues the job."""
    node.starts("i-1,i-2")

    done = node.starts("i-1,i-3")

    assert done.returncode == 1
    assert "node i-3 of job 7 has no address" in done.stderr
    assert (node.folder / "nodes.cfg").read_text() == "10.0.0.1\n10.0.0.2\n"


def test_a_driver_without_channels_fails_it(node: Node) -> None:
    (node.folder / "devices").write_text("195 nvidia\n")

    done = node.starts("i-1,i-2")

    assert (done.returncode, node.calls) == (1, [])
    assert "the driver has no IMEX channels" in done.stderr


def test_the_hook_says_what_the_image_lacks(tmp_path: Path) -> None:
    made = Node(tmp_path)
    (made.bin / "nvidia-imex-ctl").unlink()

    done = made.run(HOOK)

    assert done.returncode == 1
    assert "the image has no nvidia-imex" in done.stderr
