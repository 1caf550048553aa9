"""Why a job is where it is: each link of the chain, from what looks have stored."""

from dataclasses import replace
from pathlib import Path

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
from tidegate.core.explain.answer import Answer, Status, answer, rows_of
from tidegate.core.explain.chain import LINKS, chain
from tidegate.core.explain.verdicts import verdicts_of
from tidegate.core.model.calendar import Wanted
from tidegate.core.model.cluster import Limits
from tidegate.core.model.ec2 import Market
from tidegate.core.model.ledger import Launch, Phase
from tidegate.core.model.resting import Resting
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan


def asked(job_id: str, snapshot: Snapshot) -> Answer:
    made = plan(snapshot)
    launches = [each for each in made.actions if isinstance(each, Launch)]
    return answer(job_id, snapshot, verdicts_of(made, snapshot, launches))


def test_a_job_too_large_for_every_pool_hears_which_comes_nearest():
    found = asked("1", snapshot([job(1, gpus=8, gpu_type="")]))

    assert found.status is Status.WAITING
    assert found.pools == (
        "a10g: g5.12xlarge has 4 GPUs, the job asks 8",
        "t4: g4dn.12xlarge has 4 GPUs, the job asks 8",
    )
    assert found.change == ("ask at most 4 GPUs per node for pool a10g",)
    assert found.headline == ("job 1 waits: g5.12xlarge has 4 GPUs, the job asks 8; 1 more below")


def test_a_job_at_a_limit_hears_which_and_what_would_help():
    seen = snapshot(
        [job(1)],
        of=cluster(pool(limits=Limits(nodes=1))),
        records=[record("i-1")],
        instances=[instance("i-1")],
        nodes=[node("i-1", gpus_alloc=1, state="ALLOCATED")],
    )

    found = asked("1", seen)

    assert "pool t4 is limited to 1 nodes, 1 are used" in found.pools[0]
    assert found.change == ("wait for nodes to be released, or have the limits of pool t4 raised",)


@pytest.mark.parametrize(
    ("limits", "said", "change"),
    [
        (
            Limits(nodes=4),
            "pool t4 is limited to 4 nodes; the job asks 6",
            "ask at most 4 nodes (scontrol update JobId=1 NumNodes=4), or have the limits of"
            " pool t4 raised",
        ),
        (
            Limits(gpus=5),
            "pool t4 is limited to 5 GPUs, which allows 5 such nodes; the job asks 6",
            "ask at most 5 nodes (scontrol update JobId=1 NumNodes=5), or have the limits of"
            " pool t4 raised",
        ),
        (
            Limits(usd_per_hour=0.01),
            "pool t4 is limited to 0.01 USD per hour, which allows 0 such nodes; the job asks 6",
            "have the limits of pool t4 raised: it allows no such node",
        ),
    ],
)
def test_a_job_that_a_limit_can_never_let_in_is_not_told_to_wait(
    limits: Limits, said: str, change: str
) -> None:
    of = cluster(pool(types=(T4,), markets=(Market.ON_DEMAND,), limits=limits))

    found = asked("1", snapshot([job(1, nodes=6)], of=of))

    assert said in found.pools[0]
    assert found.change == (change,)


def test_a_job_behind_a_resting_offering_hears_ec2_s_words_and_the_next_try():
    resting = [
        Resting(each, NOW_S + 60, 2, "InsufficientInstanceCapacity", "We have none.")
        for _, each in pool("a10g", (A10G,)).offerings()
    ]
    found = asked("1", snapshot([job(1, gpu_type="a10g")], resting=resting))

    assert found.headline == (
        "job 1 waits: all 2 offerings that fit rest after EC2 refused them, "
        "the next try is at 08:01:00 UTC"
    )
    assert "g5.12xlarge/us-east-1a/spot until 08:01:00 UTC (refused 2x)" in found.pools[0]
    assert found.change == (
        "wait for the next try, or have the pool allow more types, zones or markets",
    )
    assert "EC2 said InsufficientInstanceCapacity: We have none; so" in found.pools[0]
    assert found.pools[1] == "t4: g4dn.12xlarge has t4 GPUs, not a10g"


def test_a_shortage_and_a_broken_image_of_one_offering_are_both_told():
    every = [each for _, each in pool("a10g", (A10G,)).offerings()]
    short = [Resting(each, NOW_S + 60, 2, "Insufficient", "We have none.") for each in every]
    broken = [
        Resting(*(each, NOW_S + 900, 1, "NodeTooSmall", "no GPUs"), pool="a10g", template="d-1")
        for each in every
    ]

    found = asked("1", snapshot([job(1, gpu_type="a10g")], resting=[*short, *broken]))

    assert "EC2 said Insufficient: We have none; so these rest: " in found.pools[0]
    assert "the last nodes of it failed, NodeTooSmall: no GPUs; so these rest: " in found.pools[0]
    assert "until 08:15:00 UTC (failed 1x)" in found.pools[0]


