"""Numbers, dates and places that could be written but hardly be meant."""

from pathlib import Path
from typing import Any

import pytest

from tests.wire.cluster_files import good, load, problems

CONF = Path(__file__).parents[1] / "golden/slurm.conf"

RESERVATION = {
    "id": "cr-0a1b2c3d",
    "kind": "reserved",
    "instance_type": "g4dn.xlarge",
    "zone": "us-east-1a",
    "count": 2,
    "starts_at": "2027-01-01T11:30:00Z",
}


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("pools.t4.idle_s", 1e12, "pools.t4.idle_s must be 1-31,622,400, is 1000000000000"),
        ("pools.t4.idle_s", 0.001, "pools.t4.idle_s must be at least 1, is 0.001"),
        ("pools.t4.checkpoint_s", 1e12, "pools.t4.checkpoint_s must be 1-31,622,400"),
        ("pools.t4.min_nodes", 10**6, "pools.t4.min_nodes must be 0-10000, is 1000000"),
        ("pools.t4.gpu.power_limit_w", 10**5, "pools.t4.gpu.power_limit_w must be 50-3000"),
        ("pools.t4.gpu.clock_mhz", 1, "pools.t4.gpu.clock_mhz must be 100-5000, is 1"),
        ("limits.nodes", 10**30, "limits.nodes must be 1-10,000,000, is 1000"),
        ("budget.usd_per_month", 1e300, "budget.usd_per_month must be more than 0, at most 1,00"),
        ("prices_usd_per_hour.g4dn.xlarge", {"on-demand": 5260}, "more than 0, at most 2000"),
        ("prices_usd_per_hour.g4dn.xlarge", {"on-demand": 0.2, "spot": 0.5}, "are they swapped?"),
        ("hazards_per_hour.g4dn.xlarge", 1e9, "must be 0-60"),
        ("time_limit_ratio", 1e-9, "time_limit_ratio must be 0.001-1, is 1.0e-09"),
        ("traffic.nat_gb_per_node_hour", 1e12, "traffic.nat_gb_per_node_hour must be 0-1,500,000"),
        ("timings.spot_notice_s", 3600, "timings.spot_notice_s must be 1-120, is 3600"),
        ("timings.apply_lease_s", 0.1, "timings.apply_lease_s must be 10-900, is 0.1"),
        ("timings.digest_stale_s", 1e9, "timings.digest_stale_s must be 60-3600"),
        ("timings.order_ttl_s", 0.5, "timings.order_ttl_s must be 10-3600, is 0.5"),
        ("timings.describe_lag_s", 1e9, "timings.describe_lag_s must be 1-600"),
        ("timings.orphan_after_s", 1e12, "timings.orphan_after_s must be 900-86400"),
        ("pools.t4.zones", ["us-east-1z"], "must be an availability zone like us-east-1a"),
        ("alarm_email", "ops@example..org", "alarm_email must be an e-mail address"),
        ("shared_dir", "/opt/tidegate/x", "/opt/tidegate/x is Tidegate's own"),
    ],
)
def test_a_number_in_another_unit_or_with_a_digit_too_many_is_refused(
    tmp_path: Any, path: str, value: object, said: str
):
    data = good()
    *parents, last = path.replace("g4dn.xlarge", "TYPE").split(".")
    here = data
    for parent in parents:
        here = here.setdefault(parent, {})
    here[last.replace("TYPE", "g4dn.xlarge")] = value

    assert [line for line in problems(tmp_path, data) if said in line]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"starts_at": "1990-01-01T00:00:00Z"}, "starts_at must be between 2014 and 2099"),
        ({"ends_at": "9990-01-01T00:00:00Z"}, "ends_at must be between 2014 and 2099"),
        ({"ends_at": "2026-01-01T00:00:00Z"}, "ends_at must be later than starts_at"),
        (
            {"kind": "capacity-block", "ends_at": "2027-08-01T11:30:00Z"},
            "ends_at is too late: a Capacity Block lasts 183 days at most",
        ),
    ],
)
def test_dates_of_reservations_are_those_that_ec2_could_have(
    tmp_path: Any, change: dict[str, object], said: str
):
    kind = str(change.get("kind", "reserved"))
    data = good({"pools.t4.capacity_types": [kind, "spot"], "reservations": [RESERVATION | change]})

    assert [line for line in problems(tmp_path, data) if said in line]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("PriorityType", "priority/multi", "must be priority/multifactor or priority/basic"),
        ("PreemptMode", "REQUEUE,NOPE", "must be off or cancel or requeue or suspend or gang"),
        ("PreemptMode", "REQUEUE,GANG", ""),
        ("EnforcePartLimits", "maybe", "must be all or any or no"),
        ("EnforcePartLimits", "ALL", ""),
        ("SchedulerType", "backfill", ""),
        ("MaxJobCount", "0", "must be 1-4294967295, is 0: slurmctld would not start"),
        ("MaxArraySize", "0", ""),
        ("JobCompType", "jobcomp/filetxt", "slurmctld does not start where it cannot write"),
    ],
)
def test_words_that_slurmctld_would_end_at_are_refused(
    tmp_path: Path, key: str, value: str, said: str
) -> None:
    data = good({f"slurm.settings.{key}": value})

    if not said:
        assert load(tmp_path, data).slurm.settings[key] == value
        return
    assert [line for line in problems(tmp_path, data) if said in line]


@pytest.mark.parametrize("names", ["old[1-", "old]1[", "old[a-b]", "old[]"])
def test_a_static_line_whose_names_are_no_list_is_refused(tmp_path: Path, names: str) -> None:
    lines = [
        f"NodeName={names} CPUs=8",
        "NodeName=new[01-16,20],gw1 CPUs=8",
        "NodeSet=ns Feature=x",
    ]

    (said,) = problems(tmp_path, good({"slurm.static": lines}))

    assert f"slurm.static[0] {names} is no list of names" in " ".join(said.split())


def test_a_subnet_is_in_one_zone(tmp_path: Path) -> None:
    subnets = dict.fromkeys(("us-east-1a", "us-east-1b"), "subnet-0a1b2c3d")
    data = good({"network": {"vpc": "vpc-0a1b2c3d", "subnets": subnets}})

    assert [line for line in problems(tmp_path, data) if "subnet-0a1b2c3d stands for two" in line]


def test_what_is_large_but_meant_is_taken(tmp_path: Any):
    year_s = 365 * 86400
    data = good({"pools.t4.idle_s": year_s, "limits.nodes": 5000, "limits.usd_per_hour": 90_000})

    assert load(tmp_path, data).cluster.pools[0].idle_s == year_s


@pytest.mark.parametrize("key", ["HealthCheckProgram", "healthcheckprogram"])
def test_a_site_s_own_health_check_is_told_to_run_tidegate_s_as_well(
    tmp_path: Path, key: str
) -> None:
    """Slurm runs one program: drains of `tidegate-health` would end without a word."""
    (said,) = load(tmp_path, good({f"slurm.settings.{key}": "/usr/sbin/nhc"})).notes

    assert said.startswith(f"slurm.settings.{key} takes the place of Tidegate's: ")
    program = said.split("have it run ")[1].split()[0]
    assert f"\nHealthCheckProgram={program}\n" in CONF.read_text()


def test_health_checks_that_never_run_are_told(tmp_path: Path) -> None:
    (said,) = load(tmp_path, good({"slurm.settings.HealthCheckInterval": "0"})).notes

    assert said == "slurm.settings.HealthCheckInterval is 0: Slurm never runs its health check"
    assert load(tmp_path, good({"slurm.settings.HealthCheckInterval": "60"})).notes == ()
