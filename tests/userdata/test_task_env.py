"""What every task finds in its environment, as the stage writes it."""

import subprocess
from pathlib import Path

import pytest

STAGE = Path(__file__).parents[2] / "userdata" / "node" / "task_env.sh"


def environment(gpu_type: str = "a10g", *, efa: int) -> dict[str, str]:
    done = subprocess.run(
        ["bash", "-c", f"source {STAGE}; environment"],
        env={"EFA": str(efa), "JOB_ROLES": "", "GPU_TYPE": gpu_type},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


def starts(told: dict[str, str], *, reads_remotely: bool) -> bool:
    """Whether libfabric's EFA provider starts on such a device.

    Source: libfabric, prov/efa, efa_rdm_get_use_device_rdma: where the environment asks for RDMA
    and the device cannot read remotely, it ends the program.
    """
    asked = told.get("FI_EFA_USE_DEVICE_RDMA", "0").lower() in ("1", "true", "yes", "on")
    return reads_remotely or not asked


@pytest.mark.parametrize(
    ("gpu_type", "reads_remotely"),
    [
        *((each, False) for each in ("t4", "a10g", "v100", "inferentia", "-")),
        *((each, True) for each in ("a100", "a100_3g.20gb", "h100", "trainium")),
    ],
)
def test_programs_start_on_every_device_of_efa(gpu_type: str, reads_remotely: bool) -> None:
    told = environment(gpu_type, efa=1)

    assert told["FI_PROVIDER"] == "efa"
    assert starts(told, reads_remotely=reads_remotely)


@pytest.mark.parametrize("gpu_type", ["a100", "trainium"])
def test_older_programs_use_what_the_device_of_a_p4d_or_trn_can(gpu_type: str) -> None:
    assert environment(gpu_type, efa=4)["FI_EFA_USE_DEVICE_RDMA"] == "1"


def test_nodes_without_efa_say_nothing_of_it() -> None:
    assert environment(efa=0) == {}
