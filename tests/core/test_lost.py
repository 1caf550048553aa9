"""Lost capacity: every cell of the table, held against what the planner does."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.make import (
    A10G,
    NOW_S,
    T4,
    cluster,
    instance,
    job,
    node,
    offering,
    pool,
    record,
    snapshot,
)
from tidegate.core.explain.lost import (
    Age,
    Cell,
    Duty,
    Ec2Says,
    Gpus,
    LedgerSays,
    SlurmSays,
    cell_of,
    cells,
    gpus,
    lost_nodes,
)
from tidegate.core.explain.overview import overview
from tidegate.core.fleet.members import members
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.ledger import Cordon, Phase
from tidegate.core.model.plan import Mark, Plan, Send, Terminate
from tidegate.core.model.slurm import SetBy
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

NAME = "i-0123456789abcdef0"
SLURM = {
    SlurmSays.USABLE: node(NAME),
    SlurmSays.OURS: node(NAME, state="IDLE+DRAIN", reason="tidegate: idle"),
    SlurmSays.THEIRS: node(NAME, state="IDLE+DRAIN", reason="bad fan"),
    SlurmSays.SICK: node(NAME, state="IDLE+DRAIN", reason="NHC: disk full", set_by=SetBy.ROOT),
    SlurmSays.DOWN: node(NAME, state="DOWN", reason="Not responding"),
    SlurmSays.STRANGE: node(NAME, state="IDLE+NEWWORD"),
}
EC2 = {
    Ec2Says.ALIVE: InstanceState.RUNNING,
    Ec2Says.ENDING: InstanceState.SHUTTING_DOWN,
    Ec2Says.STOPPED: InstanceState.STOPPED,
}
LEDGER = {
    LedgerSays.LAUNCHED: Phase.LAUNCHED,
    LedgerSays.JOINED: Phase.JOINED,
    LedgerSays.INTERRUPTED: Phase.INTERRUPTED,
    LedgerSays.RELEASED: Phase.RELEASED,
}


def seen(cell: Cell) -> Snapshot:
    """A cluster with one node, of which the three say what the cell says."""
    age_s = 2000.0 if cell.age is Age.LATE else 100.0
    nodes = [replace(SLURM[cell.slurm], features=("t4",))] if cell.slurm in SLURM else []
    instances = [instance(NAME, age_s=age_s, state=EC2[cell.ec2])] if cell.ec2 in EC2 else []
    records = []
    if cell.ledger in LEDGER:
        made = record(NAME, age_s=age_s, phase=LEDGER[cell.ledger])
        is_announced = cell.ledger is LedgerSays.INTERRUPTED
        records = [replace(made, reclaim_at_s=NOW_S + 50 if is_announced else None)]
    return snapshot([job(1)], nodes, instances=instances, records=records)


def acts(made: Plan) -> bool:
    """Whether the plan does something about the node."""
    for action in made.actions:
        names: tuple[str, ...] = ()
        match action:
            case Send():
                names = action.order.names
            case Terminate():
                names = action.instance_ids
            case _:
                record = getattr(action, "record", action)
                names = (getattr(record, "instance_id", ""),)
        if NAME in names:
            return True
    return False


def named(cell: Cell) -> str:
    return "-".join(each.name.lower() for each in (cell.slurm, cell.ec2, cell.ledger, cell.age))


@pytest.mark.parametrize("cell", list(cells()), ids=named)
def test_every_cell_is_acted_on_waited_for_or_an_alarm(cell: Cell) -> None:
    given = seen(cell)
    made = plan(given)
    serves = {name for each in made.served for name in each.by}
    told = [each for each in overview(given, None).needs_a_look if NAME in each]

    match cell.duty:
        case Duty.WORKS | Duty.BOOTS:
            assert NAME in serves
            assert not told
        case Duty.ACTS:
            assert acts(made)
        case Duty.ALARM:
            assert told, "nobody acts, so a person has to be told"
            assert NAME not in serves
        case Duty.WAITS:
            # Until EC2 has ended it or its notice is over; jobs count on it no more.
            is_bounded = cell.ec2 is Ec2Says.ENDING or cell.ledger is LedgerSays.INTERRUPTED
            assert is_bounded
            assert NAME not in serves
        case Duty.NONE:
            assert not acts(made)
    assert bool(told) == cell.is_lost


@pytest.mark.parametrize(("since_s", "ends"), [(1.0, True), (-1.0, False), (None, False)])
@pytest.mark.parametrize("state", [InstanceState.STOPPING, InstanceState.STOPPED])
def test_what_ec2_stops_as_it_announced_is_ended_and_a_person_is_told_of_what_somebody_stopped(
    state: InstanceState, since_s: float | None, ends: bool
) -> None:
    """Its disk costs: a retired host's instances are stopped, not ended."""
    ends_at_s = None if since_s is None else NOW_S - since_s
    cordon = Cordon("AWS Health: AWS_EC2_RETIREMENT", NOW_S - 3600, ends_at_s)
    of = replace(record(NAME, phase=Phase.INTERRUPTED), cordon=cordon)
    given = snapshot(instances=[instance(NAME, state=state)], records=[of])

    made = plan(given)

    ended = [each.instance_ids for each in made.actions if isinstance(each, Terminate)]
    assert ended == ([(NAME,)] if ends else [])
    assert [each.phase for each in made.actions if isinstance(each, Mark)] == [Phase.TERMINATED]
    told = [each for each in overview(given, None).needs_a_look if "stopped by somebody" in each]
    assert ends or told


