"""The agent says what is new, at once and once, and what it did; silence is told and outlived."""

import logging
from collections import Counter
from dataclasses import replace

import pytest

from tests.agent.fakes import NOW_S, order
from tests.make import NOTICED, SAVING
from tidegate.agent.loop import kept
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.errors import SlurmUnavailable
from tidegate.core.model.orders import OrderKind, OrderOutcome, OrderResult


def test_the_first_look_publishes_and_an_unchanged_one_does_not(agent, bus, slurm):
    slurm.queue("1")

    first, second = agent.tick(), agent.tick()

    assert second is None
    assert bus.digests == [first]
    assert (first.stamp.sequence, first.cluster) == (1, "dev")


def test_a_new_job_is_published_at_once(agent, bus, slurm):
    agent.tick()
    slurm.queue("1")

    assert agent.tick().stamp.sequence == 2


@pytest.mark.parametrize(("is_empty", "heartbeat_s"), [(True, 300), (False, 60)])
def test_the_heartbeat_is_slow_on_an_empty_cluster(agent, slurm, clock, is_empty, heartbeat_s):
    if not is_empty:
        slurm.put("n1", "IDLE")
    agent.tick()

    clock.now += heartbeat_s - 1
    assert agent.tick() is None
    clock.now += 1
    assert agent.tick() is not None


def test_a_clock_that_is_put_back_does_not_silence_the_heartbeat(agent, slurm, clock):
    slurm.put("n1", "IDLE")
    agent.tick()
    clock.now -= 3600

    assert agent.tick() is not None
    assert agent.tick() is None


def test_grown_priorities_and_passing_reasons_are_no_news(agent, slurm):
    slurm.queue("1", priority=10, reason="Priority")
    slurm.queue("2", priority=5, reason="ReqNodeNotAvail, UnavailableNodes:n1")
    agent.tick()
    slurm.queue("1", priority=20, reason="None")
    slurm.queue("2", priority=15, reason="ReqNodeNotAvail, UnavailableNodes:n[1-2]")

    assert agent.tick() is None


def test_another_order_of_priorities_is_news(agent, slurm):
    slurm.queue("1", priority=10)
    slurm.queue("2", priority=5)
    agent.tick()
    slurm.queue("2", priority=15)

    assert agent.tick() is not None


def test_results_travel_for_ten_minutes(agent, slurm, clock):
    slurm.put("n1", "IDLE")
    agent.tick()
    agent.on_orders([order(OrderKind.DRAIN, "n1")])

    digest = agent.tick()
    assert [(one.name, one.outcome) for one in digest.results] == [("n1", OrderOutcome.DONE)]
    clock.now += 300
    assert len(agent.tick().results) == 1
    clock.now += 400
    assert agent.tick().results == ()


def test_all_results_of_a_storm_travel(agent, slurm):
    kinds = (OrderKind.DRAIN, OrderKind.SIGNAL, OrderKind.REQUEUE, OrderKind.DELETE)
    for kind in kinds:
        for part in range(10):
            names = [f"{part}{n:03}" for n in range(100)]
            agent.on_orders([order(kind, *names, text="USR1", order_id=f"{kind}-{part}")])

    results = agent.tick().results

    assert Counter(one.kind for one in results) == dict.fromkeys(kinds, 1_000)


def test_of_too_many_results_the_newest_and_those_about_nodes_stay():
    made = [
        OrderResult(f"o{number}", kind, "7", OrderOutcome.DONE)
        for number in range(3)
        for kind in (OrderKind.RELEASE, OrderKind.SIGNAL)
    ]

    left = kept(made, at_most=4)

    releases = [("o0", OrderKind.RELEASE), ("o1", OrderKind.RELEASE), ("o2", OrderKind.RELEASE)]
    assert [(one.order_id, one.kind) for one in left] == [("o2", OrderKind.SIGNAL), *releases]


def test_a_repeated_order_is_carried_out_once(agent, slurm):
    slurm.queue("1", "RUNNING")
    made = order(OrderKind.SIGNAL, "1", text="USR1")

    assert agent.on_orders([made]) == agent.on_orders([made])
    assert slurm.did("signal") == [("USR1", "1")]


def test_an_order_that_met_a_silent_slurm_is_carried_out_when_it_comes_again(agent, slurm):
    slurm.put("n1", "IDLE")
    slurm.is_up = False
    with pytest.raises(SlurmUnavailable):
        agent.on_orders([order(OrderKind.DRAIN, "n1")])
    slurm.is_up = True

    assert agent.on_orders([order(OrderKind.DRAIN, "n1")])[0].outcome is OrderOutcome.DONE


