"""The stage that waits for NVSwitch, fed with what nvidia-smi says of different GPUs."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

STAGE = Path(__file__).parents[2] / "userdata" / "node" / "fabric.sh"
# Of each GPU, the lines of `nvidia-smi -q` that name the fabric, with their indents.
OF_A_GPU = """\
GPU 00000000:{bus}:00.0
    Product Name                          : {product}
    Platform Info
        Module Id                         : 1
        GPU Fabric GUID                   : {guid}
    Inforom Version
        Image Version                     : G506.0210.00.04
    Clocks Event Reasons
        Active                            : Not Active
    Fabric
        State                             : {state}
        Status                            : {status}
        CliqueId                          : 0
    Processes                             : None
"""
A100, H100 = "NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3"


def said(*gpus: tuple[str, str, str]) -> str:
    return "".join(
        OF_A_GPU.format(
            bus=f"{number:02x}", guid="N/A", product=product, state=state, status=status
        )
        for number, (product, state, status) in enumerate(gpus)
    )


def is_complete(folder: Path, text: str, *, code: int = 0) -> bool:
    (folder / "said").write_text(text)
    commands = folder / "bin"
    commands.mkdir()
    (commands / "nvidia-smi").write_text(f"#!/bin/sh\ncat {folder}/said\nexit {code}\n")
    (commands / "nvidia-smi").chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail; source {STAGE}; if is_complete; then exit; fi; exit 1"],
        env={"PATH": f"{commands}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode == 0


@pytest.mark.parametrize(
    ("gpu", "is_ready"),
    [
        # bottlerocket pull request 3873: p4d.24xlarge with its fabric manager running.
        ((A100, "N/A", "N/A"), True),
        # NVIDIA/NVSentinel issue 883 and pull request 1382: the states of Hopper and newer.
        ((H100, "Completed", "Success"), True),
        ((H100, "Not Started", "N/A"), False),
        ((H100, "In Progress", "N/A"), False),
        ((H100, "Completed", "Insufficient Resources"), False),
    ],
)
def test_a_fabric_is_ready_when_each_gpu_says_so_or_cannot_say(tmp_path: Path, gpu, is_ready):
    assert is_complete(tmp_path, said(gpu, gpu)) == is_ready


def test_one_gpu_that_has_not_joined_keeps_the_others(tmp_path: Path):
    joined = (H100, "Completed", "Success")

    assert not is_complete(tmp_path, said(joined, (H100, "In Progress", "N/A"), joined))


def test_a_driver_that_knows_no_fabric_leaves_the_unit_to_ask(tmp_path: Path):
    assert is_complete(tmp_path, "GPU 00000000:00:10.0\n    Product Name   : Tesla V100\n")


def test_an_nvidia_smi_that_fails_says_nothing_good(tmp_path: Path):
    assert not is_complete(tmp_path, "", code=9)


@pytest.mark.parametrize(
    ("layout", "links", "says"),
    [
        ("", "25 GB/s", ""),
        ("", "<inactive>", "a link of NVLink is inactive"),
        # NVIDIA's Fabric Manager guide, "Interoperability With MIG": those of an A100 are trained
        # off as long as it is cut.
        ("8=1g.5gb:7", "<inactive>", ""),
    ],
)
def test_only_gpus_that_reach_each_other_need_their_links(tmp_path: Path, layout, links, says):
    text = (STAGE.parent / "checks.sh").read_text()
    check = "check_fabric() {" + text.partition("check_fabric() {")[2].partition("\n}\n")[0] + "\n}"
    for name, does in (("nvidia-smi", f"echo '         Link 0: {links}'"), ("systemctl", "true")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)

    done = subprocess.run(
        ["bash", "-c", f"{check}\ncheck_fabric"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "FABRIC": "1", "LAYOUT": layout},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout.strip(), done.stderr) == (int(bool(says)), says, "")


def fabric_state(folder: Path, gpu, *, layout: str = "", code: int = 0):
    """What the check says beside the stages in `folder`, of an H100 that is well and of `gpu`."""
    text = (STAGE.parent / "checks.sh").read_text()
    _, begin, rest = text.partition("check_fabric_state() {")
    check = begin + rest.partition("\n}\n")[0] + "\n}"
    (folder / "said").write_text(said((H100, "Completed", "Success"), gpu))
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\ncat {folder}/said\nexit {code}\n")
    (folder / "nvidia-smi").chmod(0o755)
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {check}\ncheck_fabric_state"],
        cwd=folder,
        env={"PATH": f"{folder}:/usr/bin:/bin", "FABRIC": "1", "LAYOUT": layout},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("gpu", "layout", "code", "found"),
    [
        ((H100, "Completed", "Success"), "", 0, 0),
        # aws/eks-node-monitoring-agent issue 141: seen on P5 whose manager ran.
        ((H100, "Completed", "Unknown Error"), "", 0, 1),
        ((A100, "N/A", "N/A"), "", 0, 0),
        ((H100, "Completed", "Unknown Error"), "8=1g.10gb:7", 0, 0),
        ((H100, "Completed", "Unknown Error"), "", 9, 2),
        ((H100, "Completed", "Success"), "", 1, 2),
        ((H100, "Completed", "Success"), "", 3, 2),  # NVML: not supported
    ],
)
def test_gpus_that_have_left_their_fabric_are_found_later_too(
    tmp_path: Path, gpu, layout, code, found
):
    (tmp_path / "stages").mkdir()
    shutil.copy(STAGE, tmp_path / "stages")

    done = fabric_state(tmp_path, gpu, layout=layout, code=code)

    says = "a GPU says that its fabric is not complete" * (found == 1)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (found, says, "")


@pytest.mark.parametrize("stage", [None, "is_complete() {\n", "false\n"])
def test_a_stage_that_cannot_be_read_says_nothing_of_the_gpus(tmp_path: Path, stage: str | None):
    """A broken bundle drains no node: the check could not tell."""
    (tmp_path / "stages").mkdir()
    if stage is not None:
        (tmp_path / "stages" / STAGE.name).write_text(stage)

    done = fabric_state(tmp_path, (H100, "Completed", "Unknown Error"))

    assert (done.returncode, done.stdout) == (2, "")
