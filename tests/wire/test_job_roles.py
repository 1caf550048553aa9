"""`job_role` in the cluster file: for the cluster, by pool, or for nobody."""

from pathlib import Path
from typing import Any

import pytest

from tests.wire.cluster_files import good, load, problems
from tidegate.wire.deployment import NEEDED_ENDPOINTS

ENFORCED = {"accounting": True, "settings": {"accountingstorageenforce": "Limits,qos"}}
ROLE = "arn:aws:iam::123456789012:role/research/jobs"


def test_a_pool_s_own_role_goes_before_the_cluster_s(tmp_path: Path) -> None:
    def roles(**change: Any) -> dict[str, Any]:
        return dict(load(tmp_path, good(change)).job_roles)

    own, vision = {"pools.t4.job_role": f"{ROLE}2"}, {"vision": f"{ROLE}3"}
    of_vision = {"slurm": ENFORCED, "job_role_by_account": {"Vision": f"{ROLE}3"}}
    assert roles() == {}
    assert roles(job_role=ROLE) == {"t4": {"": ROLE}}
    assert roles(**own) == {"t4": {"": f"{ROLE}2"}}
    assert roles(job_role=ROLE, **own) == {"t4": {"": f"{ROLE}2"}}
    assert roles(**of_vision) == {"t4": vision}
    assert roles(job_role=ROLE, **of_vision) == {"t4": {"": ROLE, **vision}}
    assert roles(job_role=ROLE, **own, **of_vision) == {"t4": {"": f"{ROLE}2"}}


@pytest.mark.parametrize(
    "slurm",
    [
        {},
        {"accounting": True},
        {"settings": {"AccountingStorageEnforce": "associations"}},
        {"accounting": True, "settings": {"AccountingStorageEnforce": "nojobs"}},
    ],
)
def test_whose_account_it_is_must_be_slurm_s_to_say(tmp_path: Path, slurm: dict[str, Any]) -> None:
    (said,) = problems(tmp_path, good({"slurm": slurm, "job_role_by_account": {"vision": ROLE}}))

    assert said.startswith("job_role_by_account needs a Slurm that lets nobody use an account of")


def test_containers_of_pyxis_and_what_needs_a_task_prolog_exclude_each_other(
    tmp_path: Path,
) -> None:
    pyxis = {"containers": "pyxis", "image": "ami-0a1b2c3d"}
    asked = good({**pyxis, "job_role": ROLE, "pools.t4.job_role": ROLE, "pools.t4.gpu.mps": True})

    places = [each.split()[0] for each in problems(tmp_path, asked) if "TaskProlog" in each]

    assert places == ["pools.t4.gpu.mps"]
    assert load(tmp_path, good({**pyxis, "job_role": ROLE})).job_roles


@pytest.mark.parametrize(
    "role", ["jobs", "arn:aws:iam::123456789012:user/ada", "arn:aws:iam::1:role/x", f"{ROLE} x"]
)
def test_what_is_no_role_s_arn_is_refused(tmp_path: Path, role: str) -> None:
    (said,) = problems(tmp_path, good({"job_role": role}))

    assert said.startswith("job_role must be an IAM role's ARN")


def test_where_there_is_no_way_out_sts_needs_one_of_its_own(tmp_path: Path) -> None:
    closed = {"job_role": ROLE, "network": {"endpoints": list(NEEDED_ENDPOINTS)}}
    opened = {"job_role": ROLE, "network": {"endpoints": [*NEEDED_ENDPOINTS, "sts"]}}

    (said,) = problems(tmp_path, good(closed))

    assert said == "network.endpoints without NAT also sts, by which job_role is assumed"
    assert load(tmp_path, good(opened)).job_roles
