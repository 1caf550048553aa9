"""A team that keeps office hours, replayed week by week: what the forecast by hour of week does.

    python -m bench.week [FOLDER]    the folder of the public histories, gzipped CSV

The history is drawn: on weekdays three jobs of one GPU within twenty minutes from 9:00 on and two
from 13:00 on, now and then one more or less, on Mondays twice as many in the morning. With the
folder it is also told how much the jobs of an hour say of the same hour a week later in the public
histories: the correlation of their numbers.
"""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import correlation, mean

from bench.replay import BOOT_S, WINDOWS, cluster_of, trace_of
from tidegate.core.fleet.week import HOURS
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.waiting import Waiting
from tidegate.sim.replay.run import replay
from tidegate.sim.replay.state import EPOCH_S
from tidegate.sim.replay.trace import Trace, read_trace
from tidegate.sim.replay.world import Setting

HOUR_S, DAY_S, WEEK_S = 3600.0, 86400.0, 7 * 86400.0
HEADER = "job_id,submit_s,duration_s,gpus,nodes,partition\n"
PRICES_USD = (0, 20, 50)
WEEKS = 6


def office(weeks: int) -> Trace:
    """The drawn history, from a Monday on."""
    chance = Random("office")
    jobs: list[tuple[float, float]] = []
    for day in (week * 7 + day for week in range(weeks) for day in range(5)):
        for hour, count in ((9, 6 if day % 7 == 0 else 3), (13, 2)):
            for _ in range(count + chance.choice((-1, 0, 0, 1))):
                at_s = day * DAY_S + hour * HOUR_S + chance.uniform(0, 1200)
                jobs.append((at_s, chance.uniform(1800, 7200)))
    rows = (
        f"j{n},{at_s:.0f},{run_s:.0f},1,1,gpu\n" for n, (at_s, run_s) in enumerate(sorted(jobs))
    )
    return read_trace(HEADER + "".join(rows))


def rows(cluster: Cluster) -> list[str]:
    """Mean wait in seconds and cost in USD of each week."""
    world = replay(office(WEEKS), cluster, Setting(boot_s=BOOT_S)).world
    found: list[str] = []
    for week in range(WEEKS):
        waits = [run.wait_s for run in world.runs if run.job.submit_s // WEEK_S == week]
        usd = sum(
            each.cost_usd(each.launched_s, each.ended_s)
            for each in world.gone
            if each.ended_s is not None and (each.launched_s - EPOCH_S) // WEEK_S == week
        )
        found.append(f"{mean(waits):.0f} s, {usd:.0f} USD")
    return found


def week_later(trace: Trace) -> float:
    """The correlation of the numbers of jobs in hours a week apart."""
    came = Counter(int(job.submit_s // HOUR_S) for job in trace.jobs)
    hours = range(max(came) + 1 - HOURS)
    return correlation([came[each] for each in hours], [came[each + HOURS] for each in hours])


def main() -> None:
    print("| price of waiting |", " | ".join(f"week {n + 1}" for n in range(WEEKS)), "|")
    print("|---" * (WEEKS + 1) + "|")
    cluster = cluster_of(WINDOWS[0])
    for usd in PRICES_USD:
        print(f"| {usd} |", " | ".join(rows(replace(cluster, waiting=Waiting(usd)))), "|")
    print(f"office: {week_later(office(WEEKS)):.2f} a week later")
    for file in sorted({each.file for each in WINDOWS}) if sys.argv[1:] else ():
        window = next(each for each in WINDOWS if each.file == file)
        print(f"{file}: {week_later(trace_of(Path(sys.argv[1]), window)):.2f} a week later")


if __name__ == "__main__":
    main()
