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
        ("PreemptMode", "gang", ""),
        ("PreemptMode", "REQUEUE,GANG", "nothing says who goes before whom"),
        ("PreemptMode", "cluster,", ""),
        ("PreemptMode", "on,gang", "nothing says who goes before whom"),
        ("PreemptMode", "on", "nothing says who goes before whom"),
        ("PreemptMode", "gang,priority", "Slurm 23.11 knows no priority there"),
        ("PreemptType", "preempt/qos", "PreemptMode says no way"),
        ("PreemptType", "preempt/none", ""),
        ("SlurmdTimeout", "1", "must be 10 or more, is 1: a node that says nothing for so long"),
        ("SlurmdTimeout", "0", ""),
        ("SlurmdTimeout", "600", ""),
        ("SlurmdTimeout", "0x9", "must be 10 or more, is 0x9"),
        ("MessageTimeout", "1", ""),
        ("MessageTimeout", "0", "must be 1 or more, is 0: slurmctld answers nobody"),
        ("TCPTimeout", "0", ""),
        ("ResumeTimeout", "INFINITE", ""),
        ("BatchStartTimeout", "1K", "must be 0-65535, is 1K"),
        ("BatchStartTimeout", "09", "must be 0-65535, is 09"),
        ("MaxJobCount", "64K", ""),
        ("MaxJobCount", "0xffffffff0", "must be 1-4294967295"),
        ("MaxJobCount", "4194304K", "must be 1-4294967295"),
        ("DefMemPerCPU", "8388608k", ""),
        ("MaxStepCount", "0", "must be 1-4294967295"),
        ("FirstJobId", "0", "must be 1-4294967295"),
        ("PrologFlags", "Alloc,Contian", "must be alloc or contain or deferbatch"),
        ("PrologFlags", "X11,NoHold", ""),
        ("SlurmdDebug", "loud", "must be quiet or fatal"),
        ("SlurmdDebug", "debug2", ""),
        ("EnforcePartLimits", "maybe", "must be all or any or no"),
        ("EnforcePartLimits", "ALL", ""),
        ("AccountingStorageEnforce", "limit", "limit: Slurm knows no such word, slurmctld would"),
        ("AccountingStorageEnforce", "limit", "; did you mean limits?"),
        ("AccountingStorageEnforce", "Associations,NoSteps", ""),
        ("DebugFlags", "Backfill,gres", ""),
        ("DebugFlags", "Backfil", "backfil: Slurm knows no such word"),
        ("DebugFlags", "Metrics", "metrics: Slurm 23.11 does not know it, slurmctld would not"),
        ("DebugFlags", "TimeCray", ""),
        ("TaskPluginParam", "Autobind=threads,Cores", ""),
        ("TaskPluginParam", "autobind=thread", "autobind=thread: Slurm knows no such word"),
        ("TaskPluginParam", "cores,threads", "cores and threads: one of them alone, slurmctld"),
        ("TaskPluginParam", "OOMKillStep", "oomkillstep: Slurm 23.11 does not know it"),
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


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("SUSPEND,WITHIN", ""),
        ("on,priority", ""),
        ("requeue,priority", ""),
        ("suspend", "suspend needs gang beside it"),
        ("on", "suspend needs gang beside it"),
        ("priority,gang", "PreemptMode says no way"),
        ("cluster", "PreemptMode says no way"),
    ],
)
def test_preemption_is_refused_where_slurmctld_ends_at_it(
    tmp_path: Path, mode: str, said: str
) -> None:
    changes = {"version": "25.05", "settings": {"PreemptType": "preempt/qos", "PreemptMode": mode}}
    data = good({"slurm": changes, "image": "ami-0a1b2c3d", "head.image": "ami-0a1b2c3d"})

    if not said:
        assert load(tmp_path, data).slurm.settings["PreemptMode"] == mode
        return
    assert [line for line in problems(tmp_path, data) if said in line]


