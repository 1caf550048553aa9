"""Pools of a cluster file: what they select, what they promise, what it costs."""

import pytest

from tests.wire.cluster_files import BESIDE, good, load, problems
from tidegate.core.model.cluster import DEFAULT_HAZARD_PER_HOUR, Limits, Rebalance, Reservation
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.errors import BadConfig
from tidegate.core.model.mig import profile
from tidegate.wire.compat_facts import load_compat

GIB_HOUR = 0.08 / 730
TRAFFIC = {"nat_gb_per_node_hour": 2, "zones_gb_per_node_hour": 3}


def selected(tmp_path, names=None, *requirements, more=None):
    """The instance types of a pool with these names and `key operator values` requirements."""
    change = {
        "pools.t4.instance_types": names,
        "pools.t4.max_job_nodes": 1,
        "pools.t4.requirements": [
            {"key": key, "operator": operator} | ({"values": values} if values else {})
            for key, operator, *values in map(str.split, requirements)
        ],
        **(more or {}),
    }
    return [each.name for each in load(tmp_path, good(change)).cluster.pools[0].instance_types]


def test_a_pattern_means_all_usable_types_from_small_to_large(tmp_path):
    assert selected(tmp_path, ["g6.*"])[:3] == ["g6.xlarge", "g6.2xlarge", "g6.4xlarge"]
    assert selected(tmp_path, ["p?d*.24xlarge"]) == [
        "p3dn.24xlarge",
        "p4d.24xlarge",
        "p4de.24xlarge",
    ]


def test_names_come_first_and_a_pattern_does_not_repeat_them(tmp_path):
    assert selected(tmp_path, ["g5.48xlarge", "g5.?xlarge"]) == [
        *("g5.48xlarge", "g5.2xlarge", "g5.4xlarge", "g5.8xlarge"),
    ]


@pytest.mark.parametrize(
    ("requirements", "types"),
    [
        (["gpu_model In h100", "gpus In 8"], ["p5.48xlarge"]),
        (["gpu_model In a100 h100", "gpus Gt 7"], ["p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge"]),
        (["gpu_memory_gib Gt 79", "efa Exists", "generation In 4"], ["p4de.24xlarge"]),
        (["family In g5", "gpus Gt 4"], ["g5.48xlarge"]),
        (["family In g4dn g5", "vcpus Lt 8"], ["g4dn.xlarge", "g5.xlarge"]),
        (["family In g6", "gpus NotIn 1", "memory_gib Lt 300"], ["g6.12xlarge"]),
        (["gpu_model In v100", "local_nvme_gib Exists"], ["p3dn.24xlarge"]),
        (["gpu_model In trainium"], ["trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge"]),
        (["family In g4dn", "efa NotIn true", "vcpus Lt 9"], ["g4dn.xlarge", "g4dn.2xlarge"]),
    ],
)
def test_all_requirements_hold_for_what_is_selected(tmp_path, requirements, types):
    assert selected(tmp_path, None, *requirements) == types


def test_requirements_alone_mean_no_burstable_types(tmp_path):
    assert "c5.large" in selected(tmp_path, None, "gpus Lt 1", "vcpus In 2", "memory_gib In 4")
    assert "t3.medium" not in selected(tmp_path, None, "gpus Lt 1", "vcpus In 2", "memory_gib In 4")
    assert selected(tmp_path, None, "family In t3", "vcpus Gt 7") == ["t3.2xlarge"]
    assert selected(tmp_path, ["t3.2xlarge"]) == ["t3.2xlarge"]


def test_names_and_requirements_together_mean_what_both_allow(tmp_path):
    assert selected(tmp_path, ["g5.*"], "gpus Gt 7") == ["g5.48xlarge"]


@pytest.mark.parametrize(
    ("names", "requirements", "types"),
    [
        (["g5g.?xlarge"], [], ["g5g.2xlarge", "g5g.4xlarge", "g5g.8xlarge"]),
        (None, ["arch In arm64", "gpus Gt 1"], ["g5g.16xlarge"]),
        (
            None,
            ["gpu_model In t4 t4g", "gpus Gt 1", "arch NotIn x86_64"],
            ["g5g.16xlarge"],
        ),
        # Who does not say which gets what programs are usually built for.
        (["g5*"], ["vcpus Lt 8"], ["g5.xlarge"]),
        (["c7g.large"], [], ["c7g.large"]),
    ],
)
def test_a_pool_is_of_the_usual_architecture_unless_it_says_another(
    tmp_path, names, requirements, types
):
    assert selected(tmp_path, names, *requirements) == types