def test_an_outage_of_slurm_is_said_once_and_its_end_too(agent, bus, slurm, caplog):
    caplog.set_level(logging.INFO)
    agent.tick()
    slurm.is_up = False
    assert agent.tick() is None
    assert agent.tick() is None
    slurm.is_up = True
    agent.tick()

    said = [record.getMessage() for record in caplog.records]
    assert len([text for text in said if "does not answer" in text]) == 1
    assert said[-1] == "Slurm answers again."


def test_a_digest_that_could_not_be_sent_is_sent_with_a_later_number(agent, bus, slurm, caplog):
    slurm.queue("1")
    bus.is_throttled = True
    assert agent.tick() is None
    assert agent.tick() is None
    bus.is_throttled = False

    assert agent.tick().stamp.sequence == 3
    assert len([one for one in caplog.records if "could not be sent" in one.getMessage()]) == 1


def test_newly_opened_nodes_are_poked_once_per_batch(agent, slurm):
    slurm.queue("1")
    slurm.put("n1", "IDLE")
    slurm.put("n2", "IDLE")
    slurm.put("gated", "IDLE", "DRAIN")
    agent.tick()
    agent.tick()

    assert slurm.did("poke") == [("n1", "n2")]


def test_an_undrained_gang_is_poked_when_its_nodes_respond(agent, slurm):
    slurm.queue("1")
    slurm.put("n1", "IDLE", "DRAIN")
    agent.tick()
    slurm.put("n1", "IDLE", "NOT_RESPONDING")
    agent.tick()
    assert slurm.did("poke") == []
    assert agent.is_settling

    slurm.put("n1", "IDLE")
    agent.tick()

    assert slurm.did("poke") == [("n1",)]
    assert not agent.is_settling


def test_nobody_is_poked_for_an_empty_queue(agent, slurm):
    slurm.put("n1", "IDLE")
    agent.tick()

    assert slurm.calls == []


def test_a_node_that_was_reclaimed_while_it_booted_is_drained_before_a_job_starts(agent, slurm):
    slurm.queue("1")
    agent.on_orders([order(OrderKind.DRAIN, "n1", text="tidegate: reclaimed")])
    agent.tick()
    slurm.put("n1", "IDLE")

    agent.tick()

    assert slurm.calls == [("drain", "n1")]
    assert slurm.nodes["n1"].reason == "tidegate: reclaimed"


def test_a_drain_of_the_other_thread_is_not_repeated_by_a_reading_from_before_it(
    agent, slurm, clock
):
    slurm.put("n1", "MIXED")
    slurm.queue("1")

    def meanwhile() -> None:
        clock.now += 1
        agent.on_orders([order(OrderKind.DRAIN, "n1")])

    slurm.after_read = [meanwhile]
    agent.tick()

    assert slurm.calls == [("drain", "n1")]


def test_a_node_that_joins_after_the_order_s_time_takes_jobs(agent, slurm, clock):
    slurm.queue("1")
    agent.on_orders([order(OrderKind.DRAIN, "n1")])
    clock.now += 61
    slurm.put("n1", "IDLE")

    agent.tick()

    assert slurm.calls == [("poke", "n1")]


def test_a_drain_that_was_taken_back_does_not_last(agent, slurm):
    slurm.put("n1", "MIXED")
    agent.on_orders([order(OrderKind.DRAIN, "n1", text="tidegate: a warning")])
    undrain = order(OrderKind.UNDRAIN, "n1", text="tidegate: a warning", order_id="o2")
    agent.on_orders([undrain])

    agent.tick()

    assert slurm.calls == [("drain", "n1"), ("undrain", "n1")]


def test_a_guarded_drain_does_not_wait_for_its_node(agent, slurm):
    slurm.queue("1")
    agent.on_orders([order(OrderKind.DRAIN, "n1", only_if=("IDLE",))])
    slurm.put("n1", "IDLE")

    agent.tick()

    assert slurm.calls == [("poke", "n1")]


def test_a_node_whose_own_watcher_drains_it_learns_that_we_have_its_jobs(agent, slurm):
    slurm.put("n1", "MIXED")
    agent.on_orders([order(OrderKind.DRAIN, "n1", text="tidegate: EC2 reclaims it")])
    slurm.put("n1", "MIXED", "DRAIN", reason=NOTICED)

    agent.tick()

    assert slurm.nodes["n1"].reason == "tidegate: EC2 reclaims it"