@pytest.mark.parametrize("value", ["95", "95.5", ".5", "5.", "1e2", "+12.5", "UNLIMITED"])
def test_a_number_of_cgroup_conf_may_be_written_as_slurm_takes_it(
    tmp_path: Path, value: str
) -> None:
    data = good({"slurm.cgroup.AllowedRAMSpace": value})

    assert load(tmp_path, data).slurm.cgroup["AllowedRAMSpace"] == value


@pytest.mark.parametrize("value", [".", "1e", "95%", "5.5.5", "all", "-1", "nan", "1e999"])
def test_what_is_no_number_there_is_refused(tmp_path: Path, value: str) -> None:
    (said,) = problems(tmp_path, good({"slurm.cgroup.AllowedRAMSpace": value}))

    assert f"slurm.cgroup.AllowedRAMSpace must be a number, is {value}" in said


@pytest.mark.parametrize("names", ["old[1-", "old]1[", "old[a-b]", "old[]"])
def test_a_static_line_whose_names_are_no_list_is_refused(tmp_path: Path, names: str) -> None:
    lines = [
        f"NodeName={names} CPUs=8",
        "NodeName=new[01-16,20],gw1 CPUs=8",
        "NodeSet=ns Feature=x",
    ]

    (said,) = problems(tmp_path, good({"slurm.static": lines}))

    assert f"slurm.static[0] {names} is no list of names" in " ".join(said.split())


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["NodeName=old1 Foo=3"], "Foo is nothing that a line of NodeName has"),
        (["NodeName=old1 RealMemry=3"], "did you mean RealMemory?"),
        (["PartitionName=old Nodes=old1 Foo=3"], "Foo is nothing that a line of PartitionName"),
        (["NodeName=old1 CPUs=many"], "CPUs must be 0-65535, is many"),
        (["NodeName=old1 CPUs=8K"], "CPUs must be 0-65535, is 8K"),
        (["NodeName=old1 CPUs=0x8 RealMemory=64K TmpDisk=1k Weight=Infinite"], ""),
        (["NodeName=old1 TmpDisk=4194304K"], "TmpDisk must be 0-4294967295"),
        (["NodeSet=ns Nodes=a", "NodeSet=ns Nodes=b", "NodeName=ns CPUs=8"], ""),  # 23.11's
        (["PartitionName=old Nodes=old1 Exclusive=NODE"], ""),
        (["PartitionName=old Nodes=old1 Default=maybe"], "Default must be yes or no, is maybe"),
        (["NodeName=old[1-3] CPUs=8", "NodeName=old[03,3],x CPUs=8"], "NodeName old3 is there twi"),
        (["NodeName=a,a CPUs=8"], "NodeName a is there twice"),
        (["PartitionName=x Nodes=a", "PartitionName=x Nodes=b"], "PartitionName x is there twice"),
        (["NodeName=a cpus=8 State=UNKNOWN", "PartitionName=a Nodes=a MaxTime=2-0"], ""),
        (["NodeName=DEFAULT CPUs=8", "NodeName=a", "NodeName=DEFAULT CPUs=9", "NodeName=b"], ""),
        (["NodeName=r[1-2]n[1-9] CPUs=8", "NodeName=r[1-2]n[1-9] CPUs=8"], ""),  # Slurm's to see
    ],
)
def test_static_lines_that_slurmctld_would_end_at_are_refused(
    tmp_path: Path, lines: list[str], said: str
) -> None:
    data = good({"slurm.static": lines})

    if not said:
        assert load(tmp_path, data).slurm.static == tuple(lines)
        return
    assert said in " ".join(" ".join(problems(tmp_path, data)).split())


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["NodeName=old[1-4] CPUs=8", "NodeSet=old3 Feature=x"], "NodeSet old3"),
        (["NodeName=t4 CPUs=8"], "NodeSet t4"),  # the pool's
        (["NodeName=old[1-4] CPUs=8", "NodeSet=old Feature=x"], ""),
    ],
)
def test_a_set_with_the_name_of_a_node_ends_newer_slurmctlds(
    tmp_path: Path, lines: list[str], said: str
) -> None:
    slurm = {"version": "24.11", "static": lines}
    data = good({"slurm": slurm, "image": "ami-0a1b2c3d", "head.image": "ami-0a1b2c3d"})

    if not said:
        load(tmp_path, data)
        return
    (told,) = problems(tmp_path, data)
    assert told.startswith(f"slurm.static {said} has the name of a node: slurmctld would not start")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("JobSubmitPlugins", "nope", "names nope, which no release of Slurm brings"),
        ("JobSubmitPlugins", "lau", "did you mean lua?"),
        ("JobSubmitPlugins", "throttle,,all_partitions,", ""),
        ("JobSubmitPlugins", "lua", "slurmctld does not start without /etc/slurm/job_submit.lua"),
        ("TaskPlugin", "task/cgroup,task/mine", "names task/mine, which no release"),
        ("PrologSlurmctld", "/opt/site/prolog", "which nothing in this file brings to the head"),
        ("PrologSlurmctld", "/shared/prolog", ""),
        ("MailProg", "/usr/bin/mail", ""),
        ("TaskEpilog", "/opt/site/epilog", "which nothing in this file brings to nodes"),
        ("SlurmdTimeout", "0", "keeps its jobs, with 0 for ever"),
        ("SlurmdTimeout", "900", "a dead node of which EC2 says nothing"),
        ("SlurmdTimeout", "300", ""),
        ("SlurmdTimeout", "0x78", ""),
        ("ResumeTimeout", "30", "a node that takes longer to reboot is DOWN; say 60 or more"),
        ("PrologEpilogTimeout", "5", "say 10 or more unless that is meant"),
        ("MessageTimeout", "1", "say 5 or more"),
        ("TCPTimeout", "0", "say 1 or more"),
        ("BatchStartTimeout", "0", "say 5 or more"),
        ("MessageTimeout", "60", ""),
    ],
)
def test_what_a_site_may_mean_is_told_and_taken(
    tmp_path: Path, key: str, value: str, said: str
) -> None:
    told = " ".join(load(tmp_path, good({f"slurm.settings.{key}": value})).notes)

    assert (said in told) if said else key not in told


