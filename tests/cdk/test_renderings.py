"""What the machines of both examples are told, as it is kept in tests/golden/rendered."""

import os

import pytest

from cdk.bootstrap import AgentNames, SharedNames, head_values, node_values
from local.boot.bundles import opened, stub_of
from tests.cdk.made import CLUSTERS, ROOT
from tests.userdata.test_render import MAX_STUB_BYTES
from tidegate.wire.config import load_cluster
from userdata.render import (
    BundleAt,
    head_bundle,
    head_parameter,
    head_user_data,
    node_user_data,
)

GOLDEN = ROOT / "tests" / "golden" / "rendered"
SHARED = SharedNames(munge_secret="munge-arn", file_system_id="fs-1", bus="bus")
AGENT = AgentNames(bucket="b", bus="bus", urgent_queue_url="http://u", routine_queue_url="http://r")
# Bundles and archives are known by hashes that change with each of their files.
AT = BundleAt("assets", "boot.tgz", "a" * 64)


def rendered(name: str) -> dict[str, str]:
    """Name -> text of all that differs between clusters."""
    file = load_cluster(CLUSTERS / f"{name}.yaml")
    head = head_values(file, SHARED, AGENT, "vol-1", agent_at=AT)
    bundle = opened(head_bundle(head))
    texts = {
        "slurm.conf": bundle["files/slurm.conf"],
        "cgroup.conf": bundle["files/cgroup.conf"],
        "head_parameter.sh": head_parameter(head, AT),
        "head_user_data.sh": head_user_data(head, f"/tidegate/{name}/head"),
    }
    for pool in file.cluster.pools:
        node = node_values(file, SHARED, pool)
        texts[f"{pool.name}_user_data.sh"] = node_user_data(node, AT)
    return texts


@pytest.mark.parametrize("name", ["dev", "research"])
def test_machines_of_the_examples_are_told_what_is_kept(name):
    texts = rendered(name)
    stubs = [stub_of(text) for file, text in texts.items() if file.endswith("user_data.sh")]
    assert max(len(stub.encode()) for stub in stubs) < MAX_STUB_BYTES
    made = "".join(f"==> {file} <==\n{text}\n" for file, text in sorted(texts.items()))
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("TIDEGATE_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(made)

    assert path.read_text() == made, "TIDEGATE_GOLDEN=write accepts the new text"
