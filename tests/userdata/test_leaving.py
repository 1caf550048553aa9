"""Partitions that may not leave slurm.conf yet."""

from userdata.head.leaving import MARK, merged

NOW = """ClusterName=dev
NodeSet=gpu Feature=gpu
NodeSet=old Feature=old
PartitionName=gpu Nodes=gpu Default=YES State=UP
PartitionName=old Nodes=old,gpu Default=NO State=UP
"""
NEW = """ClusterName=dev
NodeSet=gpu Feature=gpu
PartitionName=gpu Nodes=gpu Default=YES State=UP
"""


def test_a_partition_that_a_job_names_stays_drained_with_its_node_set():
    left = merged(NOW, NEW, "gpu old")

    assert (
        left
        == f"{NEW}NodeSet=old Feature=old\nPartitionName=old Nodes=old,gpu State=DRAIN {MARK}\n"
    )


def test_a_partition_that_no_job_names_goes():
    assert merged(NOW, NEW, "gpu") == NEW


def test_all_stay_while_nobody_can_say():
    assert "PartitionName=old" in merged(NOW, NEW, "-")


def test_a_partition_that_leaves_already_is_still_known():
    once = merged(NOW, NEW, "old")

    assert merged(once, NEW, "old") == once
    assert merged(once, NEW, "") == NEW


def test_the_first_slurm_conf_is_the_new_one():
    assert merged("", NEW, "-") == NEW
