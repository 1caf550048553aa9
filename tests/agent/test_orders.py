"""Orders act once, in time, under their guard, and never on a job that slipped in."""

import pytest

from tests.agent.fakes import NOW_S, order
from tests.make import SAVING
from tidegate.agent.orders import Worker
from tidegate.core.model.errors import SlurmUnavailable
from tidegate.core.model.orders import OrderKind, OrderOutcome

DONE, KEPT = OrderOutcome.DONE, OrderOutcome.KEPT
EXPIRED, FAILED = OrderOutcome.EXPIRED, OrderOutcome.FAILED


@pytest.mark.parametrize("kind", OrderKind)
def test_an_expired_order_touches_nothing(slurm, outcomes, kind):
    slurm.is_up = False

    assert outcomes(order(kind, "7", not_after_s=NOW_S - 1)) == {"7": EXPIRED}


@pytest.mark.parametrize("kind", OrderKind)
def test_a_name_that_is_none_is_refused_before_slurm_is_asked(slurm, outcomes, kind):
    slurm.is_up = False

    assert outcomes(order(kind, "--all; reboot")) == {"--all; reboot": FAILED}


@pytest.mark.parametrize("kind", OrderKind)
@pytest.mark.parametrize("name", ["ALL", "all", "localhost", "i-[0-9]", "-M", "n1,n2"])
def test_slurms_own_words_reach_no_command(slurm, outcomes, kind, name):
    slurm.put("n1", "IDLE")

    assert outcomes(order(kind, name, text="7")) == {name: FAILED}
    assert slurm.calls == []


@pytest.mark.parametrize("kind", OrderKind)
def test_an_order_whose_time_is_no_number_has_expired(slurm, outcomes, kind):
    slurm.is_up = False

    assert outcomes(order(kind, "7", not_after_s=float("nan"))) == {"7": EXPIRED}


def test_a_silent_slurm_leaves_the_order_to_be_repeated(slurm, worker):
    slurm.is_up = False

    with pytest.raises(SlurmUnavailable):
        worker.carry_out([order(OrderKind.DRAIN, "n1")], NOW_S)


# -- release -------------------------------------------------------------------------------


def test_idle_nodes_are_drained_in_one_call_and_deleted_in_one_call(slurm, outcomes):
    slurm.put("n1", "IDLE")
    slurm.put("n2", "IDLE")

    assert outcomes(order(OrderKind.RELEASE, "n1", "n2")) == {"n1": DONE, "n2": DONE}
    assert slurm.calls == [("drain", "n1", "n2"), ("delete", "n1", "n2")]


def test_a_node_that_is_gone_counts_as_released(slurm, outcomes):
    assert outcomes(order(OrderKind.RELEASE, "n1")) == {"n1": DONE}
    assert slurm.calls == []


def test_a_busy_node_is_not_even_drained(slurm, outcomes):
    slurm.put("n1", "MIXED")

    assert outcomes(order(OrderKind.RELEASE, "n1")) == {"n1": KEPT}
    assert slurm.calls == []


def test_a_job_that_slips_in_wins_and_the_other_node_goes(slurm, outcomes):
    slurm.put("n1", "IDLE")
    slurm.put("n2", "IDLE")
    slurm.before_read = [lambda: None, lambda: slurm.put("n1", "MIXED", "DRAIN")]

    assert outcomes(order(OrderKind.RELEASE, "n1", "n2")) == {"n1": KEPT, "n2": DONE}
    assert slurm.did("undrain") == [("n1",)]
    assert slurm.did("delete") == [("n2",)]


@pytest.mark.parametrize("passing", ["PLANNED", "COMPLETING"])
def test_planned_and_completing_are_waited_for(slurm, outcomes, clock, passing):
    slurm.put("n1", "IDLE", passing)
    slurm.before_read = [lambda: None] * 4 + [lambda: slurm.put("n1", "IDLE", "DRAIN")]

    assert outcomes(order(OrderKind.RELEASE, "n1")) == {"n1": DONE}
    assert slurm.did("delete") == [("n1",)]
    assert 1.0 < clock.now - NOW_S < 3.0


def test_a_node_that_stays_planned_is_given_back(slurm, outcomes, clock):
    slurm.put("n1", "IDLE", "PLANNED")

    assert outcomes(order(OrderKind.RELEASE, "n1")) == {"n1": KEPT}
    assert slurm.calls == [("drain", "n1"), ("undrain", "n1")]
    assert clock.now - NOW_S < 11