def test_what_a_pattern_leaves_out_for_its_architecture_is_told(tmp_path):
    file = load(tmp_path, good({"pools.t4.instance_types": ["g5*.xlarge"]}))

    assert file.notes == (
        "pools.t4: left out g5g.xlarge, which is arm64: name it in a pool of its own, or "
        "`arch In arm64`",
    )


def test_a_type_without_gpus_can_be_had(tmp_path):
    assert selected(tmp_path, ["c7i.large"]) == ["c7i.large"]


def test_what_a_pattern_means_but_cannot_have_is_told(tmp_path):
    loaded = load(tmp_path, good({"pools.t4.instance_types": ["g6*.2xlarge"]}))

    assert [each.name for each in loaded.cluster.pools[0].instance_types] == [
        *("g6.2xlarge", "g6e.2xlarge"),
    ]
    assert loaded.notes == (
        "pools.t4: left out g6f.2xlarge has a fraction of a GPU (l4-6gb): a pool has it by name",
    )


def test_a_fraction_of_a_gpu_is_a_device_of_its_own_type_and_had_by_its_name_alone(tmp_path):
    names = ["g6f.large", "g6f.2xlarge", "gr6f.4xlarge"]
    found = load(tmp_path, good({"pools.t4.instance_types": names})).cluster.pools[0].instance_types

    assert [(each.gpus, each.gpu_type) for each in found] == [
        (1, "l4-3gb"),
        (1, "l4-6gb"),
        (1, "l4-12gb"),
    ]
    by_family = selected(tmp_path, None, "family In g6 g6f gr6f")
    assert "g6.xlarge" in by_family
    assert not any("6f." in name for name in by_family)


def test_with_profiles_each_node_has_a_layout_of_its_own(tmp_path):
    settings = {"mig_profiles": ["3g.20gb", "1g.5gb"]}
    change = {"pools.t4.instance_types": ["p4d.24xlarge"], "pools.t4.gpu": settings}

    (cut,) = load(tmp_path, good(change)).cluster.pools[0].instance_types

    assert (cut.gpus, cut.gpu_type) == (8, "a100")
    assert [(each.gpu_type, each.most) for each in cut.profiles] == [
        ("a100_3g.20gb", 2),
        ("a100_1g.5gb", 7),
    ]


def test_every_plain_profile_that_the_facts_know_has_a_place(tmp_path):
    """Of each GPU that can be cut; what has no place would be left out in silence."""
    for name, facts in load_compat()["gpus"].items():
        for profile_name, most in (facts["mig"] or {}).get("profiles", {}).items():
            is_plain = profile_name.endswith("gb")
            made = profile(profile_name, "x", most=most, slices=facts["mig"]["max"])
            assert bool(made) is is_plain, (name, profile_name)
            assert made is None or made.most == most


@pytest.mark.parametrize(
    ("profile", "devices", "gpu_type"),
    [
        ("1g.5gb", 56, "a100_1g.5gb"),
        ("3g.20gb", 16, "a100_3g.20gb"),
        ("1g.5gb+me", 8, "a100_1g.5gb.me"),
    ],
)
def test_with_mig_each_instance_of_a_gpu_is_a_device(tmp_path, profile, devices, gpu_type):
    change = {"pools.t4.instance_types": ["p4d.24xlarge"], "pools.t4.gpu": {"mig": profile}}

    (cut,) = load(tmp_path, good(change)).cluster.pools[0].instance_types

    assert (cut.gpus, cut.gpu_type, cut.gres) == (devices, gpu_type, "gpu")


def test_a_pool_says_what_it_keeps_and_refuses(tmp_path):
    change = {
        "pools.t4.min_nodes": 2,
        "pools.t4.headroom_nodes": 1,
        "pools.t4.max_job_time_s": 3600,
        "pools.t4.flexibility": {"min_types": 3},
        "pools.t4.placement_group": "true",
        "pools.t4.boot_s": 200,
        "pools.t4.checkpoint_s": 600,
        "pools.t4.rebalance": "drain",
        "pools.t4.limits": {"vcpus": 64, "memory_gib": 256},
    }

    pool = load(tmp_path, good(change)).cluster.pools[0]

    assert (pool.min_nodes, pool.headroom_nodes, pool.max_job_time_s) == (2, 1, 3600.0)
    assert (pool.min_types, pool.is_min_types_strict, pool.placement_group) == (3, False, True)
    assert (pool.boot_s, pool.checkpoint_s) == (200.0, 600.0)
    assert pool.rebalance is Rebalance.DRAIN
    assert pool.limits == Limits(vcpus=64, memory_mib=256 * 1024)


