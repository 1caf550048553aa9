"""The site's check of new templates, from the cluster file to the head's bundle and the planner."""

from cdk.bootstrap import head_values
from tests.cdk.test_bootstrap import AGENT, AT, SHARED, cluster_file
from tidegate.core.model.site_check import SiteCheck
from userdata.site_check import check_files

CHECK = {"script": "#!/bin/bash\ntrue\n", "user": "ci", "nodes": 2, "time_limit_s": 90}


def test_the_head_submits_what_the_file_says_in_a_partition_of_each_pool():
    file = cluster_file(rollout={"check": CHECK})

    files = check_files(head_values(file, SHARED, AGENT, "vol-1", agent_at=AT).check)

    pools = [each.name for each in file.cluster.pools]
    lines = [line.split() for line in files["check"].splitlines()]
    assert [line[0] for line in lines] == pools
    for pool, partition, *rest in lines:
        found = file.cluster.partition(partition)
        assert found is not None
        assert pool in found.pools
        assert rest == ["ci", "2", "90", "3600", "/etc/slurm/tidegate-check.sbatch"]
    assert files["check.sbatch"] == CHECK["script"]


def test_the_planner_knows_who_runs_it_where_and_for_how_long():
    some = {**CHECK, "pools": ["t4"], "script": "/shared/nccl.sbatch"}
    file = cluster_file(rollout={"check": some})

    assert file.cluster.check == SiteCheck("ci", 2, 90.0, 3600.0, ("t4",))
    values = head_values(file, SHARED, AGENT, "vol-1", agent_at=AT).check
    assert [line.split()[0] for line in check_files(values)["check"].splitlines()] == ["t4"]


def test_without_a_check_the_head_has_nothing_of_it():
    file = cluster_file()

    assert file.cluster.check is None
    assert check_files(head_values(file, SHARED, AGENT, "vol-1", agent_at=AT).check) == {}
