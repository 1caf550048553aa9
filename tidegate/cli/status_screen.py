"""An overview as lines and a table."""

from collections.abc import Iterator

from rich.console import Group
from rich.table import Table

from tidegate.cli.shown import fit, lines, table
from tidegate.core.explain.node_report import saved_and_lost
from tidegate.core.explain.overview import SICK_PLACE, Overview, RestingNow, SpotNow
from tidegate.core.model.durations import clock, moment, span
from tidegate.core.model.resting import BOOT_FAILURES

RESTING_SHOWN = 8
SPOT_SHOWN = 4
MIB_PER_GIB = 1024


def screen(found: Overview, *, is_wrapped: bool) -> Group:
    """`is_wrapped`: for a screen that is drawn again and again, from which nobody copies."""
    last = (each for each in found.needs_a_look if each != found.unjudged)
    first = [f"! {found.unjudged}"] if found.unjudged else []
    return Group(
        *lines(first, "bold red", is_wrapped=is_wrapped),
        *lines(_head(found), is_wrapped=is_wrapped),
        _pools(found),
        *lines(_tail(found), is_wrapped=is_wrapped),
        *lines((f"! {each}" for each in last), "bold red", is_wrapped=is_wrapped),
    )


def _head(found: Overview) -> Iterator[str]:
    yield f"{found.cluster}: {found.calendar}"
    heard = "never" if found.agent_age_s is None else f"{span(found.agent_age_s)} ago"
    looked = "never" if found.look_age_s is None else f"{span(found.look_age_s)} ago"
    yield f"head heard {heard}, last look {looked}"
    jobs = f"{found.running} run, {found.starting} start soon, {found.waiting} wait"
    yield f"jobs: {jobs}" + (f", {found.not_judged} not judged yet" if found.not_judged else "")
    yield f"an hour of a waiting job counts {found.usd_per_job_hour:g} USD"
    if found.gpus.configured:
        lost = f", {found.gpus.lost} lost" if found.gpus.lost else ""
        yield (
            f"GPUs: {found.gpus.configured} paid for, {found.gpus.usable} usable, "
            f"{found.gpus.busy} busy{lost}"
        )
    ages = (("spot", found.spot_prices_age_s), ("on-demand", found.on_demand_prices_age_s))
    if known := [f"{market} {span(age)} ago" for market, age in ages if age is not None]:
        yield f"prices read: {', '.join(known)}"
    for reason, count in found.waits_because:
        yield f"  {count} wait: {reason}"
    if others := found.waiting - sum(count for _, count in found.waits_because):
        yield f"  {others} wait for other reasons: tidegate why JOBID"


def _pools(found: Overview) -> Table:
    made = table("pool", "up", "busy", "boot", "leave", "USD/h", "used of limit")
    for pool in found.pools:
        counts = (pool.up, pool.busy, pool.booting, pool.leaving)
        made.add_row(pool.name, *map(str, counts), f"{pool.usd_per_hour:.2f}", _limits(pool.limits))
    made.add_row("all", "", "", "", "", f"{found.usd_per_hour:.2f}", _limits(found.limits))
    return fit(made)


def _limits(limits: tuple[tuple[str, float, float], ...]) -> str:
    return ", ".join(_limit(*each) for each in limits)


def _limit(unit: str, used: float, limit: float) -> str:
    if unit == "MiB":
        unit, used, limit = "GiB", used / MIB_PER_GIB, limit / MIB_PER_GIB
    return f"{used:.6g} of {limit:.6g} {unit}"


def _tail(found: Overview) -> Iterator[str]:
    if found.alarms is None:
        yield "alarms cannot be read: that needs cloudwatch:DescribeAlarms"
    for pool in found.pools:
        if pool.stopped:
            nodes = f"{pool.stopped} node{'s' if pool.stopped > 1 else ''}"
            usd = f"{pool.stopped_usd_per_hour:.3f} USD/h"
            yield f"stopped in pool {pool.name}, to be started again: {nodes}, disks {usd}"
    for budget in found.budgets:
        spent = f"{budget.usd:.2f} of {budget.budget_usd:.2f} USD"
        yield f"spent by {budget.scope} this {budget.per}: {spent}"
    if checks := found.idle_checks:
        used = f"{checks.gpu_hours:.2f} of {checks.gpu_hours_per_day:g} GPU-hours today"
        now = f", now on {', '.join(checks.on)}" if checks.on else ""
        yield f"checks of idle nodes: {used}; {checks.due} of {checks.nodes} nodes are due{now}"
    if lost := found.losses.nodes:
        nodes = f"{lost} node{'s' if lost > 1 else ''}"
        jobs = saved_and_lost(found.losses.saved_jobs, found.losses.lost_gpu_hours)
        yield f"taken back by AWS this month: {nodes}; {jobs}"
    if orphans := found.losses.orphans:
        nodes = f"{orphans} node{'s' if orphans > 1 else ''}"
        yield f"ended themselves this month, having heard nothing of their head: {nodes}"
    yield from _learnt(found.spot)
    yield from map(_rest, found.resting[:RESTING_SHOWN])
    if len(found.resting) > RESTING_SHOWN:
        yield f"and {len(found.resting) - RESTING_SHOWN} more rest"


def _learnt(spot: tuple[SpotNow, ...]) -> Iterator[str]:
    """Where what was seen counts instead of the cluster file's word, the most used first."""
    found = [each for each in spot if each.per_hour != each.file_per_hour]
    found.sort(key=lambda each: -each.node_hours)
    for each in found[:SPOT_SHOWN]:
        seen = f"{each.taken:.3g} taken back in {each.node_hours:.0f} node-hours of the last weeks"
        by = f"counts as {each.per_hour:.2g} an hour, the file says {each.file_per_hour:.2g}"
        yield f"{each.offering}: {seen}, {by}"
    if len(found) > SPOT_SHOWN:
        yield f"and {len(found) - SPOT_SHOWN} more spot offerings unlike the file says"


def _rest(each: RestingNow) -> str:
    if each.code == SICK_PLACE:
        until = f"bought last until {moment(each.until_s)} UTC"
        return f"{until}: {each.offering}, it gave {each.failures} sick nodes"
    is_ours = each.code in BOOT_FAILURES
    words = f"{each.code}: {each.message}" if is_ours else f"EC2 said {each.code}"
    of = f" of pool {each.pool}" if each.pool else ""
    refused = f"{words} ({each.failures}x)"
    what = (
        f"rests until {clock(each.until_s)}"
        if each.stops
        else "a node failed, another may be bought"
    )
    return f"{what}: {each.offering}{of}, {refused}"
