"""`tidegate import pcluster`: nothing is bought that ParallelCluster would not buy."""

from tests.cli.pcluster.imported import PLACES, good, run


def test_no_spare_nodes_are_kept():
    file = good(run("whole.yaml", *PLACES))

    assert file.cluster.waiting.usd_per_job_hour == 0
