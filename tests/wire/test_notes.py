"""What `validate` tells of a file that is good, and that somebody may want to know."""

import pytest

from tests.wire.cluster_files import good, load


def test_pools_without_a_limit_of_their_own_are_told_of_the_clusters_together(tmp_path):
    small = {"limits.nodes": 64, "pools.t4.limits": {"gpus": 16}}

    (said,) = load(tmp_path, good({"limits.nodes": 64})).notes

    assert said == (
        "pools.t4: max_job_nodes is 16 when left out, and limits.nodes allows 64: Slurm refuses a"
        " job of more than 16; say max_job_nodes: 64, or 16 when that is meant"
    )
    assert load(tmp_path, good(small)).notes == ()


def test_an_own_network_over_that_of_docker_is_told_not_refused(tmp_path):
    (said,) = load(tmp_path, good({"network": {"cidr": "172.17.0.0/16"}})).notes

    assert said.startswith("network.cidr: 172.17.0.0/16 has addresses of Docker's own network")
    assert load(tmp_path, good({"network": {"cidr": "172.18.0.0/16"}})).notes == ()


@pytest.mark.parametrize(
    ("change", "is_told"),
    [
        ({}, True),
        ({"image": "ami-0a1b2c3d"}, False),
        ({"network.nat": "one"}, False),
        ({"network.proxy": {"url": "http://proxy.example:3128"}}, False),
        ({"network.endpoints": []}, False),
    ],
)
def test_packages_that_no_boot_can_fetch_are_told(tmp_path, change, is_told):
    needed = ["events", "secretsmanager", "sqs", "ssm", "ssmmessages"]
    loaded = load(tmp_path, good({"network": {"endpoints": needed}} | change))

    said = "lacks packages that each boot takes from Ubuntu's archive"
    assert any(said in each for each in loaded.notes) is is_told


@pytest.mark.parametrize("gpu", [{}, {"shards_per_gpu": 4}, {"mps_per_gpu": 100}])
def test_jobs_of_several_shared_gpus_are_told_of(tmp_path, gpu):
    words = "CR_Core_Memory,MULTIPLE_SHARING_GRES_PJ"
    settings = {"slurm.settings.SelectTypeParameters": words, "pools.t4.gpu": gpu}

    told = " ".join(load(tmp_path, good(settings)).notes)

    assert ("no node is bought for a job that asks for more than one GPU" in told) is bool(gpu)
    settings["slurm.settings.SelectTypeParameters"] = "CR_Core_Memory"
    assert load(tmp_path, good(settings)).notes == ()


@pytest.mark.parametrize("name", ["ConstrainDevices", "constrainramspace"])
def test_guards_of_cgroups_that_are_off_are_told(tmp_path, name):
    (said,) = load(tmp_path, good({"slurm.cgroup": {name: "no"}})).notes

    assert said.startswith(f"slurm.cgroup.{name} is no: ")
    assert load(tmp_path, good({"slurm.cgroup": {name: "yes"}})).notes == ()


def test_where_people_compile_for_other_nodes_they_are_told(tmp_path):
    arm = {"instance_type": "m7g.large"}

    (of_head,) = load(tmp_path, good({"head": arm})).notes
    (of_login,) = load(tmp_path, good({"login": arm})).notes

    assert of_head == (
        "pools.t4: nodes are x86_64, and the head arm64: programs that are compiled there do not"
        " run on these nodes; compile in jobs, on nodes of theirs"
    )
    assert "and login nodes arm64" in of_login
    assert load(tmp_path, good({"head": arm, "login": {"instance_type": "m6i.large"}})).notes == ()


def test_a_pool_that_waits_for_its_first_ultraserver_is_told(tmp_path):
    change: dict[str, object] = {
        "pools.t4.instance_types": ["p6e-gb200.36xlarge"],
        "pools.t4.capacity_types": ["capacity-block"],
        "head": {"instance_type": "m7g.large"},
    }
    block = {"id": "cr-0a1b2c3d", "kind": "capacity-block", "instance_type": "p6e-gb200.36xlarge"}
    times = {"starts_at": "2027-01-01T00:00:00Z", "ends_at": "2027-01-08T00:00:00Z"}
    held = {"reservations": [block | times | {"zone": "us-east-1a", "count": 18}]}

    (said,) = load(tmp_path, good(change)).notes

    assert said == (
        "pools.t4: no node comes before a Capacity Block of p6e-gb200.36xlarge stands in"
        " reservations; tidegate capacity shows what EC2 offers for its jobs, and buys it"
    )
    assert load(tmp_path, good(change | held)).notes == ()
