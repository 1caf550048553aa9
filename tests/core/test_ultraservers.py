"""UltraServers: gangs stay in one, larger ones take several, and all nodes leave in time."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import launches, why
from tests.make import NOW_S, T4, ZONE, cluster, digest, instance, job, node, pool, snapshot
from tidegate.core.model.cluster import Cluster, Pool, Reservation
from tidegate.core.model.ec2 import InstanceType, Market, Offering
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Send, Terminate
from tidegate.core.model.slurm import Job, Node
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.ultraservers import UltraServer, ultraservers_for
from tidegate.core.offers.reservations import active
from tidegate.core.passes.ultraservers import ENDS
from tidegate.core.planner import plan

HOUR_S, MINUTE_S = 3600.0, 60.0
GB200 = InstanceType(
    "p6e-gb200.36xlarge", vcpus=144, memory_mib=983040, gpus=4, gpu_type="gb200", arch="arm64"
)
ULTRA = Offering(GB200.name, ZONE, Market.CAPACITY_BLOCK)


def held(name: str, count: int, block: str = "", ends_in_s: float = 99 * HOUR_S) -> Reservation:
    times = NOW_S - HOUR_S, NOW_S + ends_in_s
    return Reservation(name, GB200.name, ZONE, count, ULTRA.market, *times, block=block)


def holding(*reservations: Reservation, beside: Sequence[Pool] = ()) -> Cluster:
    gb200 = pool("gb200", (GB200,), markets=(ULTRA.market,))
    of = cluster(*beside) if beside else cluster(pool(types=(T4,)))
    pools = (replace(gb200, max_job_nodes=64), *of.pools)
    partition = replace(of.partitions[0], pools=tuple(each.name for each in pools))
    prices = {**of.prices, ULTRA: 0.0}
    return replace(
        of, pools=pools, partitions=(partition,), prices=prices, reservations=reservations
    )


def gang(nodes: int, number: int = 1) -> Job:
    return job(
        number,
        nodes=nodes,
        gpus=4,
        gpu_type="gb200",
        time_limit_s=HOUR_S,
        priority=100 - number,
    )


def filled(seen: Snapshot) -> list[tuple[str, int]]:
    found = launches(plan(seen))
    return sorted((one.reservation or str(one.offerings[0].market), one.count) for one in found)


def of(reservations: Sequence[Reservation], *jobs: Job) -> list[tuple[str, int]]:
    return filled(snapshot(list(jobs), of=holding(*reservations)))


def up(name: str, reservation: str) -> tuple[Node, NodeRecord]:
    """An idle node, in this reservation by what its launch has named."""
    idle = replace(node(name, GB200), gpu_type=GB200.gpu_type)
    known = NodeRecord(
        name, "l-0", "gb200", ULTRA, NOW_S - 900, 0.0, Phase.JOINED, reservation=reservation
    )
    return idle, known


def beside(idle: Sequence[tuple[str, str]], *jobs: Job, of: Cluster) -> list[tuple[str, int]]:
    """What is launched beside idle nodes, each by its name and its reservation."""
    nodes, records = zip(*(up(*each) for each in idle), strict=True)
    shown = [
        replace(instance(each.instance_id, ULTRA, age_s=900), capacity_reservation_id=where)
        for each, (_, where) in zip(records, idle, strict=True)
    ]
    return filled(snapshot(jobs, nodes, of=of, instances=shown, records=records))


TWO = held("cr-1", 18, "cb-1"), held("cr-2", 18, "cb-2")


def test_a_gang_that_fits_into_one_ultraserver_is_launched_into_one() -> None:
    assert of(TWO, gang(18)) == [("cr-1", 18)]
    assert of(TWO, gang(12), gang(12, 2)) == [("cr-1", 12), ("cr-2", 12)]


def test_it_waits_rather_than_to_be_spread_over_two() -> None:
    """Its nodes would share no NVLink."""
    theirs = [
        NodeRecord(
            *(f"i-{n}", "l-0", "gb200", ULTRA, NOW_S - 9, 0.0, Phase.LAUNCHED, "0"),
            reservation=f"cr-{n % 2 + 1}",
        )
        for n in range(20)
    ]
    other = [instance(each.instance_id, ULTRA, age_s=9, pool="gb200") for each in theirs]

    wanted = [gang(20, number=0), gang(12)]
    made = plan(snapshot(wanted, of=holding(*TWO), instances=other, records=theirs))

    assert launches(made) == []
    assert "8 left and 12 are needed" in why(made)


def test_one_that_is_larger_than_an_ultraserver_takes_several_in_one_plan() -> None:
    assert of(TWO, gang(24)) == [("cr-1", 18), ("cr-2", 6)]
    assert of((*TWO, held("cr-3", 9, "cb-3")), gang(24)) == [("cr-1", 18), ("cr-2", 6)]
    assert of(TWO, gang(40)) == []


def test_all_its_parts_are_of_one_gang_each_whole_or_not_at_all() -> None:
    both = launches(plan(snapshot([gang(24)], of=holding(*TWO))))

    assert [(each.gated_for, each.count, each.min_count) for each in both] == [
        ("1", 18, 18),
        ("1", 6, 6),
    ]


def test_reservations_of_one_block_are_one_ultraserver() -> None:
    """Where EC2 has cut it into several, and no launch names more than one."""
    parts = held("cr-1", 10, "cb-1"), held("cr-2", 8, "cb-1"), held("cr-3", 16, "cb-2")

    assert of(parts, gang(17)) == [("cr-1", 9), ("cr-2", 8)]
    assert of(parts, gang(16)) == [("cr-3", 16)]


def test_one_that_is_over_is_none_that_a_gang_could_fit_into() -> None:
    """It may stand in the file for long, and the gang would wait for it for ever."""
    over = held("cr-1", 18, "cb-1", ends_in_s=-HOUR_S)
    small = held("cr-2", 9, "cb-2"), held("cr-3", 9, "cb-3")

    assert of((over, *small), gang(12)) == [("cr-2", 9), ("cr-3", 3)]


def test_where_ec2_says_no_block_each_reservation_is_one() -> None:
    unknown = held("cr-1", 10), held("cr-2", 8)

    assert of(unknown, gang(12)) == [("cr-1", 10), ("cr-2", 2)]
    assert of(unknown, gang(9)) == [("cr-1", 9)]


def test_the_rest_of_a_gang_comes_into_the_ultraserver_of_its_idle_nodes() -> None:
    idle = [("i-1", "cr-2"), ("i-2", "cr-2")]

    assert beside(idle, gang(12), of=holding(*TWO)) == [("cr-2", 10)]


def test_it_counts_on_idle_nodes_of_one_ultraserver_alone() -> None:
    """Two in the other one are no part of it."""
    idle = [("i-1", "cr-1"), ("i-2", "cr-1"), ("i-3", "cr-2"), ("i-4", "cr-2"), ("i-5", "cr-2")]

    assert beside(idle, gang(12), of=holding(*TWO)) == [("cr-2", 9)]


def test_one_that_has_no_room_beside_its_idle_nodes_goes_whole_into_another() -> None:
    small = held("cr-1", 3, "cb-1"), held("cr-2", 18, "cb-2")
    idle = [("i-1", "cr-1"), ("i-2", "cr-1")]

    assert beside(idle, gang(12), of=holding(*small)) == [("cr-2", 12)]


def test_what_is_paid_for_by_the_hour_comes_after_several_ultraservers() -> None:
    any_gpu = replace(gang(3), shape=replace(gang(3).shape, gpus=1, gpu_type=""))
    few = holding(held("cr-1", 2, "cb-1"), held("cr-2", 2, "cb-2"), beside=(pool(types=(T4,)),))

    assert filled(snapshot([any_gpu], of=few)) == [("cr-1", 2), ("cr-2", 1)]


def leaves(before_end_s: float, state: str = "IDLE", *jobs: Job, **more: object) -> Snapshot:
    """A node of an UltraServer, so long before the end of its block."""
    ends = held("cr-1", 18, "cb-1", ends_in_s=before_end_s)
    idle, known = up("i-1", "cr-1")
    busy = 4 if jobs else 0
    seen = snapshot(
        jobs,
        [replace(idle, state=node(state=state).state, gpus_alloc=busy)],
        of=holding(ends),
        instances=[replace(instance("i-1", ULTRA, age_s=900), capacity_reservation_id="cr-1")],
        records=[known],
    )
    return replace(seen, **more)  # type: ignore[arg-type]


def orders(seen: Snapshot) -> set[OrderKind]:
    return {each.order.kind for each in plan(seen).actions if isinstance(each, Send)}


def ended(seen: Snapshot) -> list[tuple[str, ...]]:
    found = [each for each in plan(seen).actions if isinstance(each, Terminate)]
    return [each.instance_ids for each in found if each.reason == ENDS]


@pytest.mark.parametrize(("minutes", "is_drained"), [(76, False), (74, True)])
def test_its_nodes_take_no_job_for_the_last_75_minutes(minutes: float, is_drained: bool) -> None:
    """EC2 ends its instances an hour before the end, not half an hour."""
    seen = leaves(minutes * MINUTE_S, "IDLE")

    assert bool(orders(seen) & {OrderKind.RELEASE, OrderKind.DRAIN}) is is_drained
    assert bool(list(active(seen.cluster, NOW_S))) is not is_drained


def test_jobs_are_requeued_before_aws_wants_their_nodes_ended() -> None:
    running = job(7, on=["i-1"], gpus=4, gpu_type="gb200", is_requeueable=True)

    assert OrderKind.REQUEUE not in orders(leaves(76 * MINUTE_S, "ALLOCATED", running))
    assert OrderKind.REQUEUE in orders(leaves(74 * MINUTE_S, "ALLOCATED", running))


@pytest.mark.parametrize(("minutes", "is_ended"), [(63, False), (62, True), (20, True)])
def test_what_still_runs_is_ended_an_hour_before_the_end(minutes: float, is_ended: bool) -> None:
    running = job(7, on=["i-1"], gpus=4, gpu_type="gb200")
    seen = leaves(minutes * MINUTE_S, "ALLOCATED", running)

    assert ended(seen) == [("i-1",)] * is_ended


@pytest.mark.parametrize(("launched_into", "is_ended"), [("cr-1", True), ("cr-2", False)])
def test_a_node_that_ec2_names_in_no_block_yet_is_in_the_one_of_its_launch(
    launched_into: str, *, is_ended: bool
) -> None:
    """And not in the one that ends first, while the other one goes on for days."""
    both = held("cr-1", 18, "cb-1", ends_in_s=61 * MINUTE_S), held("cr-2", 18, "cb-2")
    known = replace(up("i-1", launched_into)[1], phase=Phase.LAUNCHED)
    new = instance("i-1", ULTRA, age_s=60)

    assert (
        ended(snapshot(of=holding(*both), instances=[new], records=[known]))
        == [("i-1",)] * is_ended
    )


def test_it_is_ended_also_while_the_head_is_silent() -> None:
    seen = leaves(61 * MINUTE_S, "ALLOCATED")

    assert ended(replace(seen, digest_age_s=4000.0)) == [("i-1",)]
    assert ended(replace(seen, digest=replace(digest(), written_at_s=NOW_S))) == [("i-1",)]


def test_instances_of_other_blocks_are_left_to_ec2() -> None:
    block = Offering(T4.name, ZONE, Market.CAPACITY_BLOCK)
    times = NOW_S - HOUR_S, NOW_S + 31 * MINUTE_S
    ends = Reservation("cr-1", T4.name, ZONE, 2, block.market, *times)
    made = cluster(pool(types=(T4,)))
    using = replace(made.pools[0], markets=(block.market, *made.pools[0].markets))
    made = replace(made, pools=(using,), reservations=(ends,), prices={**made.prices, block: 0.0})
    known = NodeRecord("i-1", "l-0", "t4", block, NOW_S - 900, 0.0, Phase.JOINED)
    seen = snapshot(
        [job(7, on=["i-1"])],
        [node(state="ALLOCATED", gpus_alloc=1)],
        of=made,
        instances=[replace(instance("i-1", block), capacity_reservation_id="cr-1")],
        records=[known],
    )

    assert ended(seen) == []


@pytest.mark.parametrize(
    ("nodes", "name", "count"),
    [
        (1, "u-p6e-gb200x36", 1),
        (9, "u-p6e-gb200x36", 1),
        (10, "u-p6e-gb200x72", 1),
        (18, "u-p6e-gb200x72", 1),
        (19, "u-p6e-gb200x72", 2),
    ],
)
def test_the_smallest_ultraservers_that_have_so_many_nodes(
    nodes: int, name: str, count: int
) -> None:
    found, many = ultraservers_for(GB200.name, nodes)

    assert isinstance(found, UltraServer)
    assert (found.name, many) == (name, count)
