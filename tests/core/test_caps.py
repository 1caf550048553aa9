"""Limits of accounting that Slurm does not show while no node is up."""

from dataclasses import replace
from typing import Any

import pytest

from tests.core.reading import launches, why
from tests.make import A10G, NOW_S, T4, cluster, digest, job, pool, snapshot
from tidegate.core.demand.accounting import Caps
from tidegate.core.model.cluster import Limits, SpendingBudget
from tidegate.core.model.ledger import Charge
from tidegate.core.model.slurm import Association, Job, Licence, Shape, Spread
from tidegate.core.offers.spend import day_of
from tidegate.core.planner import plan


def admitted(jobs: list[Job], *caps: Association) -> list[int]:
    """How many of each pending job may start, in this order."""
    counted = Caps(digest(jobs, associations=caps).reading)
    return [counted.admit(each)[0] for each in jobs if each.is_pending]


ACCOUNT = Association("account lab", account="lab", in_all=3, accounts_below=("vision",))
PER_USER = Association("qos normal", qos="normal", per_user=2)
PER_JOB = Association("qos normal", qos="normal", per_job=4)
TYPED = Association("account lab", account="lab", tres="gres/gpu:a10g", in_all=1)


@pytest.mark.parametrize(
    ("cap", "jobs", "expected"),
    [
        (ACCOUNT, [job(n, account="lab") for n in range(5)], [1, 1, 1, 0, 0]),
        (ACCOUNT, [job(1, account="lab", gpus=2), job(2, account="vision", gpus=2)], [1, 0]),
        (ACCOUNT, [job(1, account="other", gpus=8)], [1]),
        (ACCOUNT, [job(1, account="lab", on=["i-1"], gpus=2), job(2, account="lab", count=5)], [1]),
        (ACCOUNT, [job(1, account="lab", nodes=2, gpus=2)], [0]),
        (ACCOUNT, [job(1, account="lab", gpus=0, count=9)], [9]),
        (PER_USER, [job(n, qos="normal") for n in range(3)], [1, 1, 0]),
        (PER_JOB, [job(1, qos="normal", nodes=2, gpus=4), job(2, qos="normal", gpus=4)], [0, 1]),
        (TYPED, [job(1, account="lab", gpu_type="a10g", gpus=2)], [0]),
        (TYPED, [job(1, account="lab", gpu_type="t4", gpus=2)], [1]),
        (TYPED, [job(1, account="lab", gpu_type="", gpus=2)], [1]),
    ],
)
def test_a_cap_admits_as_many_as_slurm_will_start(
    cap: Association, jobs: list[Job], expected: list[int]
) -> None:
    assert admitted(jobs, cap) == expected


def cap(tres: str, **limits: int) -> Association:
    return replace(Association("qos normal", qos="normal", tres=tres), **limits)  # type: ignore[arg-type]


def normal(n: int, **more: object) -> Job:
    return job(n, qos="normal", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limit", "jobs", "expected"),
    [
        (cap("job", in_all=3), [normal(n) for n in range(5)], [1, 1, 1, 0, 0]),
        (cap("job", per_user=2), [normal(1, count=9)], [2]),
        (cap("job", per_user=2), [normal(1, on=["i-1"]), normal(2), normal(3)], [1, 0]),
        (cap("job", per_account=1), [normal(1, account="a"), normal(2, account="b")], [1, 1]),
        (cap("job", per_account=1), [normal(1, account="a"), normal(2, account="a")], [1, 0]),
        (cap("node", in_all=4), [normal(1, nodes=3), normal(2, nodes=2), normal(3)], [1, 0, 1]),
        (cap("node", per_job=2), [normal(1, nodes=3), normal(2, nodes=2)], [0, 1]),
        (cap("cpu", in_all=10), [normal(1, cpus=8, gpus=0), normal(2, cpus=4)], [1, 0]),
        (cap("mem", in_all=5000), [normal(1, nodes=2, memory_mib=2000), normal(2)], [1, 1]),
        (cap("mem", in_all=5000), [normal(1, memory_mib=5001)], [0]),
        (cap("mem", in_all=3999), [normal(1, nodes=2, memory_mib=2000), normal(2)], [0, 1]),
        (cap("license/matlab", in_all=2), [normal(1, licences=(("matlab", 2),), count=2)], [1]),
        (cap("gres/neuron", in_all=0), [normal(1, gpus=2)], [1]),
    ],
)
def test_a_cap_on_any_tres_admits_as_many_as_slurm_will_start(
    limit: Association, jobs: list[Job], expected: list[int]
) -> None:
    assert admitted(jobs, limit) == expected