def test_a_job_for_which_a_node_boots_hears_when_it_comes():
    seen = snapshot(
        [job(1)],
        records=[record(phase=Phase.LAUNCHED)],
        instances=[instance()],
    )

    found = asked("1", seen)

    assert found.status is Status.STARTING
    assert found.headline.endswith("in about 200 s")
    assert found.nodes == (
        "i-1 g4dn.xlarge/us-east-1a/spot: boots for 100 s, EC2 says running, joins in about 200 s",
        "it pays 0.20 USD an hour for its part of it",
    )
    assert found.pools == (
        "a10g: g5.12xlarge has a10g GPUs, not t4",
        "t4: chosen, 1 x g4dn.xlarge/us-east-1a/spot",
    )


def test_a_node_that_boots_too_long_is_called_late():
    seen = snapshot(
        [job(1)],
        records=[record(phase=Phase.LAUNCHED, age_s=400)],
        instances=[instance(age_s=400)],
    )

    assert "late: given up after 960 s" in asked("1", seen).nodes[0]


def test_a_purchase_of_this_very_look_is_told_before_its_nodes_are_known():
    (line,) = asked("1", snapshot([job(1)])).nodes

    assert line.startswith("asked of EC2: 1 x g4dn.xlarge/us-east-1a/spot (launch ")


def test_a_job_that_fits_two_pools_hears_that_the_other_was_not_chosen():
    seen = snapshot(
        [job(1, gpu_type="")],
        records=[record(phase=Phase.LAUNCHED)],
        instances=[instance()],
    )

    assert "a10g: fits; t4 was cheaper or comes first" in asked("1", seen).pools


@pytest.mark.parametrize(
    ("reason", "means", "change"),
    [
        ("JobHeldUser", "it is held", "release it: scontrol release 1"),
        ("Dependency", "it waits for another job", None),
        ("QOSMaxGRESPerUser", "over a limit of its QOS", "have its limit raised"),
    ],
)
def test_a_job_that_slurm_holds_hears_what_that_means(
    reason: str, means: str, change: str | None
) -> None:
    found = asked("1", snapshot([job(1, reason=reason)]))

    assert means in found.slurm[0]
    assert means in found.headline
    assert "t4: fits, but more nodes would not help" in found.pools
    assert (change in found.change[0]) if change else found.change == ()


def test_a_requeued_job_hears_that_its_node_went_away():
    found = asked("1", snapshot([job(1, reason="NodeDown")]))

    assert found.slurm[0].startswith("PENDING, NodeDown: its node went away, so it was requeued")


@pytest.mark.parametrize(
    ("nodes", "headline", "in_all"),
    [
        (3, "job 1 runs on i-1, i-2, i-3", "on i-1, i-2, i-3 ("),
        (8, "job 1 runs on i-1, i-2, i-3 and 5 more", "i-5, i-6 and 2 more ("),
    ],
)
def test_a_job_of_many_nodes_says_how_many_are_not_named(nodes: int, headline: str, in_all: str):
    names = [f"i-{number}" for number in range(1, nodes + 1)]

    found = asked("1", snapshot([job(1, on=names, nodes=nodes)]))

    assert found.headline == headline
    assert in_all in found.slurm[0]


def test_a_running_job_whose_node_ec2_takes_back_hears_when():
    warned = replace(record(), reclaim_at_s=NOW_S + 90, phase=Phase.INTERRUPTED)
    seen = snapshot(
        [job(1, on=["i-1"])],
        records=[warned],
        instances=[instance()],
        nodes=[node(gpus_alloc=1, state="ALLOCATED")],
    )

    found = asked("1", seen)

    assert found.status is Status.RUNNING
    assert found.headline == "job 1 runs on i-1; EC2 takes i-1 back"
    assert "EC2 takes it back at 08:01:30 UTC" in found.nodes[0]


def test_a_running_job_whose_node_was_found_sick_hears_what_was_found():
    sick = node(gpus_alloc=1, state="ALLOCATED+DRAIN", reason="tidegate-health: xid: Xid 79: gone")
    theirs = replace(sick, reason="ada looks into it")

    found, of_a_person = [
        asked(
            "1",
            snapshot(
                [job(1, on=["i-1"])], records=[record()], instances=[instance()], nodes=[each]
            ),
        )
        for each in (sick, theirs)
    ]

    assert found.headline == (
        "job 1 runs on i-1; i-1 was found sick (tidegate-health: xid: Xid 79: gone): the job goes "
        "on there, and gets another node if it is requeued"
    )
    assert of_a_person.headline == "job 1 runs on i-1"


def test_a_job_that_nobody_knows_is_said_to_be_unknown():
    found = asked("9", snapshot([job(1)]))

    assert found.status is Status.UNKNOWN
    (change,) = found.change
    assert change.startswith("see how it ended: scontrol show job 9")
    assert "sacct -j 9, where slurm.accounting is on" in change