def test_a_delete_that_slurm_refuses_is_tried_again(slurm, outcomes):
    slurm.put("n1", "IDLE")
    slurm.refuses["n1"] = "Requested nodes are busy"
    slurm.before_read = [lambda: None, lambda: None, slurm.refuses.clear]

    assert outcomes(order(OrderKind.RELEASE, "n1")) == {"n1": DONE}
    assert slurm.did("delete") == [("n1",), ("n1",)]


def test_a_node_that_somebody_else_drained_is_never_undrained(slurm, outcomes):
    slurm.put("n1", "IDLE", "DRAIN", reason="interrupted")
    slurm.before_read = [lambda: None, lambda: slurm.put("n1", "MIXED", "DRAIN")]

    assert outcomes(order(OrderKind.RELEASE, "n1")) == {"n1": KEPT}
    assert slurm.did("undrain") == []


def test_an_interruption_during_a_release_keeps_the_node_drained(slurm, worker, outcomes):
    slurm.put("n1", "IDLE", "PLANNED")

    def interrupted() -> None:
        worker.carry_out([order(OrderKind.DRAIN, "n1", text="interrupted")], NOW_S)

    slurm.before_read = [lambda: None, lambda: None, interrupted]

    assert outcomes(order(OrderKind.RELEASE, "n1")) == {"n1": KEPT}
    assert slurm.did("undrain") == []
    assert slurm.nodes["n1"].state.is_drain


def test_a_release_repeated_after_a_crash_still_knows_its_own_drain(slurm, outcomes):
    made = order(OrderKind.RELEASE, "n1")
    slurm.put("n1", "IDLE", "DRAIN", reason=f"tidegate release {made.order_id}")
    slurm.before_read = [lambda: None, lambda: slurm.put("n1", "MIXED", "DRAIN")]

    assert outcomes(made) == {"n1": KEPT}
    assert slurm.did("undrain") == [("n1",)]


def test_a_node_that_a_pending_job_insists_on_stays(slurm, worker):
    slurm.put("n1", "IDLE")
    slurm.queue("7", required_nodes=("n1",))

    results = worker.carry_out([order(OrderKind.RELEASE, "n1")], NOW_S).results

    assert results[0].outcome is KEPT
    assert results[0].detail.startswith("Job 7 waits for this very node")
    assert slurm.calls == []


def test_a_guard_that_fails_keeps_the_node_as_it_is(slurm, outcomes):
    slurm.put("n1", "DOWN")

    assert outcomes(order(OrderKind.RELEASE, "n1", only_if=("IDLE",))) == {"n1": KEPT}
    assert slurm.calls == []


def test_a_drain_leaves_the_reason_of_a_person_who_was_faster(slurm, outcomes):
    slurm.put("n1", "MIXED", "DRAIN", reason="ada: looking at a fan")
    slurm.put("n2", "MIXED", "DRAIN", reason="tidegate release o-1")

    assert outcomes(order(OrderKind.DRAIN, "n1", "n2")) == {"n1": DONE, "n2": DONE}
    assert slurm.calls == [("drain", "n2")]


def test_a_node_that_a_person_has_drained_meanwhile_is_kept_until_it_is_down(slurm, outcomes):
    slurm.put("n1", "IDLE", "DRAIN", reason="ada: looking at a fan")
    slurm.put("n2", "DOWN", "DRAIN", reason="ada: looking at a fan")

    assert outcomes(order(OrderKind.RELEASE, "n1", "n2")) == {"n1": KEPT, "n2": DONE}
    assert slurm.calls == [("delete", "n2")]


def test_a_dead_node_can_be_released(slurm, outcomes):
    slurm.put("n1", "DOWN", "NOT_RESPONDING")

    assert outcomes(order(OrderKind.RELEASE, "n1")) == {"n1": DONE}


# -- drain and undrain ---------------------------------------------------------------------


def test_a_guarded_drain_gives_way_to_a_job_that_slipped_in(slurm, outcomes):
    slurm.put("n1", "IDLE")
    slurm.put("n2", "IDLE")
    slurm.before_read = [lambda: None, lambda: slurm.put("n1", "MIXED", "DRAIN")]

    made = order(OrderKind.DRAIN, "n1", "n2", only_if=("IDLE",))

    assert outcomes(made) == {"n1": KEPT, "n2": DONE}
    assert slurm.did("undrain") == [("n1",)]


def test_an_unguarded_drain_holds_whatever_runs(slurm, outcomes):
    slurm.put("n1", "MIXED")

    made = order(OrderKind.DRAIN, "n1", "gone", text="interrupted")

    assert outcomes(made) == {"n1": DONE, "gone": FAILED}
    assert slurm.nodes["n1"].reason == "interrupted"


