"""What a node with AWS's own accelerators tells Slurm of them."""

import os
import subprocess
from pathlib import Path

import pytest

from userdata.bundle import read


def gres_conf(folder: Path, accelerators: int) -> list[str]:
    """The node's own lines of gres.conf."""
    stage = read("node/gpu.sh").replace("/etc/slurm", str(folder))
    env = {"PATH": os.environ["PATH"], "GRES": "neuron", "GPU_TYPE": "trainium", "GPUS": "0"}
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{stage}\napply"],
        env=env | {"ACCELERATORS": str(accelerators), "LAYOUT": "", "SHARED": ""},
        check=True,
    )
    return (folder / "gres.node.conf").read_text().splitlines()


def registered(told: str, conf: list[str], neurons: int) -> str:
    """The GRES with which `slurmd -Z` comes, from 26.05 on: without a GPU in either it looks for
    some, and takes AWS's accelerators for GPUs (gpu/nrt).

    Source: Slurm 26.05, slurmd(8), -Z, "GPU detection occurs automatically".
    """
    is_off = "AutoDetect=off" in conf
    has_gpu = "gpu:" in told or any(line.startswith("Name=gpu ") for line in conf)
    return told if is_off or has_gpu else f"{told},gpu:trainium:{neurons}"


@pytest.mark.parametrize(
    ("accelerators", "files"), [(1, "/dev/neuron0"), (16, "/dev/neuron[0-15]")]
)
def test_accelerators_are_no_gpus_beside(tmp_path: Path, accelerators: int, files: str) -> None:
    told = f"neuron:trainium:{accelerators}"

    conf = gres_conf(tmp_path, accelerators)

    assert f"Name=neuron Type=trainium File={files}" in conf
    assert registered(told, conf, accelerators) == told
