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
    MungeSecret,
    NodePool,
    NodeShape,
    Shared,
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


def test_a_configuration_line_stays_one_line():
    with pytest.raises(ValueError, match="extra"):
        replace(SLURM, extra=("SlurmdDebug=info\nSlurmUser=root",))


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


def test_accounting_and_extra_lines_appear_only_when_asked_for():
    plain = slurm_conf(SLURM)
    asked = slurm_conf(
        replace(SLURM, accounting_host="head", extra=("PriorityType=priority/basic",))
    )

    assert "Accounting" not in plain
    assert "AccountingStorageHost=head\n" in asked
    assert "\nPriorityType=priority/basic\n" in asked


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
