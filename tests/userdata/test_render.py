"""What heads and nodes are told at their first boot: golden text, limits, no injection."""

import base64
import gzip
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.userdata.values import A10GX4, HEAD, MUNGE, NODE, SHARED, SLURM, T4X1
from tidegate.core.ec2 import GATE_TAG, POOL_TAG
from userdata.render import (
    MAX_USER_DATA_BYTES,
    HeadValues,
    MungeSecret,
    NodePool,
    NodeShape,
    Shared,
    SlurmConfValues,
    SlurmPartition,
    SlurmPool,
    head_user_data,
    node_user_data,
    slurm_conf,
)

ROOT = Path(__file__).parent.parent.parent
GOLDEN = ROOT / "tests" / "golden"
SCRIPTS = sorted([*ROOT.glob("userdata/*/*.sh"), *ROOT.glob("local/*.sh")])
SHIMS = [ROOT / "local/bin/nvidia-smi", ROOT / "local/bin/mount.efs"]
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


def test_node_user_data_is_the_golden_text():
    assert_golden("node_user_data.sh", node_user_data(NODE))


def test_head_user_data_is_the_golden_text():
    # zlib's versions pack differently, so the packed slurm.conf stays out of it.
    assert_golden("head_user_data.sh", without_packed(head_user_data(HEAD)))


def test_slurm_conf_is_the_golden_text():
    assert_golden("slurm.conf", slurm_conf(SLURM))


def without_packed(text: str) -> str:
    return re.sub(r"('END_OF_SLURM_CONF_GZ'\n).*?(END_OF)", r"\1...\n\2", text, flags=re.DOTALL)


def test_the_head_unpacks_the_slurm_conf_it_was_given():
    text = head_user_data(HEAD)

    packed = re.search(r"'END_OF_SLURM_CONF_GZ'\n(.*?)END_OF", text, re.DOTALL)

    assert packed
    assert gzip.decompress(base64.b64decode(packed[1])).decode() == slurm_conf(SLURM)


def test_user_data_fits_into_ec2s_limit():
    assert len(node_user_data(NODE).encode()) < MAX_USER_DATA_BYTES
    assert len(head_user_data(HEAD).encode()) < MAX_USER_DATA_BYTES


def test_user_data_above_the_limit_is_refused():
    shapes = tuple(replace(T4X1, instance_type=f"g4dn.{n}xlarge") for n in range(400))

    with pytest.raises(ValueError, match="EC2 takes 16383"):
        node_user_data(replace(NODE, shapes=shapes))


def test_a_head_with_250_instance_types_still_fits():
    shapes = tuple(replace(T4X1, instance_type=f"g4dn.{n}xlarge") for n in range(250))
    pools = (replace(SLURM.pools[0], shapes=shapes), SLURM.pools[1])

    assert head_user_data(replace(HEAD, slurm=replace(SLURM, pools=pools)))


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
        lambda: replace(HEAD, agent_command=("agent", value)),
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
    "key", ["ClusterName", "slurmctldhost", "NODENAME", "StateSaveLocation", "Prolog", "AuthType"]
)
def test_settings_that_tidegate_writes_itself_are_refused(key):
    with pytest.raises(ValueError, match=f"settings {key}: must not be set"):
        replace(SLURM, settings=((key, "x"),))


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

    text = head_user_data(replace(HEAD, slurm=replace(SLURM, cgroup=cgroup)))

    found = re.search(r"'END_OF_CGROUP_CONF'\n(.*?)END_OF", text, re.DOTALL)
    assert found
    assert found[1].split() == [
        *("cgroupplugin=cgroup/v1", "ConstrainCores=yes", "ConstrainRAMSpace=yes"),
        *("ConstrainDevices=yes", "AllowedRAMSpace=95"),
    ]


def test_a_value_that_cloudformation_fills_in_later_is_taken():
    token = "${Token[TOKEN.42]}"

    text = node_user_data(replace(NODE, munge=MungeSecret(token), shared=Shared(token)))

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
    asked = slurm_conf(replace(SLURM, accounting_host="head"))

    assert "Accounting" not in plain
    assert "AccountingStorageHost=head\n" in asked


def test_nodes_read_the_tags_that_the_planner_writes():
    text = node_user_data(NODE)

    assert f"tags/instance/{POOL_TAG})" in text
    assert f"tags/instance/{GATE_TAG} " in text


def test_slurm_starts_only_behind_the_owner_rule_and_the_gate():
    node = node_user_data(NODE).splitlines()[-1].split()
    head = head_user_data(HEAD).splitlines()[-1].split()

    assert (
        node.index("owner_rule") < node.index("munge") < node.index("health") < node.index("slurmd")
    )
    assert head.index("owner_rule") < head.index("munge") < head.index("slurmctld")


def test_what_happens_at_a_later_boot_is_settled_before_anything_else():
    assert node_user_data(NODE).splitlines()[-1].startswith("run_stages reboot ")
    assert head_user_data(HEAD).splitlines()[-1].startswith("run_stages again ")


def test_the_head_starts_the_agent_of_its_image():
    text = head_user_data(HeadValues(slurm=SLURM, munge=MUNGE, shared=SHARED))

    assert "readonly AGENT_COMMAND=/opt/tidegate/bin/tidegate-agent\n" in text


@pytest.mark.parametrize("path", [*SCRIPTS, *SHIMS], ids=lambda path: path.name)
def test_every_script_is_clean_on_its_own(path):
    assert shellcheck(path) == ""


@pytest.mark.parametrize("text", [node_user_data(NODE), head_user_data(HEAD)], ids=["node", "head"])
def test_rendered_scripts_are_clean(text):
    assert shellcheck("-", text=text) == ""


def test_no_secret_is_in_user_data():
    both = node_user_data(NODE) + head_user_data(HEAD)

    assert MUNGE.secret_id in both
    assert SHARED.file_system_id in both
    assert not re.search(r"(?i)password|secret_access_key|BEGIN [A-Z ]*PRIVATE KEY", both)
    assert "set -x" not in both