def test_a_gang_is_undrained_in_one_command(slurm, outcomes):
    for name in ("n1", "n2", "n3"):
        slurm.put(name, "IDLE", "DRAIN")
    slurm.put("n4", "IDLE")

    made = order(OrderKind.UNDRAIN, "n1", "n2", "n3", "n4")

    assert outcomes(made) == dict.fromkeys(made.names, DONE)
    assert slurm.calls == [("undrain", "n1", "n2", "n3")]


def test_an_undrain_lifts_the_reason_it_names_and_no_other(slurm, outcomes):
    slurm.put("n1", "MIXED", "DRAIN", reason="tidegate: the cluster is stopped until 08:00")
    slurm.put("n2", "MIXED", "DRAIN", reason="tidegate: EC2 reclaims this spot instance")

    made = order(OrderKind.UNDRAIN, "n1", "n2", text="tidegate: the cluster is stopped until 08:00")

    assert outcomes(made) == {"n1": DONE, "n2": KEPT}
    assert slurm.calls == [("undrain", "n1")]


def test_a_weight_is_set_on_all_its_nodes_in_one_command(slurm, worker):
    slurm.put("n1", "IDLE")
    slurm.put("n2", "MIXED")

    carried = worker.carry_out([order(OrderKind.WEIGHT, "n1", "n2", text="12")], NOW_S)

    assert slurm.calls == [("weigh", "12", "n1", "n2")]
    assert carried.results == ()


@pytest.mark.parametrize("text", ["", "-1", "0x1", "1 state=down", "1234567890", "\u0661"])
def test_what_is_no_weight_reaches_no_command(slurm, outcomes, text):
    slurm.put("n1", "IDLE")

    assert outcomes(order(OrderKind.WEIGHT, "n1", text=text)) == {"n1": FAILED}
    assert slurm.calls == []


# -- jobs ----------------------------------------------------------------------------------


def test_only_a_running_job_that_may_is_requeued(slurm, outcomes):
    slurm.queue("1", "RUNNING")
    slurm.queue("2", "RUNNING", is_requeueable=False)
    slurm.queue("3", "PENDING")
    slurm.queue("4", "COMPLETING")

    made = order(OrderKind.REQUEUE, "1", "2", "3", "4", "5")

    assert outcomes(made) == {"1": DONE, "2": KEPT, "3": DONE, "4": KEPT, "5": KEPT}
    assert slurm.calls == [("requeue", "1")]


def test_a_refusal_of_slurm_is_a_failure_with_its_words(slurm, worker):
    slurm.queue("1", "RUNNING")
    slurm.refuses["1"] = "Requested operation is presently disabled"

    results = worker.carry_out([order(OrderKind.REQUEUE, "1")], NOW_S).results

    assert results[0].outcome is FAILED
    assert "presently disabled" in results[0].detail


def test_a_signal_goes_to_running_jobs_only(slurm, outcomes):
    slurm.queue("1_3", "RUNNING")
    slurm.queue("2", "PENDING")

    assert outcomes(order(OrderKind.SIGNAL, "1_3", "2", text="USR1")) == {"1_3": DONE, "2": KEPT}
    assert slurm.calls == [("signal", "USR1", "1_3")]


def test_a_signal_that_does_not_exist_is_refused(slurm, outcomes):
    slurm.queue("1", "RUNNING")

    assert outcomes(order(OrderKind.SIGNAL, "1", text="USR1; reboot")) == {"1": FAILED}
    assert slurm.calls == []


def test_a_comment_is_guarded_by_the_jobs_state(slurm, outcomes):
    slurm.queue("1", "RUNNING")
    slurm.queue("2", "PENDING")

    made = order(OrderKind.COMMENT, "1", "2", text="waits", only_if=("PENDING",))

    assert outcomes(made) == {"1": KEPT, "2": DONE}
    assert slurm.calls == [("comment", "2", "waits")]


def test_a_run_of_a_job_is_signalled_once_whoever_asks(slurm, worker):
    slurm.queue("1", "RUNNING", node_names=("n1", "n2"))
    first = order(OrderKind.SIGNAL, "1", text="USR1", on_nodes=("n1",))
    second = order(OrderKind.SIGNAL, "1", text="USR1", on_nodes=("n2",), order_id="o2")

    worker.carry_out([first], NOW_S)
    again = worker.carry_out([second], NOW_S)

    assert slurm.did("signal") == [("USR1", "1")]
    assert again.results[0].outcome is DONE


