"""The site's check of new templates, from the cluster file to the head's bundle and the planner."""

from collections.abc import Mapping

from cdk.bootstrap import head_values
from tests.cdk.made import dev_file
from tests.cdk.test_bootstrap import AGENT, AT, SHARED, cluster_file
from tidegate.core.model.site_check import SiteCheck
from tidegate.wire.config import ClusterFile
from userdata.site_check import IDLE, PAIRS, TEMPLATES, check_files

IDLE_CHECK = {"script": "#!/bin/bash\ntrue\n", "user": "ci", "gpu_hours_per_day": 8}
CHECK = {"script": "#!/bin/bash\ntrue\n", "user": "ci", "nodes": 2, "time_limit_s": 90}


def files_of(file: ClusterFile) -> Mapping[str, str]:
    values = head_values(file, SHARED, AGENT, "vol-1", agent_at=AT)
    return check_files({TEMPLATES: values.check, IDLE: values.idle_check, PAIRS: values.pair_check})


def test_the_head_submits_what_the_file_says_in_a_partition_of_each_pool():
    file = cluster_file(rollout={"check": CHECK})

    files = files_of(file)

    pools = [each.name for each in file.cluster.pools]
    lines = [line.split() for line in files["check"].splitlines()]
    assert [line[0] for line in lines] == [f"check:{pool}" for pool in pools]
    for name, partition, *rest in lines:
        pool = name.removeprefix("check:")
        found = file.cluster.partition(partition)
        assert found is not None
        assert pool in found.pools
        assert rest == ["ci", "2", "90", "3600", "/etc/slurm/tidegate-check.sbatch"]
    assert files["check.sbatch"] == CHECK["script"]


def test_it_runs_in_the_first_partition_that_takes_it():
    short = {"pools": ["t4"], "max_time_s": 600, "max_nodes": 1}
    parts = {"early": short, **dev_file()["partitions"]}
    pair = {"script": "#!/bin/bash\nfalse\n", "time_limit_s": 120}
    check = {**IDLE_CHECK, "pools": ["t4"], "pair": pair}
    of = [{**check, "time_limit_s": limit_s} for limit_s in (900, 600)]

    files = [files_of(cluster_file(partitions=parts, idle_check=each)) for each in of]

    (long, of_two), (of_one, _) = (each["check"].splitlines() for each in files)

    assert of_one.split()[:2] == ["idle:t4", "early"]
    assert long.split()[1] == of_two.split()[1] != "early"


def test_the_planner_knows_who_runs_it_where_and_for_how_long():
    some = {**CHECK, "pools": ["t4"], "script": "/shared/nccl.sbatch"}
    file = cluster_file(rollout={"check": some})

    assert file.cluster.check == SiteCheck("ci", 2, 90.0, 3600.0, ("t4",))
    assert [line.split()[0] for line in files_of(file)["check"].splitlines()] == ["check:t4"]


def test_without_a_check_the_head_has_nothing_of_it():
    file = cluster_file()

    assert file.cluster.check is None
    assert files_of(file) == {}


def test_that_of_idle_nodes_is_for_pools_with_gpus_alone():
    file = cluster_file(idle_check={**IDLE_CHECK, "time_limit_s": 90})

    assert file.cluster.idle_check is not None
    assert "t4" in file.cluster.idle_check.pools
    lines = [line.split() for line in files_of(file)["check"].splitlines()]
    assert [line[0] for line in lines] == [f"idle:{p}" for p in file.cluster.idle_check.pools]
    assert lines[0][2:] == ["ci", "1", "90", "600", "/etc/slurm/tidegate-idle.sbatch"]


def test_that_of_pairs_has_two_nodes_a_script_and_a_time_of_its_own():
    pair = {"script": "#!/bin/bash\nfalse\n", "time_limit_s": 120}
    files = files_of(cluster_file(idle_check={**IDLE_CHECK, "pair": pair}))

    lines = [line.split() for line in files["check"].splitlines()]
    ours = [line for line in lines if line[0].startswith("pair:")]
    assert len(ours) == len(lines) / 2
    assert ours[0][2:] == ["ci", "2", "120", "600", "/etc/slurm/tidegate-pair.sbatch"]
    assert files["pair.sbatch"] == pair["script"]