def test_licences_are_given_once_beside_what_running_jobs_hold() -> None:
    jobs = [
        job(1, on=["i-1"], licences=(("matlab", 2),)),
        job(2, licences=(("matlab", 1), ("abaqus", 1)), count=9),
        job(3, licences=(("matlab", 1),)),
        job(4),
    ]
    reading = replace(digest(jobs).reading, licences=(Licence("matlab", 2), Licence("abaqus", 9)))

    caps = Caps(reading)

    assert [caps.admit(each)[0] for each in jobs[1:]] == [2, 0, 1]
    assert caps.admit(jobs[2])[1] == (
        "the cluster's count of licence matlab allows 4 licences in all, 4 are used or promised"
    )


def test_of_alternative_licences_one_that_is_free_is_taken() -> None:
    choices = (("matlab", 1), ("octave", 1))
    jobs = [job(n, licence_choices=choices) for n in range(3)]
    reading = replace(digest(jobs).reading, licences=(Licence("matlab", 1), Licence("octave", 1)))

    caps = Caps(reading)

    assert [caps.admit(each)[0] for each in jobs] == [1, 1, 0]


HOUR = {"time_limit_s": 3600.0}
TIMED = cap("minutes/gres/gpu", in_all=150, per_job=120)


@pytest.mark.parametrize(
    ("limit", "jobs", "expected"),
    [
        # Running jobs have used their minutes already: `in_all` is what is left beside them.
        (TIMED, [normal(1, on=["i-1"], gpus=8, **HOUR), normal(2, gpus=2, **HOUR)], [1]),
        (TIMED, [normal(1, **HOUR), normal(2, gpus=2, **HOUR), normal(3, **HOUR)], [1, 0, 1]),
        (TIMED, [normal(1, gpus=3, **HOUR), normal(2, gpus=2, **HOUR)], [0, 1]),
        (TIMED, [normal(1), normal(2, gpus=0)], [0, 1]),
        (cap("wall", per_job=60), [normal(1, **HOUR), normal(2, time_limit_s=3601.0)], [1, 0]),
        (cap("left/gres/gpu", in_all=0), [normal(1), normal(2, gpus=0)], [0, 1]),
        (cap("left/wall", in_all=0), [normal(1, gpus=0), job(2)], [0, 1]),
        (cap("gres/gpu", per_node=2), [normal(1, gpus=3), normal(2, nodes=4, gpus=2)], [0, 1]),
    ],
)
def test_caps_on_time_and_on_what_a_node_gives_are_held_against_pending_jobs(
    limit: Association, jobs: list[Job], expected: list[int]
) -> None:
    assert admitted(jobs, limit) == expected


def test_what_stops_a_job_is_told_in_minutes_and_per_node() -> None:
    limits = [TIMED, cap("wall", per_job=90), cap("gres/gpu", per_node=2)]
    asked = [normal(1, gpus=1), normal(2, gpus=2, time_limit_s=7200.0), normal(3, gpus=3, **HOUR)]
    caps = [Caps(digest([], associations=[each]).reading) for each in limits]

    assert [each.admit(asked[number])[1] for number, each in enumerate(caps)] == [
        "qos normal allows 120 minutes of GPUs per job, it sets no limit",
        "qos normal allows 90 minutes of wall time per job, it asks 120",
        "qos normal allows 2 GPUs per node, it asks 3",
    ]
    assert Caps(digest([], associations=[cap("left/wall", in_all=0)]).reading).admit(asked[0]) == (
        0,
        "qos normal has used up its minutes of wall time",
    )


def test_a_job_that_may_spread_takes_as_many_nodes_as_a_cap_per_node_wants() -> None:
    spreads = (Spread(2, Shape(4, "a10g")), Spread(4, Shape(2, "a10g")))
    wide = normal(1, gpus=8, gpu_type="a10g", spreads=spreads)
    limits = [cap("gres/gpu", per_node=3), cap("job", in_all=9)]

    made = plan(snapshot([wide], associations=limits))

    assert [(x.count, x.gated_for) for x in launches(made)] == [(4, "1")]