def test_a_job_that_no_look_has_judged_says_so():
    found = answer("1", snapshot([job(1)]), None)

    assert found.headline == "job 1 waits: no look has judged it yet"
    assert found.status is Status.WAITING


def test_a_silent_head_and_a_night_are_said_before_old_verdicts():
    night = Wanted(is_up=False, sentence="stopped until 8:00")
    seen = snapshot([job(1)], age_s=400)
    verdicts = verdicts_of(plan(snapshot([job(1)])), seen)

    assert "head was last heard 400 s ago" in answer("1", seen, verdicts).verdict[0]
    stopped = answer("1", snapshot([job(1)], wanted=night), verdicts)
    assert stopped.verdict[0] == "the cluster is stopped until 8:00"


ARRAY = (
    job("7", array_job_id="7", count=3),
    job("7_1", array_job_id="7", on=["i-1"]),
    job("8", het_job_id="8"),
    job("9", het_job_id="8"),
)


@pytest.mark.parametrize(
    ("asked_for", "rows"),
    [
        ("7", ["7", "7_1"]),
        ("7_1", ["7_1"]),
        ("7_2", ["7"]),
        ("8", ["8", "9"]),
        ("8+1", ["8", "9"]),
        ("9", ["8", "9"]),
        ("1", []),
    ],
)
def test_what_users_type_names_these_rows(asked_for: str, rows: list[str]) -> None:
    assert [row.job_id for row in rows_of(asked_for, ARRAY)] == rows


def test_an_array_tells_of_its_other_tasks():
    found = asked("7", snapshot(ARRAY[:2]))

    assert found.slurm[1:] == (
        "3 tasks of the array wait like this one",
        "other tasks, RUNNING: 7_1",
    )


LONG = Answer(
    "1",
    Status.WAITING,
    "job 1 waits: i-0123456789abcdef0 is drained",
    pools=("t4: g4dn.12xlarge/us-east-1a/on-demand until 08:01:00 UTC, us-east-1b " * 3,),
    change=("start it: aws ec2 start-instances --instance-ids i-0123456789abcdef0",),
)


@pytest.mark.parametrize("columns", [10, 30, 80, None])
def test_no_word_and_no_advice_is_broken_however_narrow_the_screen(columns: int | None):
    lines = chain(LONG, columns).splitlines()

    words = [word for line in lines for word in line.split()]
    assert {"i-0123456789abcdef0", "g4dn.12xlarge/us-east-1a/on-demand"} <= set(words)
    assert lines[-1].endswith(LONG.change[0])


def test_what_is_piped_is_a_line_for_a_sentence():
    assert len(chain(LONG, None).splitlines()) == 3


def test_a_chain_fits_a_screen_and_reads_from_cause_to_change():
    resting = [
        Resting(each, NOW_S + 60, 2, "InsufficientInstanceCapacity", "We have none. " * 9)
        for _, each in pool("a10g", (A10G,), zones=("us-east-1a", "us-east-1b")).offerings()
    ]
    shown = chain(
        asked("1", snapshot([job(1, gpu_type="a10g", nodes=2)], resting=resting)), COLUMNS
    )

    lines = shown.splitlines()
    assert max(map(len, lines)) <= COLUMNS
    assert len(lines) <= 40
    labels = [line[2:15].strip() for line in lines if line[2:3].strip() and line[:2] == "  "]
    assert [each for each in labels if each in dict(LINKS)] == [
        "Slurm says",
        "it needs",
        "verdict",
        "pools",
        "you could",
    ]


COLUMNS = 100
GOLDEN = Path(__file__).parents[1] / "golden" / "screens"
SCREENS = {
    "why-booting": snapshot(
        [job(1)], records=[record(phase=Phase.LAUNCHED)], instances=[instance()]
    ),
    "why-held": snapshot([job(1, reason="JobHeldUser")]),
    "why-resting": snapshot(
        [job(1, gpu_type="a10g", nodes=2)],
        resting=[
            Resting(each, NOW_S + 60, 2, "InsufficientInstanceCapacity", "We have none of g5.")
            for _, each in pool("a10g", (A10G,)).offerings()
        ],
    ),
    "why-too-large": snapshot([job(1, gpus=8, gpu_type="", cpus=100, memory_mib=900_000)]),
}


@pytest.mark.parametrize("name", SCREENS)
def test_screens_are_as_people_have_seen_them(name: str) -> None:
    """`chain(asked("1", SCREENS[name]), COLUMNS)` is what the file must hold."""
    shown = chain(asked("1", SCREENS[name]), COLUMNS)

    assert shown + "\n" == (GOLDEN / f"{name}.txt").read_text()


def test_offerings_of_other_pools_are_not_told_as_one_s_own():
    resting = [Resting(offering(A10G), NOW_S + 60, 1, "InsufficientInstanceCapacity", "none")]
    found = asked("1", snapshot([job(1, gpus=64)], resting=resting))

    assert not any("rests" in line for line in found.pools)
