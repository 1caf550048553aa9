"""The stage that brings dcgm-exporter to an image, with stand-ins for what fetches and installs."""

import subprocess
from pathlib import Path

import pytest

from userdata.stages import BAKED_STAGES, NODE_STAGES

USERDATA = Path(__file__).parents[2] / "userdata"
STAGE = USERDATA / "node" / "dcgm.sh"
# The second has the profiler's module, which the panel of tensor cores needs.
PACKAGES = "datacenter-gpu-manager-exporter datacenter-gpu-manager-4-proprietary"
LIB = (USERDATA / "lib.sh").read_text().partition("# apt_get ")[2].partition("# link_pyxis")[0]
PUT = 'put_file() { mkdir -p "$RUN_DIR$(dirname "$1")"; cat >"$RUN_DIR$1"; }'


def run(folder: Path, machine: str, manager: str) -> tuple[list[str], Path]:
    """The calls of the stage on such a machine, and the folder of the files that it wrote."""
    commands = folder / "bin"
    commands.mkdir()
    stubs = {manager: "", "curl": "", "uname": f"echo {machine}"}
    if manager == "apt-get":
        stubs["sed"] = "echo 2404"  # /etc/os-release is this machine's
    for name, does in stubs.items():
        (commands / name).write_text(f'#!/bin/sh\necho {name} "$@" >>{folder}/calls\n{does}\n')
        (commands / name).chmod(0o755)
    for name in ("bash", "cat", "mkdir", "dirname", "grep"):
        (commands / name).symlink_to(f"/bin/{name}")
    text = STAGE.read_text().replace(" /etc/apt/sources", f" {folder}/root/etc/apt/sources")
    text = text.replace(f"put_file {folder}/root", "put_file ")
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"#{LIB}\n{PUT}\n{text}\ncheck || apply"],
        env={
            "PATH": str(commands),
            "RUN_DIR": str(folder / "root"),
        },
        check=True,
    )
    return (folder / "calls").read_text().splitlines(), folder / "root"


def test_an_image_has_it_and_no_boot_waits_for_it():
    assert "node/dcgm" in BAKED_STAGES
    assert "node/dcgm" not in NODE_STAGES


@pytest.mark.parametrize(("machine", "arch"), [("x86_64", "x86_64"), ("aarch64", "sbsa")])
def test_it_comes_from_nvidia_s_repository_whose_drivers_stay_out(
    tmp_path: Path, machine: str, arch: str
):
    calls, root = run(tmp_path, machine, "apt-get")

    repository = f"https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/{arch}"
    assert any(each.endswith(f"{repository}/3bf863cc.pub") for each in calls)
    source = (root / "etc/apt/sources.list.d/nvidia-cuda.list").read_text()
    assert source == f"deb [signed-by=/usr/share/keyrings/nvidia-cuda.asc] {repository}/ /\n"
    pins = (root / "etc/apt/preferences.d/nvidia-cuda").read_text().split("\n\n")
    host = "Pin: origin developer.download.nvidia.com"
    assert pins[0].splitlines() == ["Package: *", host, "Pin-Priority: -1"]
    assert pins[1].splitlines()[0] == "Package: datacenter-gpu-manager*"
    assert calls[-1].endswith(f" {PACKAGES}")


def test_an_image_that_has_the_repository_keeps_its_own_word(tmp_path: Path):
    """Apt ends at a second source of the same place with another key."""
    place = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/"
    there = tmp_path / "root/etc/apt/sources.list.d/cuda-ubuntu2404-x86_64.list"
    there.parent.mkdir(parents=True)
    there.write_text(f"deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] {place} /\n")

    calls, root = run(tmp_path, "x86_64", "apt-get")

    assert not (root / "etc/apt/sources.list.d/nvidia-cuda.list").exists()
    assert [each for each in calls if each.startswith("curl")] == []
    assert calls[-1].endswith(f" {PACKAGES}")


def test_amazon_linux_asks_the_repository_for_this_alone(tmp_path: Path):
    """It is named for one call, so that no update of the system finds drivers in it."""
    calls, root = run(tmp_path, "x86_64", "dnf")

    assert any("/amzn2023/x86_64/cuda-amzn2023.repo" in each for each in calls)
    assert f"reposdir={root}," in calls[-1]
    assert calls[-1].endswith(f" {PACKAGES}")


def test_nothing_is_done_where_it_is_there(tmp_path: Path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/dcgm-exporter").write_text("")
    (tmp_path / "bin/dcgm-exporter").chmod(0o755)
    asks = f"source {STAGE}; PATH={tmp_path}/bin; check"

    assert subprocess.run(["bash", "-c", asks], check=False).returncode == 0
