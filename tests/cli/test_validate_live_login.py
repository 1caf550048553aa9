"""`tidegate validate --live` of login nodes: each kind is asked for, and told by its place."""

from tests.cli.region import ARM_IMAGE, LARGE_IMAGE, Region, names, region
from tests.contracts.conftest import cloud

__all__ = ["cloud", "names", "region"]


def test_each_kind_of_login_nodes_is_asked_for(region: Region) -> None:
    (zone, first), (other, second) = list(region.names.subnets.items())[:2]
    gone = "arn:aws:iam::aws:policy/gone"
    kinds = {
        "arm": {"image": ARM_IMAGE},
        "large": {"image": LARGE_IMAGE, "root_gib": 119},
        "rights": {"policies": [gone]},
        "there": {"zone": zone, "subnet": second},
    }
    network = {"vpc": region.names.vpc_id, "subnets": {zone: first}}

    told = region.told({"network": network, "pools.t4.zones": [zone], "login": {"kinds": kinds}})

    assert sorted(told) == [
        f"login.kinds.arm.image {ARM_IMAGE} is for arm64, what boots from it is x86_64",
        f"login.kinds.arm.image {ARM_IMAGE} is pending, not available",
        f"login.kinds.large.root_gib 119 GiB, the root volume of {LARGE_IMAGE} has 120: EC2 would"
        " refuse every launch",
        f"login.kinds.rights.policies[0] {gone} is not there",
        f"login.kinds.there.subnet {second} is in {other}",
    ]


def test_a_kind_without_an_image_of_its_own_has_the_head_s(region: Region) -> None:
    image = {"head.image": LARGE_IMAGE, "head.root_gib": 120}
    kinds = {"a": {"root_gib": 119}, "b": {"root_gib": 120}}

    (told,) = region.told({**image, "login": {"kinds": kinds}})

    assert told.startswith("login.kinds.a.root_gib 119 GiB, the root volume of")


def test_a_type_that_is_not_offered_is_told_by_its_kind(region: Region) -> None:
    told = region.told({"login": {"kinds": {"gpu": {"instance_type": "p4de.24xlarge"}}}})

    assert [each for each in told if each.startswith("login.kinds.gpu.instance_type p4de")]


def test_login_nodes_that_the_quota_does_not_let_start_are_told(region: Region) -> None:
    """The deployment would be rolled back as a whole."""
    quota = "Running On-Demand G and VT instances"
    region.quotas[quota] = 8.0
    gpu = {"instance_type": "g5.xlarge", "count": 3}

    told = region.told({"login": {"kinds": {"gpu": gpu, "fits": {**gpu, "count": 2}, "cpu": {}}}})

    assert [each for each in told if each.startswith("login.")] == [
        f"login.kinds.gpu.instance_type 12 vCPUs in all, the quota `{quota}` is 8: raise it"
    ]