def test_the_next_run_of_a_job_is_signalled_again(slurm, worker):
    made = order(OrderKind.SIGNAL, "1", text="USR1")
    for nodes in (("n1",), ("n2",)):
        slurm.queue("1", "RUNNING", node_names=nodes)
        worker.carry_out([made], NOW_S)

    assert slurm.did("signal") == [("USR1", "1"), ("USR1", "1")]


def test_a_signal_that_slurm_refused_is_sent_when_it_is_asked_again(slurm, worker):
    slurm.queue("1", "RUNNING", node_names=("n1",))
    slurm.refuses["1"] = "slurmctld is busy"
    made = order(OrderKind.SIGNAL, "1", text="USR1")
    worker.carry_out([made], NOW_S)
    slurm.refuses.clear()

    worker.carry_out([made], NOW_S)

    assert slurm.did("signal") == [("USR1", "1"), ("USR1", "1")]


def test_a_heterogeneous_job_is_signalled_once_and_through_its_first_component(slurm, worker):
    """The others have no script; Slurm passes on what the first one gets."""
    slurm.queue("7", "RUNNING", node_names=("n1",), het_job_id="7")
    slurm.queue("8", "RUNNING", node_names=("n2",), het_job_id="7")
    slurm.queue("9", "RUNNING", node_names=("n3",), het_job_id="7")

    first = worker.carry_out([order(OrderKind.SIGNAL, "8", "9", text="B:USR1")], NOW_S)
    later = order(OrderKind.SIGNAL, "7", text="B:USR1", order_id="o2")
    again = worker.carry_out([later], NOW_S)

    assert slurm.did("signal") == [("B:USR1", "7")]
    assert {one.outcome for one in (*first.results, *again.results)} == {DONE}


def test_a_refusal_of_the_first_components_signal_is_told_of_the_one_that_was_named(slurm, worker):
    slurm.queue("7", "RUNNING", node_names=("n1",), het_job_id="7")
    slurm.queue("8", "RUNNING", node_names=("n2",), het_job_id="7")
    slurm.refuses["7"] = "slurmctld is busy"

    (result,) = worker.carry_out([order(OrderKind.SIGNAL, "8", text="USR1")], NOW_S).results

    assert (result.name, result.outcome) == ("8", FAILED)
    assert "slurmctld is busy" in result.detail


def test_a_heterogeneous_job_that_one_of_its_nodes_saves_gets_no_second_signal(slurm, worker):
    slurm.put("n2", "MIXED", "DRAIN", reason=SAVING)
    for job_id, name in (("7", "n1"), ("8", "n2"), ("9", "n3")):
        slurm.queue(job_id, "RUNNING", node_names=(name,), het_job_id="7")

    worker.carry_out([order(OrderKind.SIGNAL, "7", "9", text="USR1")], NOW_S)

    assert slurm.did("signal") == []


def test_a_node_that_saves_its_jobs_itself_keeps_them(slurm, worker):
    slurm.put("n1", "MIXED", "DRAIN", reason=SAVING)
    slurm.put("n2", "MIXED")
    slurm.queue("1", "RUNNING", node_names=("n1",))
    slurm.queue("2", "RUNNING", node_names=("n2",))

    worker.carry_out([order(OrderKind.DRAIN, "n1", "n2")], NOW_S)
    done = worker.carry_out([order(OrderKind.SIGNAL, "1", "2", text="USR1")], NOW_S)

    assert slurm.calls == [("drain", "n2"), ("signal", "USR1", "2")]
    assert {one.outcome for one in done.results} == {DONE}


def test_users_hear_once_of_each_stop_of_the_cluster_and_of_no_other_drain(slurm, clock):
    heard: list[str] = []
    worker = Worker(slurm, clock.sleep, tell=heard.append)
    slurm.put("n1", "MIXED")
    slurm.put("n2", "MIXED")
    tonight = "tidegate: the cluster is stopped until Tue 24 Nov 08:00 Asia/Tokyo"

    for text in ("tidegate: its notice", tonight, tonight, tonight.replace("24", "25")):
        for name in ("n1", "n2"):
            worker.carry_out([order(OrderKind.DRAIN, name, text=text)], NOW_S)

    assert heard == [
        "Tidegate: the cluster is stopped until Tue 24 Nov 08:00 Asia/Tokyo."
        " No job starts until then.",
        "Tidegate: the cluster is stopped until Tue 25 Nov 08:00 Asia/Tokyo."
        " No job starts until then.",
    ]
