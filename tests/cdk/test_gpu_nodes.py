"""Settings of GPUs, from the cluster file to nodes and to Slurm."""

import yaml

from cdk.bootstrap import SharedNames, node_values, slurm_values
from tests.cdk.made import ROOT, dev_file
from tidegate.wire.config import load_cluster, parse_cluster
from userdata.render import slurm_conf


def test_nodes_slurm_and_placeholders_agree_on_mig_and_mps():
    cluster = dev_file(limits={})
    mig = {"instance_types": ["p4d.24xlarge"], "gpu": {"mig": "1g.5gb"}, "limits": {}}
    cluster["pools"]["t4"] |= mig
    cluster["pools"]["a10g"] |= {"gpu": {"mps": "true"}}
    file = parse_cluster(yaml.safe_dump(cluster), "test.yaml")
    names = SharedNames(munge_secret="arn:x", file_system_id="fs-1", bus="bus")

    pools = {pool.name: pool for pool in file.cluster.pools}
    cut, served = (node_values(file, names, pools[name]) for name in ("t4", "a10g"))
    conf = slurm_conf(slurm_values(file))

    assert [(shape.gpus, shape.gres) for shape in cut.shapes] == [(8, "gpu:a100_1g.5gb:56")]
    assert (cut.gpu.mig, served.gpu.mig) == ("1g.5gb", "")
    assert (served.gpu.has_mps, served.gpu.compute_mode) == (True, "EXCLUSIVE_PROCESS")
    assert "Gres=gpu:a100_1g.5gb:56 " in conf
    assert "TaskProlog=/etc/tidegate/task-prolog" in conf
    assert "TaskProlog" not in slurm_conf(slurm_values(load_cluster(ROOT / "clusters/dev.yaml")))
