"""On whom the bill of nodes falls: sums stay whole, whatever jobs did."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.model.ec2 import InstanceType, Market, Offering
from tidegate.core.model.gpu_use import GpuTime
from tidegate.core.model.idle_use import IdleSpan, IdleUse
from tidegate.core.model.ledger import Bill
from tidegate.core.offers.allocation import BY, LostTime, Run, Share, TimeUse, allocated, rows

near: Any = pytest.approx
MIDNIGHT_S = 1_795_478_400.0  # 2026-11-24 in UTC
START_S = MIDNIGHT_S - 3600
G5 = InstanceType("g5.12xlarge", 48, 196_608, 4, "a10g")
CPU = InstanceType("c7i.4xlarge", 16, 32_768, 0, "")
TYPES = {each.name: each for each in (G5, CPU)}


def line(**changes: Any) -> Bill:
    """Two hours of four GPUs at 4 USD an hour, one on each side of midnight; ready in 5 minutes."""
    offering = Offering(G5.name, "us-east-1a", Market.SPOT)
    made = Bill(
        *("i-1", "a10g", offering, "vision", START_S, START_S + 300),
        *(START_S, START_S + 7200, 4.0),
    )
    return replace(made, **changes)


def run(job_id: str = "7", **changes: Any) -> Run:
    """One GPU from minute 10 to minute 70, with a twelfth of the CPUs."""
    made = Run(
        *(job_id, "ada", "vision", "gpu", "train", ("i-1",)),
        *(START_S + 600, START_S + 4200, 1.0, 4.0, 8192.0),
    )
    return replace(made, **changes)


def shares(*runs: Run, bills: tuple[Bill, ...] | None = None) -> list[Share]:
    found = (line(),) if bills is None else bills
    return list(allocated(found, runs, TYPES, START_S - 86_400, START_S + 86_400))


def usd(found: list[Share]) -> dict[TimeUse, float]:
    (whole,) = rows((replace(each, day="") for each in found), "day")
    return {use: round(each, 9) for use, each in whole.usd.items() if each}


def test_a_job_pays_what_it_held_and_the_rest_has_its_own_names():
    found = usd(shares(run()))

    assert found == {
        TimeUse.BOOT: near(5 / 60 * 4),
        TimeUse.IDLE: near(55 / 60 * 4),
        TimeUse.JOB: near(1.0),  # a quarter of the node for an hour
        TimeUse.UNUSED: near(3.0),
    }


def test_a_job_with_shards_pays_its_part_of_a_gpu():
    """Two of four shards: half of one of four GPUs, and so an eighth of the node."""
    types = {G5.name: replace(G5, shards_per_gpu=4)}
    runs = (run(gpus=0.0, shares=2.0), run("8", gpus=2.0, cpus=1.0))

    found = list(allocated((line(),), runs, types, START_S - 86_400, START_S + 86_400))

    held = [(each.run.job_id, each.usd, each.gpu_hours) for each in found if each.run]
    (job_id, shards_usd, shards_hours), *_ = held
    assert (job_id, shards_usd, shards_hours) == ("7", near(50 / 60 * 0.5), near(50 / 60 * 0.5))
    assert sum(usd for job, usd, _ in held if job == "7") == near(0.5)
    assert sum(hours for job, _, hours in held if job == "8") == near(2.0)


def test_jobs_on_a_type_that_has_left_the_catalogue_pay_it_in_equal_parts():
    gone = line(offering=Offering("p2.xlarge", "us-east-1a", Market.SPOT))

    found = usd(shares(run(), run("8", gpus=3.0), bills=(gone,)))

    assert found == {
        TimeUse.BOOT: near(5 / 60 * 4),
        TimeUse.IDLE: near(55 / 60 * 4),
        TimeUse.JOB: near(4.0),
    }


def test_the_largest_share_counts_a_job_that_takes_all_memory_pays_the_node():
    found = usd(shares(run(gpus=0.0, memory_mib=G5.slurm_memory_mib)))

    assert found[TimeUse.JOB] == near(4.0)
    assert TimeUse.UNUSED not in found


def test_the_gpus_beside_a_job_that_takes_all_memory_are_nobodys():
    found = shares(run(gpus=0.0, memory_mib=G5.slurm_memory_mib))

    by_use = {use: sum(each.gpu_hours for each in found if each.use is use) for use in TimeUse}
    assert by_use[TimeUse.JOB] == 0
    assert by_use[TimeUse.UNUSED] == near(4.0)
    assert sum(by_use.values()) == near(8.0)


def test_a_run_that_was_cut_short_is_told_apart_from_the_one_after_it():
    first = run(ended_at_s=START_S + 2400, is_cut_short=True)
    found = rows(shares(first, run(started_at_s=START_S + 2400)), "job")

    assert [
        (row.name, row.usd[TimeUse.CUT_SHORT], row.usd[TimeUse.JOB]) for row in found if row.name
    ] == [("7 train", near(0.5), near(0.5))]


def test_a_node_that_never_joined_was_booting_all_the_time():
    assert usd(shares(bills=(line(joined_at_s=None),))) == {TimeUse.BOOT: near(8.0)}


def test_a_job_ran_before_its_node_was_noted_as_joined():
    """A look that notes it may come late."""
    found = usd(shares(run(), bills=(line(joined_at_s=START_S + 6000),)))

    assert found[TimeUse.BOOT] == near(10 / 60 * 4)


def test_a_node_that_was_stopped_boots_again_whoever_ran_there_before():
    started_s = START_S + 86_400
    again = line(
        launched_at_s=started_s,
        joined_at_s=started_s + 300,
        since_s=started_s,
        until_s=started_s + 900,
    )

    found = list(allocated((again,), (run(),), TYPES, started_s, started_s + 900))

    assert usd(found) == {TimeUse.BOOT: near(300 / 3600 * 4), TimeUse.IDLE: near(600 / 3600 * 4)}


def test_a_gang_pays_on_each_of_its_nodes_at_the_price_of_each():
    gang = run(nodes=("i-1", "i-2"), gpus=4.0)
    dearer = line(instance_id="i-2", usd_per_hour=8.0)

    assert usd(shares(gang, bills=(line(), dearer)))[TimeUse.JOB] == near(12.0)


def test_a_price_that_changed_counts_from_then_on():
    half_s = START_S + 3600
    lines = (line(until_s=half_s), line(since_s=half_s, usd_per_hour=8.0))
    whole = run(gpus=4.0, started_at_s=START_S + 300, ended_at_s=START_S + 7200)

    found = usd(shares(whole, bills=lines))
    assert found == {TimeUse.BOOT: near(1 / 3), TimeUse.JOB: near(4 - 1 / 3 + 8)}


def test_a_job_of_two_nodes_pays_the_one_that_died_until_its_end_alone():
    """Slurm says of the run that it had both until the second in which it ended."""
    died_s = START_S + 2400
    gang = run(nodes=("i-1", "i-2"), gpus=4.0, is_cut_short=True)
    lines = (line(until_s=died_s), line(instance_id="i-2", usd_per_hour=8.0))

    found = shares(gang, bills=lines)

    of_gang: defaultdict[str, float] = defaultdict(float)
    for share in found:
        if share.use is TimeUse.CUT_SHORT:
            of_gang[share.bill.instance_id] += share.usd
    assert of_gang == {"i-1": near(0.5 * 4), "i-2": near(8.0)}
    assert sum(s.usd for s in found) == near(4 * 2400 / 3600 + 16)


def test_a_time_for_which_no_price_is_known_costs_nobody_anything():
    lines = (line(until_s=START_S + 1800), line(since_s=START_S + 2400))
    whole = run(gpus=4.0, started_at_s=START_S + 600, ended_at_s=START_S + 7200)

    found = usd(shares(whole, bills=lines))

    assert found == {
        TimeUse.BOOT: near(4 / 12),
        TimeUse.IDLE: near(4 / 12),
        TimeUse.JOB: near(4 * (1200 + 4800) / 3600),
    }


@pytest.mark.parametrize(
    ("started_s", "ended_s"), [(4200.0, 600.0), (-90_000.0, -80_000.0), (90_000.0, 99_000.0)]
)
def test_a_run_that_a_clock_put_elsewhere_takes_nothing_from_the_sum(
    started_s: float, ended_s: float
) -> None:
    odd = run(gpus=4.0, started_at_s=START_S + started_s, ended_at_s=START_S + ended_s)

    found = usd(shares(odd))

    assert sum(found.values()) == near(8.0)
    assert TimeUse.JOB not in found


def test_days_are_those_of_utc():
    found = rows(shares(run()), "day")

    assert [(row.name, row.total_usd) for row in found] == [
        ("2026-11-23", near(4.0)),
        ("2026-11-24", near(4.0)),
    ]


def test_only_what_lies_between_the_two_moments_counts():
    found = list(allocated([line()], [run()], TYPES, START_S + 600, START_S + 1200))

    assert sum(each.usd for each in found) == near(4 / 6)
    assert {each.use for each in found} == {TimeUse.JOB, TimeUse.UNUSED}


def test_the_dearest_come_first_and_nobodys_last():
    ada, grace = run(), run("8", user="grace", gpus=2.0)

    assert [row.name for row in rows(shares(ada, grace), "user")] == ["grace", "ada", ""]


# Of jobs that overlap, outlive their node, hold more than there is, or nothing.
TIMES = st.integers(-4000, 12_000).map(lambda after_s: START_S + after_s)
RUNS = st.builds(
    lambda begins_s, ends_s, gpus, cpus, memory, cut, nodes: run(
        started_at_s=begins_s,
        ended_at_s=ends_s,
        gpus=gpus,
        cpus=cpus,
        memory_mib=memory,
        is_cut_short=cut,
        nodes=nodes,
    ),
    TIMES,
    TIMES,
    st.floats(0, 9),
    st.floats(0, 99),
    st.floats(0, 400_000),
    st.booleans(),
    st.sampled_from([("i-1",), ("i-2",), ("i-1", "i-2", "i-elsewhere")]),
)
LINES = st.builds(
    lambda name, kind, joined_s, length_s, price: line(
        instance_id=name,
        offering=Offering(kind, "us-east-1a", Market.SPOT),
        joined_at_s=joined_s,
        until_s=START_S + length_s,
        usd_per_hour=price,
    ),
    st.sampled_from(["i-1", "i-2"]),
    st.sampled_from(sorted(TYPES)),
    st.none() | TIMES,
    st.integers(1, 9000),
    st.floats(0.01, 100),
)


# Of clocks that were put back: spans that overlap, end before they begin, or are of other nodes.
SPANS = st.builds(
    IdleSpan, st.sampled_from(["i-1", "i-2", "i-3"]), TIMES, TIMES, st.sampled_from(IdleUse)
)


@given(st.lists(RUNS, max_size=6), st.lists(LINES, max_size=3), st.lists(SPANS, max_size=8))
def test_all_shares_of_a_line_add_up_to_it(runs, lines, spans):
    given_ = (lines, runs, TYPES, START_S - 86_400, START_S + 86_400)
    found = list(allocated(*given_, spans))

    # What is known of idle nodes moves nothing but idle time.
    unknown = list(allocated(*given_))
    for use in (TimeUse.JOB, TimeUse.CUT_SHORT, TimeUse.UNUSED, TimeUse.BOOT):
        was, now = (sum(s.usd for s in each if s.use is use) for each in (unknown, found))
        assert now == near(was, abs=1e-6)

    hours = [(each.until_s - each.since_s) / 3600 for each in lines]
    cost = sum(h * each.usd_per_hour for h, each in zip(hours, lines, strict=True))
    gpus = sum(
        h * TYPES[each.offering.instance_type].gpus for h, each in zip(hours, lines, strict=True)
    )
    assert sum(each.usd for each in found) == near(cost, abs=1e-6)
    assert sum(each.gpu_hours for each in found) == near(gpus, abs=1e-6)
    assert all(each.usd >= 0 and each.gpu_hours >= 0 for each in found)
    for by in BY:
        assert sum(row.total_usd for row in rows(found, by)) == near(cost, abs=1e-6)


def gpu_hours(found: list[Share]) -> tuple[float, float, float]:
    """Held, seen and idle, of jobs."""
    of_jobs = [each for each in found if each.run]
    assert all(0 <= s.idle_gpu_hours <= s.seen_gpu_hours + 1e-12 for s in of_jobs)
    assert all(s.seen_gpu_hours <= s.gpu_hours + 1e-12 for s in of_jobs)
    kinds = ("gpu_hours", "seen_gpu_hours", "idle_gpu_hours")
    held, seen, idle = (sum(getattr(each, kind) for each in of_jobs) for kind in kinds)
    return held, seen, idle


def test_idle_gpu_hours_are_those_of_the_days_that_nodes_told_of():
    before = GpuTime("i-1", "2026-11-23", idle_gpu_s=600.0, seen_gpu_s=1800.0)
    after = GpuTime("i-1", "2026-11-24", idle_gpu_s=300.0, seen_gpu_s=300.0)

    assert gpu_hours(shares(run(gpu_times=(before, after)))) == (
        near(1.0),
        near(2100 / 3600),
        near(900 / 3600),
    )
    assert gpu_hours(shares(run())) == (near(1.0), 0.0, 0.0)


def test_minutes_that_a_clock_made_longer_are_not_more_than_what_was_held():
    much = GpuTime("i-1", "2026-11-23", idle_gpu_s=9000.0, seen_gpu_s=6000.0)

    held, seen, idle = gpu_hours(shares(run(gpu_times=(much,))))
    assert (held, seen, idle) == (near(1.0), near(50 / 60), near(50 / 60))


def test_of_a_job_on_two_nodes_each_has_what_it_told():
    told = GpuTime("i-2", "2026-11-23", idle_gpu_s=1200.0, seen_gpu_s=2400.0)
    both = run(nodes=("i-1", "i-2"), gpu_times=(told,))

    found = shares(both, bills=(line(), line(instance_id="i-2")))
    assert gpu_hours(found) == (near(2.0), near(2400 / 3600), near(1200 / 3600))
    assert gpu_hours([each for each in found if each.bill.instance_id == "i-1"])[1:] == (0.0, 0.0)


@given(
    cut=st.floats(0, 7200),
    idle=st.floats(0, 20_000),
    seen=st.floats(0, 20_000),
    gpus=st.sampled_from([0.0, 0.5, 1.0, 4.0, 9.0]),
    lasts=st.floats(1, 7000),
)
def test_idle_gpu_hours_of_two_spans_are_those_of_both(cut, idle, seen, gpus, lasts):
    days = ("2026-11-23", "2026-11-24")
    told = tuple(GpuTime("i-1", day, idle, seen) for day in days)
    runs = (
        run(gpus=gpus, gpu_times=told, ended_at_s=START_S + 600 + lasts),
        run("8", gpus=2.0, gpu_times=told[:1]),
    )
    spans = ((START_S - 60, START_S + cut), (START_S + cut, START_S + 9000))

    parts = [list(allocated((line(),), runs, TYPES, *span)) for span in spans]
    whole = list(allocated((line(),), runs, TYPES, START_S - 60, START_S + 9000))

    added = [a + b for a, b in zip(*map(gpu_hours, parts), strict=True)]
    assert added == near(list(gpu_hours(whole)), abs=1e-9)
    for by in BY:
        gathered = rows(whole, by)
        assert sum(each.idle_gpu_hours for each in gathered) == near(gpu_hours(whole)[2])


def cut(since_s: float, *, is_rest_kept: bool = True, **changes: Any) -> Run:
    """A run that was requeued at minute 70, and what is known of it."""
    return run(is_cut_short=True, lost=LostTime(since_s, is_rest_kept), **changes)


def test_what_a_run_did_before_the_step_at_which_the_next_went_on_is_not_lost():
    found = usd(shares(cut(START_S + 3000)))

    assert found[TimeUse.JOB] == near(40 / 60)
    assert found[TimeUse.LOST] == near(20 / 60)
    assert TimeUse.CUT_SHORT not in found


def test_what_nobody_knows_of_a_run_that_hung_stays_cut_short():
    found = usd(shares(cut(START_S + 3000, is_rest_kept=False)))

    assert found[TimeUse.CUT_SHORT] == near(40 / 60)
    assert found[TimeUse.LOST] == near(20 / 60)
    assert TimeUse.JOB not in found


def test_a_run_that_ended_by_itself_has_lost_nothing_whatever_was_noted():
    found = usd(shares(replace(cut(START_S + 3000), is_cut_short=False)))

    assert found[TimeUse.JOB] == near(1.0)
    assert TimeUse.LOST not in found


@given(
    since_s=st.floats(-1e12, 1e12),
    start_s=st.floats(0, 7000),
    lasts_s=st.floats(0, 7000),
    is_rest_kept=st.booleans(),
)
def test_lost_work_takes_nothing_from_the_sum_whatever_was_noted(
    since_s: float, start_s: float, lasts_s: float, is_rest_kept: bool
) -> None:
    asked: dict[str, Any] = {
        "started_at_s": START_S + start_s,
        "ended_at_s": START_S + start_s + lasts_s,
    }
    with_it = usd(shares(cut(START_S + since_s, is_rest_kept=is_rest_kept, **asked), run("8")))
    without = usd(shares(run(is_cut_short=True, **asked), run("8")))

    assert sum(with_it.values()) == near(8.0)
    parts = TimeUse.JOB, TimeUse.CUT_SHORT, TimeUse.LOST
    assert sum(with_it.get(use, 0) for use in parts) == near(
        sum(without.get(use, 0) for use in parts)
    )
