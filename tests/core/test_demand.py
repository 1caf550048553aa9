"""Which pending jobs need capacity, in Slurm's own words, and what each then needs."""

from dataclasses import replace

import pytest

from tests.make import A10G, NOW_S, T4, T4_BIG, cluster, digest, job, node, pool
from tidegate.core.demand.demand import Need, demand
from tidegate.core.demand.held import holds
from tidegate.core.model.cluster import Cluster, SpendingBudget
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.slurm import Association, Job, Shape, Spread

# What squeue prints as the reason of a pending job, and whether more nodes would end it.
NEEDS = [
    "",
    "None",
    "Priority",
    "Resources",
    "PartitionConfig",
    "NodeDown",
    "SchedDefer",
    "ReqNodeNotAvail, May be reserved for other job",
    "ReqNodeNotAvail, UnavailableNodes:ph-[1-8]",
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
]
HELD = {
    "Dependency": "it waits for another job",
    "DependencyNeverSatisfied": "the job that it depends on can never end as it asks",
    "BeginTime": "its begin time has not come",
    "JobHeldUser": "it is held",
    "JobHeldAdmin": "an administrator holds it",
    "JobHoldMaxRequeue": "Slurm holds it: it was requeued too often",
    "job requeued in held state": "it was requeued and is held",
    "launch failed requeued held": "Slurm holds it: its launch failed",
    "JobArrayTaskLimit": "as many tasks of its array run, or were requeued, as its %limit allows",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is inactive",
    "PartitionNodeLimit": "it asks more nodes than its partition allows",
    "PartitionTimeLimit": "it asks more time than its partition allows",
    "Licenses": "it waits for licences",
    "ReservationDeleted": "its reservation was deleted",
    "RequiresReservation": "its partition takes jobs with a reservation only",
    "AssocGrpGRES": "it is over a limit of its account or association",
    "AssocMaxJobsLimit": "it is over a limit of its account or association",
    "AssociationResourceLimit": "it is over a limit of its account or association",
    "AccountNotAllowed": "its account may not use the partition",
    "AccountingPolicy": "an accounting policy holds it",
    "InvalidAccount": "its account is not valid",
    "InvalidQOS": "its QOS is not valid",
    "QOSMaxJobsPerUserLimit": "it is over a limit of its QOS",
    "QOSMinGRES": "it asks less than its QOS demands",
    "QOSNotAllowed": "its QOS may not use the partition",
    "QOSUsageThreshold": "its usage is above the threshold of its QOS",
    "MaxGRESPerAccount": "it is over a limit that its QOS sets for one account",
    "MaxMemPerLimit": "it asks more memory per CPU or node than its partition allows",
    "BadConstraints": "its constraints can never be met",
    "BurstBufferStageIn": "it waits for its burst buffer",
    "BlockMaxError": "it waits for a block of its machine",
    "Cleaning": "its last run is still being cleaned up",
    "Prolog": "its prolog runs",
    "DeadLine": "it cannot end before its deadline",
    "FedJobLock": "another cluster of its federation may start it",
    "FrontEndDown": "no front end is up",
    "NonZeroExitCode": "its last run failed",
    "SomethingNew": "Slurm says SomethingNew, which more nodes would not change",
}


def needs(*jobs: Job, on: Cluster | None = None, head_now_s: float = 0.0) -> list[Need]:
    found, _ = demand(digest(jobs).reading, on or cluster(), frozenset(), head_now_s)
    return list(found)


def waits(*jobs: Job, associations: tuple[Association, ...] = ()) -> dict[str, str]:
    """Why jobs wait that no node would help."""
    _, unmet = demand(digest(jobs, associations=associations).reading, cluster(), frozenset())
    return {each.job_id: each.reason for each in unmet}


@pytest.mark.parametrize("reason", NEEDS)
def test_a_reason_that_more_nodes_would_end_is_a_need(reason: str) -> None:
    assert [need.job_id for need in needs(job(1, reason=reason))] == ["1"]


@pytest.mark.parametrize("reason", HELD)
def test_any_other_reason_is_told_in_words(reason: str) -> None:
    assert waits(job(1, reason=reason)) == {"1": HELD[reason]}


def test_a_job_in_a_slurm_reservation_is_never_served_by_new_nodes() -> None:
    assert waits(job(1, reservation="maint")) == {
        "1": "it waits in the reservation maint, which new nodes never join"
    }


