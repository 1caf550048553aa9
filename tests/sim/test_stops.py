"""What a stop does to jobs that run, what people override instead, and nodes ready at a time."""

from dataclasses import replace

from tests.make import T4
from tests.sim import test_nights, test_world
from tests.sim.test_nights import SCHEDULES, START_S, STOP_S, is_over, world
from tests.sim.test_world import one_gpu, states
from tidegate.core.model.calendar import AlwaysUp, OnRunningJobs, OverrideKind, ScheduleOverride
from tidegate.core.model.ec2 import Market, Offering
from tidegate.sim.world import SimWorld
from tidegate.wire.calendar import PreWarm

LONG_S = 20 * 3600.0
POLICY = {each: replace(SCHEDULES, on_running_jobs=each) for each in OnRunningJobs}


def run(w: SimWorld, until_s: float) -> None:
    test_nights.run(w, until_s, step_s=20.0)


def override(
    w: SimWorld, kind: OverrideKind, from_s: float, until_s: float, **more: object
) -> None:
    """Of ada, as `tidegate keep-up` and `stop` write it: seconds since midnight."""
    midnight_s = w.clock.now_s() // 86400 * 86400
    made = ScheduleOverride(
        f"{kind}-{from_s}",
        kind,
        midnight_s + from_s,
        midnight_s + until_s,
        w.clock.now_s(),
        "ada",
        **more,  # type: ignore[arg-type]
    )
    w.ledger.override_hours(made)


def test_jobs_are_requeued_two_minutes_after_the_stop_and_run_again_in_the_morning() -> None:
    w = world(calendar=POLICY[OnRunningJobs.REQUEUE])
    run(w, STOP_S - 300)
    long = w.slurm.submit(one_gpu(duration_s=8 * 3600.0))
    run(w, STOP_S + 60)
    before = states(w)[long]

    run(w, STOP_S + 600)
    evening = (states(w)[long], is_over(w))
    run(w, START_S + 600)

    assert before == "RUNNING"
    assert evening == ("PENDING", True)
    assert states(w)[long] == "RUNNING"


def test_a_job_may_go_on_for_as_long_as_the_file_says() -> None:
    w = world(calendar=replace(POLICY[OnRunningJobs.REQUEUE], wait_s=1800.0))
    run(w, STOP_S - 300)
    short = w.slurm.submit(one_gpu(duration_s=1500.0))
    long = w.slurm.submit(one_gpu(duration_s=LONG_S))

    run(w, STOP_S + 1700)
    half = (states(w)[short], states(w)[long])
    run(w, STOP_S + 2700)

    assert half == ("COMPLETED", "RUNNING")
    assert (states(w)[long], is_over(w)) == ("PENDING", True)


def test_a_job_that_may_not_be_requeued_is_waited_for_unless_all_ends() -> None:
    ends = {}
    for policy in (OnRunningJobs.REQUEUE, OnRunningJobs.STOP):
        w = world(calendar=POLICY[policy])
        run(w, STOP_S - 300)
        stubborn = w.slurm.submit(one_gpu(duration_s=LONG_S, is_requeueable=False))
        run(w, STOP_S + 1200)
        ends[policy] = (w.slurm.jobs[stubborn].state, is_over(w))

    assert ends[OnRunningJobs.REQUEUE] == ("RUNNING", False)
    assert ends[OnRunningJobs.STOP][0] in ("NODE_FAIL", "FAILED", "CANCELLED")
    assert ends[OnRunningJobs.STOP][1]


def test_a_job_that_asks_for_it_saves_its_state_before_it_is_requeued() -> None:
    w = world(calendar=POLICY[OnRunningJobs.REQUEUE])
    run(w, STOP_S - 300)
    job_id = w.slurm.submit(one_gpu(duration_s=LONG_S, comment="tidegate:ckpt=USR1@20"))
    run(w, STOP_S + 600)

    assert w.slurm.jobs[job_id].saved_s > 0
    assert states(w)[job_id] == "PENDING"


