"""Of the nodes that boot a job takes those first that were bought for it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import launches
from tests.make import (
    A10G,
    NOW_S,
    T4,
    cluster,
    instance,
    job,
    node,
    offering,
    placement,
    pool,
    record,
    snapshot,
)
from tidegate.core.model.cluster import Limits
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.ledger import Launch, LaunchRecord, NodeRecord, Phase
from tidegate.core.model.plan import Plan
from tidegate.core.model.slurm import Job, Node
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

OF = cluster(pool("mixed", (T4, A10G)))
ANY = job(1, gpu_type="", priority=9)
ON_T4 = job(2, gpu_type="t4")


def boots(name: str, on: InstanceType, *job_ids: str) -> NodeRecord:
    booting = record(name, offering(on), pool="mixed", phase=Phase.LAUNCHED)
    return replace(booting, for_jobs=job_ids)


def seen(jobs: list[Job], *records: NodeRecord, nodes: Sequence[Node] = ()) -> Plan:
    of_ec2 = [instance(each.instance_id, each.offering, pool="mixed") for each in records]
    return plan(snapshot(jobs, nodes, of=OF, instances=of_ec2, records=records))


def served(made: Plan) -> dict[str, tuple[str, ...]]:
    return {each.job_id: each.by for each in made.served}


def in_doubt(number: int, on: InstanceType, *job_ids: str) -> LaunchRecord:
    launch = Launch(
        f"5eed-0-{number}", "mixed", (offering(on),), 1, 1, job_ids, 2.0, "", "they wait"
    )
    return LaunchRecord(launch, NOW_S - 5, fleet_request(launch, "test", placement(OF)))


def test_a_job_that_could_use_any_node_leaves_that_of_another_alone() -> None:
    """Its own is the larger one: by size alone it would take that of the job which needs it."""
    made = seen([ANY, ON_T4], boots("i-1", T4, "2"), boots("i-2", A10G, "1"))

    assert served(made) == {"1": ("i-2",), "2": ("i-1",)}
    assert launches(made) == []


@pytest.mark.parametrize("first", [0, 1])
def test_so_it_is_where_nobody_knows_yet_what_ec2_gave(first: int) -> None:
    doubt = [in_doubt(first, T4, "2"), in_doubt(1 - first, A10G, "1")]

    assert launches(plan(snapshot([ANY, ON_T4], of=OF, launches=doubt))) == []


def test_tasks_beyond_its_own_nodes_take_the_others() -> None:
    three = replace(ANY, count=3)

    made = seen([three], boots("i-1", T4, "2"), boots("i-2", T4, "1"), boots("i-3", T4, "1"))

    assert served(made) == {"1": ("i-2", "i-3", "i-1")}


def test_a_node_that_does_not_do_for_the_job_any_more_is_not_its_own() -> None:
    larger = replace(ANY, shape=replace(ANY.shape, memory_mib=T4.memory_mib + 1))

    made = seen([larger], boots("i-1", T4, "1"), boots("i-2", A10G, "7"))

    assert served(made) == {"1": ("i-2",)}


def test_a_node_that_is_up_comes_before_its_own() -> None:
    """Slurm starts it there at once."""
    up = record("i-3", offering(A10G), pool="mixed")

    made = seen([ANY], up, boots("i-2", T4, "1"), nodes=[node("i-3", A10G)])

    assert served(made) == {"1": ("i-3",)}


@pytest.mark.parametrize("nodes", [2, 3])
def test_what_a_gang_holds_in_vain_is_waited_for_by_whom_it_was_bought_for(nodes: int) -> None:
    """Else it takes meanwhile what was bought for another, who is bought a new one."""
    records = [boots("i-1", T4, "2"), boots("i-2", A10G, "1")]
    gang = job(3, nodes=nodes, gpus=4, gpu_type="a10g", priority=10)
    of_ec2 = [instance(each.instance_id, each.offering, pool="mixed") for each in records]
    of = replace(OF, limits=Limits(nodes=3))

    made = plan(snapshot([gang, ANY, ON_T4], of=of, instances=of_ec2, records=records))

    if nodes == 3:
        assert served(made) == {"1": ("i-2",), "2": ("i-1",)}
        assert launches(made) == []
    else:  # the gang gets it, with a new one; there is room for no more
        assert served(made)["1"] == ("i-1",)
        assert [each.for_jobs for each in launches(made)] == [("3",)]