def test_a_pool_may_keep_as_many_nodes_as_its_limit_allows(tmp_path):
    change = {"pools.t4.min_nodes": 2, "pools.t4.headroom_nodes": 2, "limits.nodes": 2}

    assert load(tmp_path, good(change)).cluster.pools[0].min_nodes == 2


def test_without_a_price_on_demand_is_the_list_price_and_spot_half_of_it(tmp_path):
    cluster = load(tmp_path, good({"prices_usd_per_hour": None})).cluster

    assert cluster.prices == {
        Offering("g4dn.xlarge", "us-east-1a", Market.SPOT): pytest.approx(0.263 + BESIDE, abs=1e-6),
        Offering("g4dn.xlarge", "us-east-1a", Market.ON_DEMAND): pytest.approx(
            0.526 + BESIDE, abs=1e-6
        ),
    }


def test_a_contract_takes_its_part_off_what_the_file_does_not_say(tmp_path):
    def usd(own):
        data = good({"prices_usd_per_hour": {"g4dn.xlarge": own}, "discount_percent": 10})
        cluster = load(tmp_path, data).cluster
        assert cluster.discount == pytest.approx(0.1)
        spot, on_demand = (
            Offering("g4dn.xlarge", "us-east-1a", each) for each in (Market.SPOT, Market.ON_DEMAND)
        )
        told = cluster.estimates.values()
        assert {each.on_demand_usd_per_hour for each in told} <= {own.get("on-demand", 0.526)}
        assert all(each.beside_usd_per_hour == pytest.approx(BESIDE, abs=1e-6) for each in told)
        return [cluster.prices[each] - BESIDE for each in (spot, on_demand)]

    assert usd({}) == pytest.approx([0.263 * 0.9, 0.526 * 0.9], abs=1e-6)
    assert usd({"spot": 0.2}) == pytest.approx([0.2, 0.526 * 0.9], abs=1e-6)
    assert usd({"on-demand": 0.4}) == pytest.approx([0.2, 0.4], abs=1e-6)


@pytest.mark.parametrize(
    ("change", "zone", "beside"),
    [
        ({}, "us-east-1a", 100 * GIB_HOUR + 0.005),
        ({"pools.t4.root_gib": 500}, "us-east-1a", 500 * GIB_HOUR + 0.005),
        (
            {"pools.t4.root_iops": 6000, "pools.t4.root_throughput_mib_s": 325},
            "us-east-1a",
            100 * GIB_HOUR + (3000 * 0.005 + 200 * 0.04) / 730 + 0.005,
        ),
        ({"network": {"nat": "one"}}, "us-east-1a", 100 * GIB_HOUR),
        ({"network": {"nat": "one"}, "traffic": TRAFFIC}, "us-east-1a", 100 * GIB_HOUR + 2 * 0.045),
        ({"traffic": TRAFFIC}, "us-east-1a", 100 * GIB_HOUR + 0.005),
        ({"traffic": TRAFFIC}, "us-east-1b", 100 * GIB_HOUR + 0.005 + 3 * 0.02),
    ],
    ids=[
        "disk and address",
        "large disk",
        "fast disk",
        "nat",
        "through nat",
        "head's zone",
        "between zones",
    ],
)
def test_a_node_costs_its_disk_address_and_traffic_beside_its_instance(
    tmp_path, change, zone, beside
):
    both = {"pools.t4.zones": ["us-east-1a", "us-east-1b"], **change}

    cluster = load(tmp_path, good(both)).cluster

    spot = cluster.prices[Offering("g4dn.xlarge", zone, Market.SPOT)]
    assert spot == pytest.approx(0.20 + beside, abs=1e-6)


def test_a_reservation_costs_nothing_where_it_is_and_is_offered_nowhere_else(tmp_path):
    held = {
        "id": "cr-0a1b2c3d",
        "kind": "capacity-block",
        "instance_type": "g4dn.xlarge",
        "zone": "us-east-1a",
        "count": 2,
        "starts_at": "2027-01-02T01:00:00+01:00",
        "ends_at": "2027-01-03T00:00:00Z",
    }
    change = {
        "pools.t4.zones": ["us-east-1a", "us-east-1b"],
        "pools.t4.capacity_types": ["capacity-block", "spot"],
        "reservations": [held],
    }

    cluster = load(tmp_path, good(change)).cluster

    block = Offering("g4dn.xlarge", "us-east-1a", Market.CAPACITY_BLOCK)
    assert [each for each in cluster.prices if each.market.is_prepaid] == [block]
    assert cluster.prices[block] == 0.0
    assert cluster.reservations == (
        Reservation(
            "cr-0a1b2c3d", "g4dn.xlarge", "us-east-1a", 2, block.market, 1798848000.0, 1798934400.0
        ),
    )


