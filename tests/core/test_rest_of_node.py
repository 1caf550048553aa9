"""Which GPUs of a new node are cut for which jobs, and into what those that nobody needs yet."""

from dataclasses import replace

from tests.core.reading import launches
from tests.core.shared_gpus import P4D, PROFILES, asks, cut, waiting
from tidegate.core.model.mig import instances
from tidegate.core.planner import plan

THREE = tuple(each for each in PROFILES if each.name in ("1g.5gb", "2g.10gb", "3g.20gb"))
CUT = cut(replace(P4D, profiles=THREE))


def layout(*jobs):
    (launch,) = launches(plan(waiting(*jobs, of=CUT)))
    return launch.layout


def exclusive(job):
    return replace(job, shape=replace(job.shape, is_exclusive=True))


def running(profile, count):
    """Each on a node that is none of ours."""
    return [
        replace(asks(profile, job_id=100 + number), state="RUNNING", node_names=("static-1",))
        for number in range(count)
    ]


def test_whole_gpus_that_nobody_needs_yet_are_shared_out_among_the_profiles():
    """Else the next job of another profile finds none, and buys a node of eight GPUs more."""
    assert layout(asks("1g.5gb")) == "6=1g.5gb:7 1=1g.5gb:1/2g.10gb:3 1=3g.20gb:2"


def test_what_runs_tells_who_will_come_next():
    found = instances(layout(asks("1g.5gb"), *running("3g.20gb", 12)))

    assert found == {"1g.5gb": 7 + 1, "2g.10gb": 3, "3g.20gb": 6 * 2}


def test_what_waits_counts_as_what_runs():
    found = instances(layout(asks("3g.20gb", 9)))

    assert found == {"1g.5gb": 7 + 1, "2g.10gb": 3, "3g.20gb": 6 * 2}


def test_halves_of_gpus_stand_beside_small_instances_which_alone_leave_an_eighth_free():
    """Ten halves on five GPUs would leave three for what takes 22 eighths: one node more."""
    (launch,) = launches(
        plan(waiting(asks("1g.5gb", 20), asks("2g.10gb"), asks("3g.20gb", 10), of=CUT))
    )

    assert launch.count == 1


def test_no_more_halves_are_put_apart_than_small_ones_can_stand_beside():
    assert layout(asks("1g.5gb"), asks("3g.20gb", 7)).startswith(
        "1=1g.5gb:4/3g.20gb:1 6=3g.20gb:2 "
    )


def test_a_job_for_half_a_gpu_that_wants_its_node_for_itself_gets_one():
    """Nothing stands beside it, so that it waits for no small ones."""
    (launch,) = launches(plan(waiting(exclusive(asks("3g.20gb")), of=CUT)))

    assert launch.for_jobs == ("3g20gb",)
    assert "3g.20gb" in instances(launch.layout)