@pytest.mark.parametrize(("ahead_s", "is_need"), [(7200, False), (301, False), (300, True)])
@pytest.mark.parametrize("reason", ["BeginTime", *NEEDS])
def test_a_begin_time_within_the_boot_time_needs_its_node_now_whatever_slurm_says_yet(
    reason: str, ahead_s: float, is_need: bool
) -> None:
    waiting = job(1, reason=reason, begins_at_s=NOW_S + ahead_s)

    assert bool(needs(waiting, head_now_s=NOW_S)) == is_need


def test_what_holds_a_job_otherwise_goes_before_its_begin_time() -> None:
    waiting = job(1, reason="Dependency", begins_at_s=NOW_S + 1)

    assert not needs(waiting, head_now_s=NOW_S)


def test_a_begin_time_is_told_with_what_is_left_of_it() -> None:
    waiting = job(1, reason="BeginTime", begins_at_s=NOW_S + 7200)

    assert holds(waiting, 300.0, NOW_S) == "its begin time has not come: 2.0 h left"


def test_a_need_knows_which_budgets_would_pay() -> None:
    on = replace(
        cluster(), budgets={"account lab": SpendingBudget(1.0), "user ada": SpendingBudget(1.0)}
    )
    theirs = job(1, account="lab"), job(2, account="lab", user="bob"), job(3, user="bob")

    assert [each.payers for each in needs(*theirs, on=on)] == [
        ("account lab", "user ada"),
        ("account lab",),
        (),
    ]


def test_a_need_carries_what_its_cost_depends_on() -> None:
    asked = job(
        1,
        account="lab",
        qos="high",
        time_limit_s=3600.0,
        deadline_s=NOW_S + 9000,
        is_requeueable=False,
        comment="tidegate:ckpt=USR1@90",
        priority=7,
    )
    on = replace(cluster(), time_limit_ratio=0.5, time_limit_ratios={"lab": 0.25})

    [need] = needs(asked, on=on)

    assert (need.payers, need.qos, need.priority) == ((), "high", 7)
    assert (need.time_limit_s, need.expected_s, need.deadline_s) == (3600.0, 900.0, NOW_S + 9000)
    assert (need.is_requeueable, need.checkpoint_s) == (False, 0.0)


def test_a_job_without_a_checkpoint_leaves_its_cost_to_the_pool() -> None:
    [need] = needs(job(1, comment="nothing of ours"))

    assert (need.checkpoint_s, need.expected_s) == (None, None)


# -- how many nodes -----------------------------------------------------------------------


