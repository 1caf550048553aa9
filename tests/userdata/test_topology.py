"""Where a node says that it is in EC2's network: by what EC2 answers, or does not."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from local.boot.bundles import opened
from local.boot.values import HEAD, NODE, SLURM
from tests.userdata.test_slurmd import conf
from userdata.render import head_bundle, node_bundle
from userdata.slurm_conf import topology_conf

STAGE = Path(__file__).parents[2] / "userdata" / "node" / "topology.sh"
# As EC2's API reference shows it.
ANSWER = """<DescribeInstanceTopologyResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">
    <requestId>c0f1d2e3</requestId>
    <instanceSet>
        <item>
            <instanceId>i-1111111111example</instanceId>
            <instanceType>p5.48xlarge</instanceType>
            <groupName>ML-group</groupName>
            <networkNodeSet>
                <item>nn-1111111111example</item>
                <item>nn-2222222222example</item>
                <item>nn-3333333333example</item>
            </networkNodeSet>
            <zoneId>usw2-az2</zoneId>
            <availabilityZone>us-west-2a</availabilityZone>
        </item>
    </instanceSet>
</DescribeInstanceTopologyResponse>
"""
UPPER = "nn-1111111111example:nn-2222222222example:nn-3333333333example"
BLOCK = "<capacityBlockId>cb-00c0ffee</capacityBlockId><zoneId>"
EMPTY = "<instanceSet><item><networkNodeSet/></item></instanceSet>"
THROTTLED = "<Errors><Error><Code>RequestLimitExceeded</Code></Error></Errors>"
TRIES = 4


def told(folder: Path, *answers: str, types: str = "p4d.24xlarge p5.48xlarge") -> tuple[str, int]:
    """The place that slurmctld is told, and how often EC2 was asked; its last answer stays."""
    for number, answer in enumerate(answers):
        (folder / str(number)).write_text(answer)
    stubs = f"""
        imds() {{ echo us-west-2a; }}
        endpoint() {{ echo https://ec2; }}
        sleep() {{ :; }}
        put_fact() {{ echo "$2" >{folder}/place; }}
        signed() {{
            local count
            count=$(cat {folder}/count 2>/dev/null || echo 0)
            echo $((count + 1)) >{folder}/count
            ((count < {len(answers)})) || count={len(answers) - 1}
            [[ $* == *"InstanceId.1=i-0"* ]] && cat {folder}/$count
            [[ $(cat {folder}/$count) != *Error* ]]
        }}
        TOPOLOGY={types!r} INSTANCE_TYPE=p5.48xlarge INSTANCE_ID=i-0
        source {STAGE}
        check && exit 9
        apply
    """
    subprocess.run(["bash", "-euo", "pipefail", "-c", stubs], check=True, stdout=subprocess.DEVNULL)
    count = folder / "count"
    return (folder / "place").read_text().strip(), int(count.read_text()) if count.exists() else 0


def test_the_path_is_ec2_s_network_nodes_from_the_top_and_a_leaf_below_them(tmp_path: Path) -> None:
    assert told(tmp_path, ANSWER) == (
        f"default:all:us-west-2a:{UPPER}:nn-3333333333example-hosts",
        1,
    )


def test_instances_of_an_ultraserver_share_its_block(tmp_path: Path) -> None:
    place, _ = told(tmp_path, ANSWER.replace("<zoneId>", BLOCK))

    assert place == f"default:all:us-west-2a:{UPPER}:cb-00c0ffee"


def test_who_asks_too_often_or_too_early_asks_again(tmp_path: Path) -> None:
    place, asked = told(tmp_path, THROTTLED, EMPTY, ANSWER)

    assert (UPPER in place, asked) == (True, 3)


@pytest.mark.parametrize(
    "answer", [THROTTLED, EMPTY, "", "<html>a proxy's page</html>", "<item>nn-1</item>"]
)
def test_a_node_of_which_ec2_says_nothing_is_in_its_zone(tmp_path: Path, answer: str) -> None:
    assert told(tmp_path, answer) == ("default:all:us-west-2a:us-west-2a-unplaced", TRIES)


def test_nobody_asks_about_a_type_that_ec2_does_not_tell_of(tmp_path: Path) -> None:
    assert told(tmp_path, ANSWER, types="-") == ("default:all:us-west-2a:us-west-2a-unplaced", 0)


@pytest.mark.parametrize(
    ("release", "knows"),
    [("24.11.5", False), ("25.05.0", True), ("25.11.8", True), ("26.05.5", True)],
)
def test_slurmd_hears_the_word_topology_where_it_knows_it(
    tmp_path: Path, release: str, knows: bool
) -> None:
    code, line = conf(tmp_path, f"'slurm-wlm {release}'", PLACE="default:all:us-west-2a:a")

    assert code == 0
    assert (" Topology=default:all:us-west-2a:a" in line) is knows


def test_without_a_place_slurmd_says_nothing_of_it(tmp_path: Path) -> None:
    _, line = conf(tmp_path, "'slurm-wlm 26.05.5'")

    assert "Topology" not in line


def test_placeholders_and_nodes_of_others_are_below_the_same_top() -> None:
    static = ("NodeName=DEFAULT CPUs=2", "NodeName=rack[1-4,7],big1 CPUs=8", "PartitionName=old")

    text = topology_conf(replace(SLURM, static=static))

    top, leaf = text.splitlines()
    assert top == "SwitchName=all Switches=elsewhere"
    assert leaf.startswith("SwitchName=elsewhere Nodes=ph-")
    assert "ph-g4dn-xlarge-[1-32]," in leaf
    assert leaf.endswith(",rack[1-4,7],big1")


@pytest.mark.parametrize("has_topology", [True, False])
def test_the_head_has_the_plugin_and_its_file_together(has_topology: bool) -> None:
    files = opened(head_bundle(replace(HEAD, slurm=replace(SLURM, has_topology=has_topology))))

    assert ("\nTopologyPlugin=topology/tree\n" in files["files/slurm.conf"]) is has_topology
    assert ("files/topology.conf" in files) is has_topology


def test_every_node_s_bundle_has_the_stage() -> None:
    assert any("topology" in name for name in opened(node_bundle()))
    assert NODE.topology is None