def test_a_node_that_saves_its_jobs_is_left_to_it(agent, slurm):
    slurm.put("n1", "MIXED")
    agent.on_orders([order(OrderKind.DRAIN, "n1", text="tidegate: EC2 reclaims it")])
    slurm.put("n1", "MIXED", "DRAIN", reason=SAVING)

    agent.tick()

    assert slurm.nodes["n1"].reason == SAVING


@pytest.mark.parametrize("is_up", [True, False], ids=["a node that is up", "one that boots"])
def test_an_undrain_ends_a_lasting_drain_of_the_same_reason(agent, slurm, is_up):
    """Otherwise a node that was closed while it booted would close again for a minute."""
    why = "tidegate: kept for larger jobs"
    if is_up:
        slurm.put("n1", "IDLE", "DYNAMIC_NORM")
    agent.on_orders([order(OrderKind.DRAIN, "n1", order_id="o-1", text=why)])
    agent.tick()

    agent.on_orders([order(OrderKind.UNDRAIN, "n1", order_id="o-2", text=why)])
    if not is_up:
        slurm.put("n1", "IDLE", "DYNAMIC_NORM")
    agent.tick()

    assert not slurm.nodes["n1"].state.is_drain


def test_a_gang_that_opens_is_not_closed_again_by_what_its_node_was_told_as_it_booted(agent, slurm):
    """It was kept for larger jobs, then for the gang, and opens as the gang does."""
    closed = str(DrainReason(DrainCode.CLOSED, "kept for larger jobs"))
    kept = str(DrainReason(DrainCode.KEPT, "kept for gang 5", "5"))
    agent.on_orders([order(OrderKind.DRAIN, "n1", order_id="o-1", text=closed)])
    slurm.put("n1", "IDLE", "DYNAMIC_NORM")
    agent.tick()
    slurm.nodes["n1"] = replace(slurm.nodes["n1"], reason=kept)

    agent.on_orders([order(OrderKind.UNDRAIN, "n1", order_id="o-2", text=kept)])
    agent.tick()

    assert not slurm.nodes["n1"].state.is_drain


def test_a_gate_that_opens_does_not_open_a_node_that_ec2_takes_back(agent, slurm):
    """It joined drained, without a reason; the drain that came while it booted still counts."""
    agent.on_orders([order(OrderKind.DRAIN, "n1", order_id="o-1", text="tidegate: EC2 reclaims")])
    slurm.put("n1", "IDLE", "DRAIN", "DYNAMIC_NORM")
    agent.on_orders([order(OrderKind.UNDRAIN, "n1", order_id="o-2")])

    agent.tick()

    assert slurm.nodes["n1"].reason == "tidegate: EC2 reclaims"


def test_an_undrain_leaves_a_lasting_drain_of_another_reason(agent, slurm):
    agent.on_orders([order(OrderKind.DRAIN, "n1", order_id="o-1", text="interrupted")])
    agent.on_orders([order(OrderKind.UNDRAIN, "n1", order_id="o-2", text="something else")])
    slurm.put("n1", "IDLE", "DYNAMIC_NORM")

    agent.tick()

    assert slurm.nodes["n1"].state.is_drain


def test_orders_that_all_come_late_are_told_twice_a_minute_at_most(agent, slurm, clock):
    """On a head whose clock is wrong each digest would bring the next order at once."""
    slurm.put("n1", "IDLE")
    agent.tick()
    told_at_s = []

    for second in range(45):
        clock.now = NOW_S + second
        agent.on_orders(
            [order(OrderKind.DRAIN, "n1", order_id=f"o{second}", not_after_s=NOW_S - 1)]
        )
        if agent.tick():
            told_at_s.append(second)

    assert told_at_s == [0, 30]


def test_a_weight_that_was_set_is_no_news(agent, slurm):
    slurm.put("n1", "IDLE")
    agent.tick()

    agent.on_orders([order(OrderKind.WEIGHT, "n1", text="3")])

    assert agent.tick() is None


def test_that_a_drain_waits_for_its_node_to_join_asks_for_no_look(agent, slurm):
    """The look would order it again, once a second for as long as the node boots."""
    agent.tick()
    agent.on_orders([order(OrderKind.DRAIN, "n9")])
    assert agent.tick() is None

    slurm.put("n9", "IDLE")

    assert agent.tick().results[0].outcome is OrderOutcome.FAILED
    assert slurm.did("drain") == [("n9",)]


def test_a_guarded_drain_of_a_node_that_is_not_there_is_told(agent):
    agent.tick()

    agent.on_orders([order(OrderKind.DRAIN, "n9", only_if=("IDLE",))])

    assert agent.tick().results[0].outcome is OrderOutcome.FAILED