LAB = Association("account lab", account="lab", in_all=1)
LAB_JOBS = Association("user ada of account lab", "lab", "ada", tres="job", per_user=1)
BIG = Association("qos big", qos="big", in_all=3)
MANY_JOBS = Association("qos big", qos="big", tres="job", per_user=4)
PER_USER_ONLY = Association("qos big", qos="big", per_user=3)
OF_PARTITION = Association("qos partq", qos="partq", partitions=("gpu",), in_all=2)


@pytest.mark.parametrize(
    ("caps", "gpus", "expected"),
    [
        # As 22.05 did it: the QOS stands in for its accounts, limit by limit.
        ((LAB,), [2, 1, 1], [0, 1, 0]),
        ((LAB, BIG), [2, 1, 1], [1, 1, 0]),
        ((LAB, PER_USER_ONLY), [2, 1, 1], [0, 1, 0]),
        ((LAB_JOBS, MANY_JOBS), [1, 1], [1, 1]),
        ((LAB_JOBS, BIG), [1, 1], [1, 0]),
        ((LAB, BIG, OF_PARTITION), [1, 2, 1], [1, 0, 1]),
        ((LAB, OF_PARTITION), [2, 1], [1, 0]),
    ],
)
def test_a_qos_stands_in_for_the_same_limit_of_an_association(
    caps: tuple[Association, ...], gpus: list[int], expected: list[int]
) -> None:
    jobs = [job(n, account="lab", qos="big", gpus=each) for n, each in enumerate(gpus)]

    assert admitted(jobs, *caps) == expected


def test_an_association_of_a_partition_stands_in_for_that_of_the_user() -> None:
    scope = "user ada of account lab"
    everywhere = Association(scope, "lab", "ada", in_all=1, but_partitions=("gpu",))
    here = Association(f"{scope} in partition gpu", "lab", "ada", in_all=2, partitions=("gpu",))
    elsewhere = replace(here, partitions=("cpu",), in_all=0)
    lab = [job(n, account="lab") for n in range(3)]

    others = [replace(each, partitions=("debug",)) for each in lab]

    assert admitted(lab, everywhere, here, elsewhere) == [1, 1, 0]
    assert admitted(others, everywhere, here, elsewhere) == [1, 0, 0]


def test_a_licence_of_the_cluster_is_held_against_jobs_of_a_qos_that_counts_it_too() -> None:
    jobs = [job(n, qos="big", licences=(("matlab", 1),)) for n in range(3)]
    caps = (Association("qos big", qos="big", tres="license/matlab", in_all=9),)
    reading = replace(digest(jobs, associations=caps).reading, licences=(Licence("matlab", 2),))

    counted = Caps(reading)

    assert [counted.admit(each)[0] for each in jobs] == [1, 1, 0]


def test_jobs_that_start_together_are_admitted_together_or_not_at_all() -> None:
    first, second, third = (job(n, account="lab", gpus=2) for n in range(3))
    caps = Caps(digest([], associations=[ACCOUNT]).reading)

    assert caps.admit_together([first, second]) == (
        "account lab allows 3 GPUs in all, 2 are used or promised"
    )
    assert caps.admit(third) == (1, "")


def test_the_tightest_of_several_caps_decides_and_is_named() -> None:
    wide = Association("account lab", account="lab", in_all=10)
    narrow = Association("user ada of account lab", account="lab", user="ada", in_all=1)

    caps = Caps(digest([], associations=[wide, narrow]).reading)

    assert caps.admit(job(1, account="lab", count=4)) == (
        1,
        "user ada of account lab allows 1 GPUs in all, 0 are used or promised",
    )


def test_a_job_that_cannot_be_served_holds_no_place_under_a_cap() -> None:
    """The first can never be bought; waiting for it, the second would never start."""
    small = cluster(pool(), pool("a10g", (A10G,), limits=Limits(nodes=0)))
    first = job(1, gpus=2, gpu_type="a10g", qos="q", priority=9)
    cap = Association("qos q", qos="q", in_all=2)

    made = plan(snapshot([first, job(2, gpus=1, qos="q")], of=small, associations=[cap]))

    assert [launch.for_jobs for launch in launches(made)] == [("2",)]
    assert "limited to 0 nodes" in why(made)


