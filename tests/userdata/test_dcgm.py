"""The stage that brings parts of DCGM to an image, with stand-ins for apt and dnf."""

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


def run(
    folder: Path, machine: str, manager: str, *, dcgm: str = "exporter", driver: str = "580.65.06"
) -> tuple[list[str], Path]:
    """The calls of the stage on such a machine, and the folder of the files that it wrote."""
    commands = folder / "bin"
    commands.mkdir()
    stubs = {manager: "", "curl": "", "uname": f"echo {machine}"}
    stubs["modinfo"] = f"[ -n '{driver}' ] && echo {driver}"
    # /etc/os-release is this machine's.
    stubs["sed"] = 'case $* in *os-release) echo 2404 ;; *) exec /bin/sed "$@" ;; esac'
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
            "DCGM": dcgm,
            "PLUGINS": str(folder / "plugins"),
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
    asks = f"source {STAGE}; PATH={tmp_path}/bin; DCGM=exporter; check"

    assert subprocess.run(["bash", "-c", asks], check=False).returncode == 0


@pytest.mark.parametrize("manager", ["apt-get", "dnf"])
@pytest.mark.parametrize(
    ("dcgm", "driver", "packages"),
    [
        ("tests", "580.65.06", "cuda13"),
        ("tests", "595.10", "cuda13"),
        ("tests", "570.172.08", "cuda12"),
        ("tests volta", "580.65.06", "cuda13 cuda12"),
        ("tests volta", "570.172.08", "cuda12"),
    ],
)
def test_the_tests_are_those_of_the_driver_s_cuda_and_of_volta_s(
    tmp_path: Path, manager: str, dcgm: str, driver: str, packages: str
):
    """Else `dcgmi diag` finds no test to run. CUDA 13 has left Volta."""
    calls, _ = run(tmp_path, "x86_64", manager, dcgm=dcgm, driver=driver)

    asked = " ".join(f"datacenter-gpu-manager-4-{each}" for each in packages.split())
    assert calls[-1].split(" install ")[1].removeprefix("--no-install-recommends ") == asked


def test_both_may_be_asked_for(tmp_path: Path):
    calls, _ = run(tmp_path, "x86_64", "apt-get", dcgm="exporter tests")

    assert calls[-1].endswith(f" {PACKAGES} datacenter-gpu-manager-4-cuda13")


def test_an_image_without_a_driver_gets_no_tests_and_says_so(tmp_path: Path):
    with pytest.raises(subprocess.CalledProcessError):
        run(tmp_path, "x86_64", "apt-get", dcgm="tests", driver="")


@pytest.mark.parametrize(("has", "holds"), [((), False), (("cuda12",), False), (("cuda13",), True)])
def test_tests_are_there_when_those_of_the_driver_s_cuda_are(
    tmp_path: Path, has: tuple[str, ...], *, holds: bool
):
    for name in has:
        (tmp_path / "plugins" / name).mkdir(parents=True)
        (tmp_path / "plugins" / name / "libMemory.so").touch()
    asks = f"modinfo() {{ echo 580.65.06; }}; source {STAGE}; DCGM=tests; check"

    done = subprocess.run(["bash", "-c", asks], env={"PLUGINS": f"{tmp_path}/plugins"}, check=False)

    assert (done.returncode == 0) is holds