def test_what_an_open_reservation_held_has_a_price_when_that_ends(tmp_path):
    held = {
        "id": "cr-0a1b2c3d",
        "kind": "reserved",
        "instance_type": "g4dn.xlarge",
        "zone": "us-east-1a",
        "count": 2,
        "starts_at": "2027-01-02T01:00:00+01:00",
    }
    change = {"pools.t4.capacity_types": ["reserved"], "reservations": [held]}

    cluster = load(tmp_path, good(change)).cluster

    reserved, on_demand = (
        Offering("g4dn.xlarge", "us-east-1a", market)
        for market in (Market.RESERVED, Market.ON_DEMAND)
    )
    paid = pytest.approx(0.526 + BESIDE, abs=1e-6)
    assert cluster.prices == {reserved: 0.0, on_demand: paid}


def test_hazards_are_those_of_spot_and_the_default_is_stated(tmp_path):
    cluster = load(tmp_path, good({"hazards_per_hour": {"g4dn.xlarge": 0.01}})).cluster

    spot = Offering("g4dn.xlarge", "us-east-1a", Market.SPOT)
    on_demand = Offering("g4dn.xlarge", "us-east-1a", Market.ON_DEMAND)
    other = Offering("g5.xlarge", "us-east-1a", Market.SPOT)
    assert [cluster.hazard_per_hour(each) for each in (spot, on_demand, other)] == [
        *(0.01, 0.0, DEFAULT_HAZARD_PER_HOUR),
    ]


def test_a_job_runs_for_the_ratio_of_its_account_of_its_time_limit(tmp_path):
    change = {"time_limit_ratio": 0.5, "time_limit_ratio_by_account": {"lab": 0.25}}

    cluster = load(tmp_path, good(change)).cluster

    assert [cluster.expected_s(600.0, account) for account in ("lab", "other")] == [150.0, 300.0]
    assert cluster.expected_s(None, "lab") is None


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"root_gib": 10, "root_iops": 6000},
            "with root_gib 10 at most 5000, or root_gib at least 12",
        ),
        ({"root_throughput_mib_s": 1000}, "root_iops must be at least 4000"),
        ({"root_iops": 100_000}, "root_iops must be 3000-80000, is 100000"),
        ({"root_throughput_mib_s": 100}, "root_throughput_mib_s must be 125-2000, is 100"),
        ({"security_groups": ["sg-0a1b2c3d"]}, "security_groups needs network.vpc"),
        ({"security_groups": ["default"]}, "a security group's id like sg-0a1b2c3d"),
    ],
)
def test_what_ebs_or_ec2_would_refuse_is_refused(tmp_path, more, said):
    told = problems(tmp_path, good({f"pools.t4.{key}": value for key, value in more.items()}))

    assert any(said in line for line in told), told


GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/gpus"


def test_a_group_of_reservations_is_what_a_pool_takes_nodes_from(tmp_path):
    data = good({"partitions.gpu.pools": ["t4", "u4"], "reservation_groups": [GROUP]})
    data["pools"]["u4"] = {**data["pools"]["t4"], "capacity_types": ["reserved"]}

    cluster = load(tmp_path, data).cluster

    assert cluster.reservation_groups == (GROUP,)
    on_demand = Offering("g4dn.xlarge", "us-east-1a", Market.ON_DEMAND)
    assert cluster.prices[on_demand] > 0, "what EC2 bills when a reservation leaves the group"


@pytest.mark.parametrize(
    ("groups", "types", "words"),
    [
        (
            [GROUP.replace("us-east-1", "eu-west-1")],
            ["reserved"],
            "is of eu-west-1, but",
        ),
        (["gpus"], ["reserved"], "must be the ARN of a group of capacity reservations"),
        ([GROUP, GROUP], ["reserved"], "twice"),
        ([GROUP, GROUP.replace("12345", "54321")], ["reserved"], "has the name of reservation_gr"),
        ([GROUP], ["spot"], "no pool has the capacity type reserved"),
    ],
)
def test_a_group_that_cannot_be_meant_is_refused(tmp_path, groups, types, words):
    change = {"pools.t4.capacity_types": types, "reservation_groups": groups}

    with pytest.raises(BadConfig) as refused:
        load(tmp_path, good(change))

    assert words in str(refused.value), refused.value
