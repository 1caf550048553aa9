"""Limits of accounting that Slurm does not show while no node is up."""

import pytest

from tests.make import digest, job
from tidegate.core.caps import Caps
from tidegate.core.slurm import Association, Job


def admitted(jobs: list[Job], *caps: Association) -> list[int]:
    """How many of each pending job may start, in this order."""
    counted = Caps(digest(jobs, associations=caps).reading)
    return [counted.admit(each)[0] for each in jobs if each.is_pending]


ACCOUNT = Association("account lab", account="lab", max_gpus=3, accounts_below=("vision",))
PER_USER = Association("qos normal", qos="normal", max_gpus_per_user=2)
PER_JOB = Association("qos normal", qos="normal", max_gpus_per_job=4)
TYPED = Association("account lab", account="lab", max_gpus=1, gpu_type="a10g")


@pytest.mark.parametrize(
    ("cap", "jobs", "expected"),
    [
        (ACCOUNT, [job(n, account="lab") for n in range(5)], [1, 1, 1, 0, 0]),
        (ACCOUNT, [job(1, account="lab", gpus=2), job(2, account="vision", gpus=2)], [1, 0]),
        (ACCOUNT, [job(1, account="other", gpus=8)], [1]),
        (ACCOUNT, [job(1, account="lab", on=["i-1"], gpus=2), job(2, account="lab", count=5)], [1]),
        (ACCOUNT, [job(1, account="lab", nodes=2, gpus=2)], [0]),
        (ACCOUNT, [job(1, account="lab", gpus=0, count=9)], [9]),
        (PER_USER, [job(n, qos="normal") for n in range(3)], [1, 1, 0]),
        (PER_JOB, [job(1, qos="normal", nodes=2, gpus=4), job(2, qos="normal", gpus=4)], [0, 1]),
        (TYPED, [job(1, account="lab", gpu_type="a10g", gpus=2)], [0]),
        (TYPED, [job(1, account="lab", gpu_type="t4", gpus=2)], [1]),
        (TYPED, [job(1, account="lab", gpu_type="", gpus=2)], [1]),
    ],
)
def test_a_cap_admits_as_many_as_slurm_will_start(
    cap: Association, jobs: list[Job], expected: list[int]
) -> None:
    assert admitted(jobs, cap) == expected


def test_the_tightest_of_several_caps_decides_and_is_named() -> None:
    wide = Association("account lab", account="lab", max_gpus=10)
    narrow = Association("user ada of account lab", account="lab", user="ada", max_gpus=1)

    caps = Caps(digest([], associations=[wide, narrow]).reading)

    assert caps.admit(job(1, account="lab", count=4)) == (
        1,
        "user ada of account lab allows 1 GPUs in all, 0 are used or promised",
    )
