"""What heads and nodes are told at their first boot: golden text, limits, no injection."""

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from local.boot.bundles import graph_of, opened, stub_of
from local.boot.values import A10GX4, AGENT, AT, HEAD, MUNGE, NODE, SHARED, SLURM
from tidegate.core.model.ec2 import GATE_TAG, POOL_TAG
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.rules import MAX_PLACEHOLDERS
from userdata.render import (
    MAX_PARAMETER_BYTES,
    MungeSecret,
    NodePool,
    NodeShape,
    Shared,
    SlurmConfValues,
    SlurmPartition,
    SlurmPool,
    head_bundle,
    head_parameter,
    head_user_data,
    node_bundle,
    node_user_data,
    slurm_conf,
)
from userdata.submit import SUBMIT

ROOT = Path(__file__).parent.parent.parent
GOLDEN = ROOT / "tests" / "golden"
STUBS = {"node": node_user_data(NODE, AT), "head": head_user_data(HEAD, "/tidegate/dev/head")}
# Tidegate's own bound; EC2 takes 16 KB.
MAX_STUB_BYTES = 2048
HOSTILE = ("a'b", 'a"b', "a\nb", "a b", "a;b", "a$(id)b", "a`id`b", "a|b", "a&b", "", "a\\b")


def assert_golden(name: str, text: str) -> None:
    """Equal to the golden file; TIDEGATE_GOLDEN=write makes the file from what is there now."""
    path = GOLDEN / name
    if os.environ.get("TIDEGATE_GOLDEN") == "write":
        path.write_text(text)
    assert path.read_text() == text, f"{name} differs; TIDEGATE_GOLDEN=write accepts the new text"