def test_a_job_that_has_saved_its_state_runs_for_as_long_as_before() -> None:
    """Checks ask how long its run has lasted."""
    w = world()
    job = w.slurm.jobs[w.slurm.submit(one_gpu(duration_s=600.0, comment="tidegate:ckpt=USR1@20"))]
    run(w, 300)
    began_s = job.started_at_s
    assert job.state == "RUNNING"

    for after_s in (50, 100):
        w.step(after_s)
        w.slurm.signal([job.job_id], "USR1")

    now_s = w.clock.now_s()
    assert (job.started_at_s, job.saved_s) == (began_s, now_s - began_s)
    assert job.ends_at_s == began_s + 600.0


def test_kept_up_the_cluster_stays_and_goes_when_the_override_is_over() -> None:
    w = world()
    run(w, STOP_S - 600)
    override(w, OverrideKind.KEEP_UP, STOP_S - 600, STOP_S + 3600, why="demo")
    run(w, STOP_S + 1800)
    job_id = w.slurm.submit(one_gpu(duration_s=60.0))
    run(w, STOP_S + 2400)
    kept = (states(w)[job_id], w.head.is_up)

    run(w, STOP_S + 3600 + 600)

    assert kept == ("COMPLETED", True)
    assert is_over(w)


def test_stopped_by_a_person_a_cluster_without_schedules_comes_back_by_itself() -> None:
    w = world(calendar=AlwaysUp())
    run(w, 600)
    override(w, OverrideKind.STOP, 600, 3 * 3600)
    waiting = w.slurm.submit(one_gpu())
    run(w, 3600)
    stopped = (is_over(w), w.head.num_stops, states(w)[waiting])

    run(w, 3 * 3600 + 1200)

    assert stopped == (True, 1, "PENDING")
    assert w.head.is_up
    assert w.slurm.jobs[waiting].state == "COMPLETED"


def test_after_that_a_person_may_stop_the_head_for_good() -> None:
    w = world(calendar=AlwaysUp())
    override(w, OverrideKind.STOP, 0, 3600)
    run(w, 3 * 3600)
    came_back = w.head.is_up
    w.head.stop()

    run(w, 6 * 3600)

    assert came_back
    assert not w.head.is_up


def test_a_stop_that_begins_later_reaches_the_nodes_within_a_minute() -> None:
    """By the head's own reports: nothing fires at that moment, and reconcile does not run here."""
    w = world(calendar=AlwaysUp())
    w.slurm.submit(one_gpu(duration_s=LONG_S))
    test_world.run(w, 600)
    override(w, OverrideKind.STOP, 940, 1800)

    test_world.run(w, 335)
    before = [node.is_drain for node in w.slurm.nodes.values()]
    test_world.run(w, 5 + 61)

    assert before == [False]
    assert [node.is_drain for node in w.slurm.nodes.values()] == [True]


def test_the_younger_override_counts() -> None:
    w = world()
    run(w, 600)
    override(w, OverrideKind.STOP, 600, 3000)
    run(w, 1800)
    stopped = is_over(w)
    override(w, OverrideKind.KEEP_UP, 1800, 2400)

    run(w, 2300)

    assert stopped
    assert w.head.is_up


def test_the_head_may_stay_while_the_nodes_go() -> None:
    w = world(calendar=replace(SCHEDULES, keeps_head=True))
    w.slurm.submit(one_gpu())
    run(w, STOP_S + 600)

    assert w.compute.live() == ()
    assert (w.head.is_up, w.head.num_stops) == (True, 0)


WARM = replace(SCHEDULES, pre_warm=(PreWarm("0 9 * * *", {"t4": 2}, 1800.0, lead_s=900.0),))


def test_nodes_are_ready_at_the_time_and_go_when_nobody_comes() -> None:
    w = world(calendar=WARM)
    run(w, START_S)
    ready = [node.name for node in w.slurm.nodes.values() if not node.is_drain]

    run(w, START_S + 3600)

    assert len(ready) == 2
    assert w.compute.live() == ()


def test_a_shortage_at_the_start_is_met_with_another_size() -> None:
    w = world(calendar=WARM)
    for zone in ("us-east-1a", "us-east-1b"):
        for market in Market:
            w.compute.shortages[Offering(T4.name, zone, market)] = 0

    run(w, START_S)

    sizes = {one.offering.instance_type for one in w.compute.live()}
    assert len(w.compute.live()) == 2
    assert T4.name not in sizes
