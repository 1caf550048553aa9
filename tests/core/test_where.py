"""Jobs that may start on certain nodes only: named, excluded, reserved, and by state unusable."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import launches, orders, why
from tests.make import NOW_S, T4_BIG, cluster, instance, job, node, offering, pool, record, snapshot
from tidegate.core.demand.where import NAMES_TOLD
from tidegate.core.explain.advice import advice
from tidegate.core.model.ledger import Cordon
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan, Watch
from tidegate.core.model.slurm import NEVER_WORDS, Job, Node, NodeReservation
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why
from tidegate.core.planner import plan

HOUR_S = 3600.0


def seen(
    jobs: Sequence[Job],
    nodes: Sequence[Node] = (),
    *,
    reservations: Sequence[NodeReservation] = (),
    static: Sequence[str] = (),
) -> Snapshot:
    made = snapshot(
        jobs,
        nodes,
        instances=[instance(each.name) for each in nodes],
        records=[record(each.name) for each in nodes],
    )
    assert made.digest is not None
    reading = replace(
        made.digest.reading, reservations=tuple(reservations), static_nodes=tuple(static)
    )
    return replace(made, digest=replace(made.digest, reading=reading))


def reserved(*nodes: str, begins_s: float = -60.0, **more: object) -> NodeReservation:
    made = NodeReservation("lab", nodes, NOW_S + begins_s, NOW_S + begins_s + HOUR_S)
    return replace(made, **{"users": ("eve",), **more})  # type: ignore[arg-type]


def served_by(made: Plan, job_id: str = "1") -> tuple[str, ...]:
    return next((each.by for each in made.served if each.job_id == job_id), ())


def why_nodes(made: Plan, job_id: str = "1") -> str:
    """The reason of a job that waits for certain nodes; nothing was bought."""
    assert launches(made) == []
    (unmet,) = (each for each in made.unmet if each.job_id == job_id)
    assert [each.kind for each in unmet.why_nots] == [Why.NODES]
    assert unmet.why_nots[0].sentence == unmet.reason
    return unmet.reason


# -- by name ---------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["None", "Resources", "ReqNodeNotAvail", "BadConstraints"])
def test_nothing_is_bought_for_a_job_that_names_a_node_which_is_gone(reason: str) -> None:
    waits = job(required_nodes=("i-9",), reason=reason)

    made = plan(seen([waits], [node()]))

    assert "asks for i-9 by name (-w), and Slurm has no such node any more" in why_nodes(made)
    (unmet,) = made.unmet
    (told,) = advice(waits, unmet.why_nots)
    assert "scontrol update JobId=1 ReqNodeList=" in told
    assert "without -w" in told


def test_it_takes_no_other_node_either() -> None:
    made = plan(seen([job(required_nodes=("i-9",)), job(2)], [node()]))

    assert served_by(made, "2") == ("i-1",)


def test_a_job_starts_on_the_idle_node_that_it_names() -> None:
    nodes = [node("i-1"), node("i-2")]

    assert served_by(plan(seen([job(required_nodes=("i-2",))], nodes))) == ("i-2",)


@pytest.mark.parametrize(
    ("state", "reason"),
    [("ALLOCATED+DYNAMIC_NORM", ""), ("IDLE+DRAIN+DYNAMIC_NORM", "ada: looking at a fan")],
)
def test_it_waits_for_the_node_that_it_names(state: str, reason: str) -> None:
    full = node(state=state, gpus_alloc=1, reason=reason)

    said = why_nodes(plan(seen([job(required_nodes=("i-1",))], [full])))

    assert said.startswith("it waits for i-1 (")
    assert reason in said


@pytest.mark.parametrize(
    ("number", "rest"),
    [(NAMES_TOLD, "which"), (NAMES_TOLD + 1, "and 1 more, which"), (NAMES_TOLD + 2, "and 2 more")],
)
def test_of_many_nodes_by_name_the_first_are_told_and_how_many_more(number: int, rest: str) -> None:
    names = [f"i-{n}" for n in range(number)]
    full = [node(name, state="ALLOCATED+DYNAMIC_NORM", gpus_alloc=1) for name in names]

    said = why_nodes(plan(seen([job(nodes=number, required_nodes=tuple(names))], full)))

    assert said.count("ALLOCATED") == NAMES_TOLD
    assert said.partition(f"i-{NAMES_TOLD - 1} (")[2].partition(")")[2].strip(", ").startswith(rest)


def test_a_static_node_by_name_is_waited_for_and_bought_for_never() -> None:
    made = plan(seen([job(required_nodes=("old-7",))], [node()], static=["old-7"]))

    assert "old-7 (no node of Tidegate's)" in why_nodes(made)


def test_a_gang_on_named_nodes_starts_there_and_buys_nothing() -> None:
    nodes = [node("i-1"), node("i-2"), node("i-3")]
    gang = job(nodes=2, required_nodes=("i-1", "i-3"))

    behind = job(2, nodes=2)

    assert set(served_by(plan(seen([gang], nodes)))) == {"i-1", "i-3"}
    assert set(served_by(plan(seen([gang, behind], nodes)))) == {"i-1", "i-3"}
    full = replace(nodes[2], gpus_alloc=1, state=node(state="ALLOCATED+DYNAMIC_NORM").state)
    assert "it waits for i-1" in why_nodes(plan(seen([gang], [*nodes[:2], full])))


def test_a_gang_that_names_some_of_its_nodes_gets_the_others() -> None:
    made = plan(seen([job(nodes=3, required_nodes=("i-2",))], [node("i-1"), node("i-2")]))

    assert [launch.count for launch in launches(made)] == [1]
    assert {"i-1", "i-2"} <= set(served_by(made))
    three = [node(name) for name in ("i-1", "i-2", "i-3")]
    assert set(served_by(plan(seen([job(nodes=2, required_nodes=("i-3",))], three)))) == {
        "i-1",
        "i-3",
    }


def test_the_others_come_to_the_zone_of_the_one_that_it_names() -> None:
    zones = {"i-1": "us-east-1a", "i-2": "us-east-1b", "i-3": "us-east-1a"}
    on = {name: offering(zone=zone) for name, zone in zones.items()}

    made = plan(
        snapshot(
            [job(nodes=2, required_nodes=("i-2",))],
            [node(name) for name in zones],
            of=cluster(pool(zones=("us-east-1a", "us-east-1b"))),
            instances=[instance(name, each) for name, each in on.items()],
            records=[record(name, each) for name, each in on.items()],
        )
    )

    assert served_by(made)[0] == "i-2"
    assert [each.offerings[0].zone for each in launches(made)] == ["us-east-1b"]


def test_it_gets_none_while_the_named_one_is_taken() -> None:
    full = node("i-2", state="ALLOCATED+DYNAMIC_NORM", gpus_alloc=1)

    made = plan(seen([job(nodes=2, required_nodes=("i-2",))], [node("i-1"), full, node("i-3")]))

    assert "it waits for i-2" in why_nodes(made)
    others = [job(2), job(3)]
    queue = [job(1, nodes=2, required_nodes=("i-2",)), *others]
    made = plan(seen(queue, [node("i-1"), full, node("i-3")]))
    assert [served_by(made, each.job_id) for each in others] == [("i-1",), ("i-3",)]


def test_one_component_on_a_gone_node_stops_all() -> None:
    parts = [job(1, het_job_id="1"), job(2, het_job_id="1", required_nodes=("i-9",))]

    made = plan(seen(parts))

    assert launches(made) == []
    assert {each.job_id for each in made.unmet} == {"1", "2"}


# -- excluded --------------------------------------------------------------------------------


def test_an_excluded_node_is_no_capacity() -> None:
    made = plan(seen([job(excluded_nodes=("i-1",))], [node()]))

    assert len(launches(made)) == 1


def test_for_others_it_is() -> None:
    made = plan(seen([job(excluded_nodes=("i-1",)), job(2)], [node()]))

    assert served_by(made, "2") == ("i-1",)
    assert len(launches(made)) == 1


# -- reservations ----------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["Reservation", "Resources", "ReqNodeNotAvail"])
def test_a_node_reserved_for_others_is_no_capacity(reason: str) -> None:
    idle = node(state="IDLE+MAINTENANCE+RESERVED+PLANNED+DYNAMIC_NORM")

    made = plan(seen([job(reason=reason)], [idle], reservations=[reserved("i-1")]))

    assert len(launches(made)) == 1


def test_nor_where_an_older_agent_tells_of_no_reservations() -> None:
    assert len(launches(plan(seen([job()], [node(state="IDLE+RESERVED+DYNAMIC_NORM")])))) == 1


def test_a_warm_node_that_is_reserved_keeps_no_job_waiting() -> None:
    made = seen([job()], [node()], reservations=[reserved("i-1")])
    warm = cluster(replace(pool(), min_nodes=1))

    assert len(launches(plan(replace(made, cluster=warm)))) == 1


def test_it_is_no_free_node_of_a_pools_headroom() -> None:
    of = cluster(replace(pool(), headroom_nodes=1))
    idle = node(state="IDLE+RESERVED+DYNAMIC_NORM")

    made = plan(replace(seen([], [idle], reservations=[reserved("i-1")]), cluster=of))

    assert [launch.count for launch in launches(made)] == [1]


def test_for_those_whose_reservation_it_is_it_is_capacity() -> None:
    own = replace(job(reservation="lab"), user="eve")

    assert served_by(plan(seen([own], [node()], reservations=[reserved("i-1")]))) == ("i-1",)


def test_a_full_reservation_is_waited_for() -> None:
    full = node(state="ALLOCATED+RESERVED+DYNAMIC_NORM", gpus_alloc=1)
    own = job(reservation="lab", reason="Reservation")

    other = reserved("i-2", name="other")
    made = plan(seen([own], [full, node("i-2")], reservations=[reserved("i-1"), other]))

    assert "only in its reservation lab (i-1)" in why_nodes(made)
    (told,) = advice(own, made.unmet[0].why_nots)
    assert "scontrol update JobId=1 ReservationName=" in told


def test_a_reservation_that_has_not_begun_is_waited_for() -> None:
    later = reserved("i-1", begins_s=600.0)

    made = plan(
        seen([job(reservation="lab", reason="Reservation")], [node()], reservations=[later])
    )

    assert "its reservation lab begins at" in why_nodes(made)


@pytest.mark.parametrize(
    ("limit_s", "bought"), [(None, 1), (900.0, 1), (500.0, 0)], ids=["none", "long", "short"]
)
def test_a_job_does_not_run_into_a_reservation(limit_s: float | None, bought: int) -> None:
    later = reserved("i-1", begins_s=600.0)

    made = plan(seen([job(time_limit_s=limit_s)], [node()], reservations=[later]))

    assert len(launches(made)) == bought


def test_one_of_all_nodes_is_waited_for_and_nothing_is_bought() -> None:
    whole = reserved("i-1", begins_s=1800.0, flags=("MAINT", "SPEC_NODES", "ALL_NODES"))

    made = plan(seen([job(1), job(2, time_limit_s=1200.0)], reservations=[whole]))

    assert "lab has all nodes" in why(made)
    assert "with a time limit that ends before it can start now" in why(made)
    assert [launch.for_jobs for launch in launches(made)] == [("2",)]


def test_a_job_that_only_a_node_which_is_up_could_end_before_it_gets_no_new_one() -> None:
    """A new one boots for 300 s."""
    whole = reserved(begins_s=1800.0, flags=("MAINT", "SPEC_NODES", "ALL_NODES"))
    tight = job(time_limit_s=1700.0)

    assert "lab has all nodes" in why_nodes(plan(seen([tight], reservations=[whole])))
    assert served_by(plan(seen([tight], [node()], reservations=[whole]))) == ("i-1",)


def test_one_of_some_cores_leaves_the_others_free() -> None:
    part = reserved("i-1", cpus=2)
    big = node(type_=T4_BIG, state="IDLE+RESERVED+DYNAMIC_NORM")
    made = seen([job()], [big], reservations=[part])

    assert launches(plan(made)) == []
    assert len(launches(plan(seen([job(is_exclusive=True)], [big], reservations=[part])))) == 1


def test_a_magnetic_one_draws_those_who_may_use_it() -> None:
    magnetic = reserved("i-1", flags=("MAGNETIC",), users=("ada",))

    assert launches(plan(seen([job()], [node()], reservations=[magnetic]))) == []
    others = replace(magnetic, users=("eve",))
    assert len(launches(plan(seen([job()], [node()], reservations=[others])))) == 1


def test_what_is_over_binds_nobody() -> None:
    over = reserved("i-1", begins_s=-2 * HOUR_S)

    assert served_by(plan(seen([job()], [node()], reservations=[over]))) == ("i-1",)


@pytest.mark.parametrize("begins_s", [-60.0, 600.0])
def test_an_idle_node_that_a_reservation_names_stays(begins_s: float) -> None:
    idle = node(idle_s=9_000)
    kept = plan(seen([], [idle], reservations=[reserved("i-1", begins_s=begins_s)]))
    whole = reserved("i-1", begins_s=600.0, flags=("MAINT", "ALL_NODES"))
    gone = plan(seen([], [idle], reservations=[whole]))

    assert orders(kept, OrderKind.RELEASE) == []
    assert len(orders(gone, OrderKind.RELEASE)) == 1


def test_a_reserved_node_that_has_to_go_is_closed_until_that_is_over() -> None:
    """Slurm deletes no node of a reservation that has begun."""
    idle = node(state="IDLE+RESERVED+DYNAMIC_NORM")
    made = seen([], [idle], reservations=[reserved("i-1")])
    known = replace(record(), cordon=Cordon("AWS Health: RETIREMENT", NOW_S - 10))

    done = plan(replace(made, nodes=(known,)))

    assert orders(done, OrderKind.RELEASE) == []
    assert [order.names for order in orders(done, OrderKind.DRAIN)] == [("i-1",)]


# -- states ----------------------------------------------------------------------------------


@pytest.mark.parametrize("word", sorted(NEVER_WORDS))
def test_a_node_of_no_use_is_no_capacity_and_goes(word: str) -> None:
    made = plan(seen([job()], [node(state=f"IDLE+{word}+DYNAMIC_NORM")]))

    assert len(launches(made)) == 1
    assert [order.names for order in orders(made, OrderKind.RELEASE)] == [("i-1",)]


@pytest.mark.parametrize("state", ["UNKNOWN", "IDLE+NOT_RESPONDING", "IDLE+REBOOT_ISSUED"])
def test_a_node_that_soon_is_up_is_capacity(state: str) -> None:
    assert launches(plan(seen([job()], [node(state=f"{state}+DYNAMIC_NORM")]))) == []


def test_a_job_that_slurm_leaves_waiting_beside_its_planned_node_is_watched() -> None:
    planned = node(state="IDLE+PLANNED+DYNAMIC_NORM", idle_s=500)

    made = plan(seen([job()], [planned]))

    assert [a.stuck.job_id for a in made.actions if isinstance(a, Watch)] == ["1"]