def shellcheck(*argv: str | Path, text: str | None = None) -> str:
    program = shutil.which("shellcheck")
    if not program:
        pytest.skip("shellcheck is not installed")
    done = subprocess.run([program, *argv], input=text, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("role", STUBS)
def test_user_data_is_the_golden_text(role):
    assert_golden(f"{role}_user_data.sh", STUBS[role])


def test_the_head_s_parameter_is_the_golden_text():
    assert_golden("head_parameter.sh", head_parameter(HEAD, AT))


@pytest.mark.parametrize(
    ("role", "bundle"),
    [("node", node_bundle()), ("image", node_bundle()), ("head", head_bundle(HEAD))],
)
def test_a_graph_is_the_golden_text(role, bundle):
    assert_golden(f"{role}_graph", opened(bundle)[f"graph.{role}"])


def test_slurm_conf_is_the_golden_text():
    assert_golden("slurm.conf", slurm_conf(SLURM))


def test_the_head_unpacks_the_slurm_conf_it_was_given():
    assert opened(head_bundle(HEAD))["files/slurm.conf"] == slurm_conf(SLURM)


@pytest.mark.parametrize("role", STUBS)
def test_the_stub_stays_below_2_kb(role):
    assert len(stub_of(STUBS[role]).encode()) < MAX_STUB_BYTES


def test_the_dead_man_s_command_is_one_that_systemd_run_leaves_as_it_is():
    (line,) = [each for each in STUBS["node"].splitlines() if each.startswith("/bin/sh -c")]

    assert ";" not in line  # it would become `\;`, and the node would never power off


def test_user_data_above_the_limit_is_refused():
    with pytest.raises(ValueError, match="EC2 takes 16383"):
        node_user_data(replace(NODE, bus="b" * 16000), AT)


def test_a_parameter_above_the_limit_is_refused():
    with pytest.raises(ValueError, match=f"SSM takes {MAX_PARAMETER_BYTES}"):
        head_parameter(replace(HEAD, agent_env=(("A", "b" * 4000),)), AT)


def test_a_pool_may_have_as_many_instance_types_as_slurm_may_have_placeholders():
    types = sorted(load_catalogue().values(), key=lambda row: -len(row.instance_type.name))
    shapes = tuple(
        NodeShape(each.instance_type.name, each.instance_type.vcpus, 100_000, 8, "gpu", 9)
        for each in types[:MAX_PLACEHOLDERS]
    )

    assert len(shapes) == MAX_PLACEHOLDERS
    assert node_user_data(replace(NODE, shapes=shapes), AT)  # or raises


@pytest.mark.parametrize("value", HOSTILE)
def test_values_that_could_add_shell_are_refused(value):
    makers = (
        lambda: replace(NODE, head_host=value),
        lambda: replace(NODE, cluster=value),
        lambda: NodeShape(value, 1, 1),
        lambda: replace(A10GX4, gpu_type=value),
        lambda: NodePool(value),
        lambda: NodePool("gpu", (value,)),
        lambda: MungeSecret(value),
        lambda: Shared(value),
        lambda: Shared("fs-1", directory=value),
        lambda: SlurmPool(value, (), ()),
        lambda: SlurmPartition(value, ("gpu",)),
        lambda: replace(SLURM, state_dir=value),
        lambda: replace(HEAD, agent_user=value),
        lambda: replace(HEAD, agent_env=((value, "x"),)),
    )
    for make in makers:
        with pytest.raises(ValueError, match=r"must|go together|fullmatch"):
            make()


@pytest.mark.parametrize("value", ["a'b", 'a"b', "a\nb", "a$(id)b", "a`id`b", "a\\b"])
def test_an_environment_value_cannot_leave_its_quotes(value):
    with pytest.raises(ValueError, match="agent_env A"):
        replace(HEAD, agent_env=(("A", value),))


def with_lines(where: str, *lines: tuple[str, str]) -> SlurmConfValues:
    """A cluster with these lines for slurm.conf (`settings`) or cgroup.conf (`cgroup`)."""
    return replace(SLURM, settings=lines) if where == "settings" else replace(SLURM, cgroup=lines)


@pytest.mark.parametrize("value", ["info\nSlurmUser=root", "info SlurmUser=root", "a#", "a\\", ""])
@pytest.mark.parametrize("where", ["settings", "cgroup"])
def test_a_setting_cannot_bring_another_one_along(where, value):
    with pytest.raises(ValueError, match=f"{where} SlurmdDebug: .* must match"):
        with_lines(where, ("SlurmdDebug", value))


@pytest.mark.parametrize(
    "key",
    [
        *("ClusterName", "slurmctldhost", "NODENAME", "StateSaveLocation", "AuthType"),
        *("Prolog", "Epilog", "RebootProgram"),
    ],
)
def test_settings_that_tidegate_writes_itself_are_refused(key):
    with pytest.raises(ValueError, match=f"settings {key}: must not be set"):
        replace(SLURM, settings=((key, "x"),))


def test_what_tasks_hear_of_is_not_replaced():
    """Without it a task with MIG finds no device, and none finds its role."""
    own = (("TaskProlog", "/site/task-prolog"),)

    with pytest.raises(ValueError, match="settings TaskProlog: "):
        replace(SLURM, settings=own, has_task_prolog=True)
    assert "TaskProlog=/site/task-prolog" in slurm_conf(replace(SLURM, settings=own))


def test_slurmctld_stays_configless():
    with pytest.raises(ValueError, match="must keep enable_configless"):
        replace(SLURM, settings=(("SlurmctldParameters", "idle_on_node_suspend"),))

    both = (("SlurmctldParameters", "enable_configless,idle_on_node_suspend"),)
    assert "\nSlurmctldParameters=enable_configless,idle_on_node_suspend\n" in slurm_conf(
        replace(SLURM, settings=both)
    )


def test_a_setting_takes_the_place_of_the_default_of_its_key():
    settings = (("proctracktype", "proctrack/linuxproc"), ("PriorityType", "priority/basic"))

    usual = slurm_conf(SLURM).splitlines()
    asked = slurm_conf(replace(SLURM, settings=settings)).splitlines()

    at = usual.index("ProctrackType=proctrack/cgroup")
    assert asked[at] == "proctracktype=proctrack/linuxproc"
    assert set(usual) - set(asked) == {"ProctrackType=proctrack/cgroup"}
    assert set(asked) - set(usual) == {"=".join(setting) for setting in settings}
    assert len(asked) == len(usual) + 1


def test_there_is_one_default_amount_of_memory():
    asked = slurm_conf(replace(SLURM, settings=(("DefMemPerNode", "1000"),)))

    assert re.findall(r"(?m)^DefMem.*", asked) == ["DefMemPerNode=1000"]


@pytest.mark.parametrize("where", ["settings", "cgroup"])
def test_a_setting_is_given_once(where):
    with pytest.raises(ValueError, match=f"{where} taskplugin: must be given once"):
        with_lines(where, ("TaskPlugin", "task/none"), ("taskplugin", "task/affinity"))


def test_a_cgroup_setting_takes_the_place_of_the_default_of_its_key():
    cgroup = (("cgroupplugin", "cgroup/v1"), ("AllowedRAMSpace", "95"))

    files = opened(head_bundle(replace(HEAD, slurm=replace(SLURM, cgroup=cgroup))))

    assert files["files/cgroup.conf"].split() == [
        *("cgroupplugin=cgroup/v1", "ConstrainCores=yes", "ConstrainRAMSpace=yes"),
        *("ConstrainDevices=yes", "AllowedRAMSpace=95"),
    ]


@pytest.mark.parametrize("has_estimate", [True, False])
def test_slurm_conf_names_the_script_of_submissions_where_the_head_has_it(has_estimate):
    slurm = replace(SLURM, has_estimate=has_estimate)

    files = opened(head_bundle(replace(HEAD, slurm=slurm)))

    assert ("JobSubmitPlugins=lua\n" in files["files/slurm.conf"]) is has_estimate
    assert (f"files/{SUBMIT}" in files) is has_estimate


def test_a_value_that_cloudformation_fills_in_later_is_taken():
    token = "${Token[TOKEN.42]}"

    text = node_user_data(replace(NODE, munge=MungeSecret(token), shared=Shared(token)), AT)

    assert f"MUNGE_SECRET='{token}'" in text


def test_partitions_name_only_pools_that_exist():
    with pytest.raises(ValueError, match="unknown pools"):
        replace(SLURM, partitions=(SlurmPartition("gpu", ("nope",)),))


def test_pools_share_the_placeholders_of_an_instance_type():
    lines = [line for line in slurm_conf(SLURM).splitlines() if "ph-g4dn-xlarge" in line]

    assert len(lines) == 1
    assert "[1-32]" in lines[0]
    assert "Feature=gpu,g4dn.xlarge,g4dn,spot,on-demand,team-ml,fast,cheap" in lines[0]


def test_the_node_table_has_room_for_placeholders_and_four_times_the_nodes():
    small, large = slurm_conf(SLURM), slurm_conf(replace(SLURM, max_nodes=1000))

    assert "MaxNodeCount=1024\n" in small
    assert "MaxNodeCount=4064\n" in large


def test_accounting_appears_only_when_asked_for():
    plain = slurm_conf(SLURM)
    asked = slurm_conf(replace(SLURM, accounting=True))

    assert "Accounting" not in plain
    assert "AccountingStorageHost=head\n" in asked
    assert "\nAccountingStorageTRES=gres/gpu\n" in asked
    # Else nobody knows what jobs used.
    assert "\nJobAcctGatherType=jobacct_gather/cgroup\n" in asked
    packages = {
        accounting: head_parameter(
            replace(HEAD, installs=True, slurm=replace(SLURM, accounting=accounting)), AT
        )
        for accounting in (False, True)
    }
    assert "mariadb-server" in packages[True]
    assert "mariadb-server" not in packages[False]


def test_nodes_read_the_tags_that_the_planner_writes():
    text = opened(node_bundle())["stages/shape.sh"]

    assert f"tags/instance/{POOL_TAG})" in text
    assert f"tags/instance/{GATE_TAG})" in text


def test_slurm_starts_only_behind_the_owner_rule_and_the_gate():
    node, head = graph_of(node_bundle(), "node"), graph_of(head_bundle(HEAD), "head")

    assert {"owner_rule", "munge", "health", "threads"} <= all_needs(node, "slurmd")
    assert {"owner_rule", "munge", "config"} <= all_needs(head, "slurmctld")
    assert "owner_rule" in all_needs(node, "munge") & all_needs(head, "munge")


def test_what_happens_at_a_later_boot_waits_for_nothing_of_slurm():
    assert graph_of(node_bundle(), "node")["early"] == ()
    assert graph_of(head_bundle(HEAD), "head")["update"] == ("identity",)


def all_needs(graph: dict[str, tuple[str, ...]], name: str) -> set[str]:
    own = set(graph[name])
    return own.union(*(all_needs(graph, need) for need in own))


def test_the_head_knows_its_agent_by_its_hash():
    told = head_parameter(HEAD, AT)

    assert f"\nAGENT_SHA256={AGENT.sha256}\n" in told
    assert f"\nAGENT={AGENT.bucket}/{AGENT.key}\n" in told


def test_lustre_s_client_is_brought_where_something_of_it_is_mounted():
    shared = replace(SHARED, lustre=(("fs-1@tcp:/fsx", "/fsx", ""),))
    head = replace(HEAD, shared=shared, installs=True)
    node = replace(NODE, shared=shared, installs=True)

    for told in (head_parameter(head, AT), node_user_data(node, AT)):
        assert re.search(r"^PROGRAMS=.* mount\.lustre'?$", told, re.MULTILINE)
        assert "lustre-client-utils lustre-client-modules" in told
        assert "\nLUSTRE_URL=https://fsx-lustre-client-repo.s3.amazonaws.com/ubuntu\n" in told
    assert "LUSTRE_URL" not in head_parameter(HEAD, AT)


@pytest.mark.parametrize("role", STUBS)
def test_rendered_scripts_are_clean(role):
    assert shellcheck("--exclude=SC1090", "-", text=STUBS[role]) == ""


def test_no_secret_is_in_what_a_machine_is_told():
    told = [*STUBS.values(), head_parameter(HEAD, AT)]
    for bundle in (node_bundle(), head_bundle(HEAD)):
        told += opened(bundle).values()
    text = "\n".join(told)

    assert MUNGE.secret_id in text
    assert SHARED.file_system_id in text
    assert not re.search(r"(?i)password|secret_access_key|BEGIN [A-Z ]*PRIVATE KEY", text)
    assert "set -x" not in text