def gpus_in_all(gpus: int, *counts: int) -> Job:
    """`--gpus=N` without -N: one node with all of them, or `counts` nodes with fewer each."""
    spreads = tuple(Spread(n, Shape(-(-gpus // n), "t4", 1, 1000)) for n in counts)
    return job(1, gpus=gpus, spreads=spreads)


@pytest.mark.parametrize(
    ("asked", "nodes", "gpus"),
    [
        (gpus_in_all(4, 2, 4), 1, 4),
        (gpus_in_all(10, 2, 3), 3, 4),
        (gpus_in_all(8, 2, 4), 2, 4),
        (gpus_in_all(64, 2, 4), 1, 64),  # nobody has it: told with the fewest nodes
    ],
)
def test_gpus_of_all_nodes_together_take_the_fewest_nodes_that_can_be_had(
    asked: Job, nodes: int, gpus: int
) -> None:
    [need] = needs(asked, on=cluster(pool(types=(T4, T4_BIG))))

    assert (need.nodes, need.shape.gpus, need.is_gang) == (nodes, gpus, nodes > 1)


def test_a_spread_respects_the_constraint() -> None:
    asked = replace(gpus_in_all(4, 2, 4), constraint="g4dn.xlarge")

    [need] = needs(asked, on=cluster(pool(types=(T4, T4_BIG))))

    assert (need.nodes, need.shape.gpus) == (4, 1)


# -- constraints --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "planned"),
    [
        ("", ""),
        ("t4", "t4"),
        ("t4|a10g&spot", "spot&t4|a10g&spot"),
        ("a10g*2&spot", "a10g&spot"),
        ("(t4|a10g)&spot", "spot&t4|a10g&spot"),
        ("[a10g|t4]", "a10g"),
        ("[h100|t4]", "t4"),
        ("[h100|b200]", "h100"),
    ],
)
def test_a_constraint_is_planned_as_each_node_must_meet_it(constraint: str, planned: str) -> None:
    [need] = needs(job(1, gpus=0, gpu_type="", nodes=4, constraint=constraint))

    assert need.constraint == planned


@pytest.mark.parametrize(
    ("nodes", "constraint", "planned"),
    [
        (4, "[t4*2&a10g*2]", [(2, "t4"), (2, "a10g")]),
        (4, "[t4*1&a10g*2]&spot", [(1, "spot&t4"), (2, "a10g&spot"), (1, "spot")]),
        # Without -N Slurm starts it on as many nodes as are counted.
        (1, "[t4*1&a10g*2]", [(1, "t4"), (2, "a10g")]),
    ],
)
def test_kinds_of_nodes_are_needs_of_one_gang(
    nodes: int, constraint: str, planned: list[tuple[int, str]]
) -> None:
    found = needs(job(1, gpus=0, gpu_type="", nodes=nodes, constraint=constraint))

    assert [(need.nodes, need.constraint) for need in found] == planned
    assert {(need.job_id, need.gang_id, need.is_gang) for need in found} == {("1", "1", True)}


def test_tasks_are_spread_over_the_nodes_that_a_constraint_counts() -> None:
    spreads = (Spread(2, Shape(0, "", 4)), Spread(3, Shape(0, "", 3)), Spread(4, Shape(0, "", 2)))
    found = needs(job(1, gpus=0, gpu_type="", cpus=8, spreads=spreads, constraint="[t4*1&a10g*2]"))

    assert [(need.nodes, need.shape.cpus) for need in found] == [(1, 3), (2, 3)]


def test_all_nodes_that_a_constraint_counts_are_under_a_cap() -> None:
    cap = Association("account ml", tres="node", in_all=2)

    assert waits(job(1, constraint="[t4*1&a10g*2]"), associations=(cap,)) == {
        "1": "account ml allows 2 nodes in all, 0 are used or promised"
    }


def test_a_job_that_is_about_to_be_requeued_counts_as_requeued_once_more() -> None:
    """Or its new node is bought on spot, and another on demand a second later."""
    lost = replace(job(1, on=["i-1"]), restarts=1)

    (need,), _ = demand(digest([lost]).reading, cluster(), frozenset(["i-1"]))

    assert need.restarts == 2


def test_nothing_is_needed_for_a_lost_job_that_no_new_node_may_take_and_it_is_told_why() -> None:
    lost = job(1, on=["i-1"], reservation="lab")

    needs, (unmet,) = demand(digest([lost]).reading, cluster(), frozenset(["i-1"]))

    assert needs == ()
    assert (unmet.job_id, unmet.reason) == (
        "1",
        "it waits in the reservation lab, which new nodes never join",
    )


def test_of_a_lost_job_only_the_kinds_are_needed_that_it_lost() -> None:
    lost = job(1, nodes=3, constraint="[t4*1&a10g*2]", on=["i-1", "i-2", "i-3"])
    nodes = [
        replace(node("i-1"), features=("t4",)),
        replace(node("i-2"), features=("a10g",)),
        replace(node("i-3"), features=("a10g",)),
    ]
    reading = digest([lost], nodes).reading

    [found], _ = demand(reading, cluster(), frozenset({"i-2"}))

    assert (found.nodes, found.constraint, found.beside) == (1, "a10g", ("i-1", "i-3"))


# -- heterogeneous jobs -------------------------------------------------------------------

LEADER = job(7, het_job_id="7", priority=5)
FOLLOWER = job(8, het_job_id="7", gpu_type="a10g", gpus=4, priority=5)


def test_the_components_of_a_heterogeneous_job_are_one_gang() -> None:
    found = needs(job(9, priority=1), FOLLOWER, LEADER, job(1, priority=9))

    assert [(each.job_id, each.gang_id, each.is_gang) for each in found] == [
        ("1", "", False),
        ("8", "7", True),
        ("7", "7", True),
        ("9", "", False),
    ]


def test_what_stops_one_component_stops_all() -> None:
    held = replace(FOLLOWER, reason="JobHeldUser")

    assert waits(LEADER, held) == {"7": "it is held", "8": "it is held"}


def test_a_cap_stops_all_components_or_none() -> None:
    cap = Association("user ada", user="ada", in_all=4)
    said = "user ada allows 4 GPUs in all, 4 are used or promised"

    assert waits(LEADER, FOLLOWER, associations=(cap,)) == {"7": said, "8": said}


def test_neuron_devices_are_a_need_of_their_own() -> None:
    trn = InstanceType("trn1.2xlarge", 8, 32768, 1, "trainium", gres="neuron")
    shape = Shape(1, "", 1, 1000, gres="neuron")

    [need] = needs(replace(job(1), shape=shape), on=replace(cluster(), pools=()))

    assert (need.shape.gres, str(need.shape)) == (
        trn.gres,
        "1 neuron, 1 CPU, 1000 MiB per node",
    )
    assert A10G.gres == "gpu"