def test_what_a_hook_may_bring_is_not_told(tmp_path: Path) -> None:
    data = good({"slurm.settings.PrologSlurmctld": "/opt/site/prolog"})
    data["hooks"] = {"on_head_configured": [{"inline": "#!/bin/sh\nexit\n"}]}

    assert "PrologSlurmctld" not in " ".join(load(tmp_path, data).notes)


@pytest.mark.parametrize("port", [0, 65536, 99999])
def test_a_port_that_nobody_listens_on_is_refused(tmp_path: Path, port: int) -> None:
    directory = {"search_base": "dc=example,dc=com", "uris": [f"ldaps://ldap.example.com:{port}"]}
    hook = {"source": f"https://example.com:{port}/x", "sha256": "0" * 64}
    data = good({"directory": directory, "hooks": {"on_head_configured": [hook]}})

    said = " ".join(problems(tmp_path, data))

    assert "directory.uris[0]" in said
    assert "hooks.on_head_configured[0].source" in said
    directory["uris"] = ["ldaps://ldap.example.com:65535"]
    load(tmp_path, good({"directory": directory}))


@pytest.mark.parametrize(
    ("homes", "is_shared"),
    [("/home/%u", False), ("/sharedhome/%u", False), ("/shared/people/%u", True)],
)
def test_homes_of_a_directory_are_where_all_machines_have_them(
    tmp_path: Path, homes: str, is_shared: bool
) -> None:
    directory = {"search_base": "dc=example,dc=com", "uris": ["ldaps://ldap.example.com"]}
    data = good({"directory": {**directory, "options": {"override_homedir": homes}}})

    if is_shared:
        load(tmp_path, data)
        return
    (said,) = problems(tmp_path, data)
    assert "directory.options.override_homedir" in said
    assert f"{homes} is on each machine's own disk" in said
    assert "below /shared" in said


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