def test_jobs_like_one_that_cannot_be_served_hold_no_place_under_a_cap_in_their_turn() -> None:
    """However many they are: a plan does not get past them one by one."""
    small = cluster(pool(), pool("a10g", (A10G,), limits=Limits(nodes=0)))
    never = [job(n, gpus=2, gpu_type="a10g", qos="q", priority=9) for n in range(1, 31)]
    held = job(40, gpus=2, gpu_type="a10g", qos="q", reason="JobHeldUser")
    cap = Association("qos q", qos="q", in_all=2)
    jobs = [*never, held, job(50, gpus=1, qos="q")]

    made = plan(snapshot(jobs, of=small, associations=[cap]))

    assert [launch.for_jobs for launch in launches(made)] == [("50",)]
    assert {why(made, each.job_id) for each in never} == {why(made, "1")}
    assert "limited to 0 nodes" in why(made, "30")
    assert "held" in why(made, "40")


def test_one_that_has_lost_less_is_not_like_one_that_spot_would_lose_again() -> None:
    few = cluster(pool(types=(T4,)), limits=Limits(usd_per_hour=0.3))
    hazards = dict.fromkeys(few.prices, 0.05)
    asked: dict[str, Any] = {"qos": "q", "priority": 9, "time_limit_s": 3600.0}
    cap = Association("qos q", qos="q", in_all=1)
    lost, first = replace(job(1, **asked), restarts=4), replace(job(2, **asked), priority=1)

    made = plan(snapshot([lost, first], of=replace(few, hazards=hazards), associations=[cap]))

    assert [launch.for_jobs for launch in launches(made)] == [("2",)]
    assert "was requeued 4 times" in why(made, "1")


def test_nor_is_one_that_another_user_pays_for() -> None:
    """The first one's budget of today is spent."""
    of = replace(cluster(), budgets={"user ada": SpendingBudget(usd_per_day=1.0)})
    cap = Association("qos q", qos="q", in_all=1)
    jobs = [job(1, qos="q", priority=9), replace(job(2, qos="q"), user="bob")]
    seen = snapshot(jobs, of=of, associations=[cap])

    made = plan(replace(seen, spent=(Charge(day_of(NOW_S).name, "user ada", 2.0),)))

    assert [launch.for_jobs for launch in launches(made)] == [("2",)]


def test_many_that_cannot_be_served_hold_no_place_though_each_asks_something_else() -> None:
    """Each is refused in its turn; a plan that gave up before the last one would buy nothing,
    and so would every plan after it.
    """
    small = cluster(pool(), pool("a10g", (A10G,), limits=Limits(nodes=0)))
    never = [job(n, gpus=2, gpu_type="a10g", qos="q", priority=9, cpus=n) for n in range(1, 31)]
    cap = Association("qos q", qos="q", in_all=2)

    made = plan(snapshot([*never, job(50, gpus=1, qos="q")], of=small, associations=[cap]))

    assert [launch.for_jobs for launch in launches(made)] == [("50",)]
    assert all("limited to 0 nodes" in why(made, each.job_id) for each in never)


def test_a_job_that_gets_no_node_holds_no_licence_that_another_waits_for() -> None:
    jobs = [
        job(1, priority=9, gpus=64, licences=(("matlab", 1),)),
        job(2, licences=(("matlab", 1),)),
    ]
    seen = snapshot(jobs)
    assert seen.digest is not None
    reading = replace(seen.digest.reading, licences=(Licence("matlab", 1),))

    made = plan(replace(seen, digest=replace(seen.digest, reading=reading)))

    assert [each.job_id for each in made.served] == ["2"]


def test_of_an_array_as_many_tasks_are_needed_as_a_cap_admits() -> None:
    """The first of its kind in the queue, and one that comes after it."""
    cap = Association("qos q", qos="q", in_all=3)
    jobs = [job(1, qos="q", count=2, priority=9), job(2, qos="q", count=5)]

    made = plan(snapshot(jobs, associations=[cap]))
    alone = plan(snapshot(jobs[1:], associations=[cap]))

    assert [sum(each.count for each in launches(one)) for one in (made, alone)] == [3, 3]


def test_of_two_caps_that_allow_the_same_always_the_same_one_is_named() -> None:
    caps = [Association(f"qos {name}", qos="q", per_job=1) for name in ("a", "b")]

    said = {
        Caps(digest([job(1, qos="q", gpus=2)], associations=order).reading).admit(
            job(1, qos="q", gpus=2)
        )
        for order in (caps, caps[::-1])
    }

    assert said == {(0, "qos a allows 1 GPUs per job, it asks 2")}