@pytest.mark.parametrize("state", [InstanceState.STOPPING, InstanceState.STOPPED])
@pytest.mark.parametrize(
    ("phase", "before", "ends"),
    [
        (Phase.LAUNCHED, None, True),
        (Phase.INTERRUPTED, Phase.LAUNCHED, True),
        (Phase.INTERRUPTED, Phase.JOINED, False),
        (Phase.JOINED, None, False),
        (Phase.RELEASED, None, True),
    ],
)
def test_what_stops_while_it_boots_or_leaves_is_ended_whatever_was_announced(
    state: InstanceState, phase: Phase, before: Phase | None, ends: bool
) -> None:
    """AWS Health's word may come before the record that it is about."""
    of = replace(record(NAME, phase=phase), interrupted_in=before)
    given = snapshot(instances=[instance(NAME, state=state)], records=[of])

    made = plan(given)

    ended = [each.instance_ids for each in made.actions if isinstance(each, Terminate)]
    assert ended == ([(NAME,)] if ends else [])


def test_there_are_280_cells_and_a_node_is_in_its_own() -> None:
    every = list(cells())

    assert len(set(every)) == len(every) == 280
    for cell in every:
        for member in members(seen(cell)):
            assert cell_of(member, seen(cell)) == cell


def fleet() -> Iterator[tuple[str, str, str, int]]:
    """State, reason and what each of the nodes shows."""
    yield "i-1", "MIXED", "", 1
    yield "i-2", "IDLE", "", 0
    yield "i-3", "IDLE+DRAIN", "bad fan", 0
    yield "i-4", "DOWN", "Not responding", 0
    yield "i-5", "IDLE+DRAIN", "tidegate: idle", 0


def test_gpus_that_are_paid_for_are_told_from_those_that_can_be_used() -> None:
    nodes = [node(n, state=state, reason=why, gpus_alloc=busy) for n, state, why, busy in fleet()]
    names = [*(each.name for each in nodes), "i-6"]  # the last one boots
    given = snapshot(
        [],
        nodes,
        records=[
            record(name, phase=Phase.LAUNCHED if name == "i-6" else Phase.JOINED) for name in names
        ],
        instances=[instance(name) for name in names],
    )

    each = T4.gpus
    assert gpus(given) == Gpus(configured=6 * each, usable=2 * each, busy=1, lost=2 * each)
    assert [lost.name for lost in lost_nodes(given)] == ["i-3", "i-4"]


def test_a_job_that_still_runs_on_a_drained_node_has_its_gpus() -> None:
    drained = node("i-1", A10G, state="MIXED+DRAIN", reason="bad fan", gpus_alloc=3)
    on = offering(A10G)
    given = snapshot(
        [],
        [drained],
        of=cluster(pool(types=(A10G,))),
        records=[record("i-1", on)],
        instances=[instance("i-1", on)],
    )

    assert gpus(given) == Gpus(configured=4, usable=3, busy=3, lost=1)
