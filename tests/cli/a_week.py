"""Two weeks of a team: what nodes cost and what ran on them, drawn from a seed."""

import random
from collections.abc import Sequence
from dataclasses import replace

from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.idle_use import IdleSpan, IdleUse
from tidegate.core.model.ledger import Bill
from tidegate.core.offers.allocation import LostTime, Run

DAY_S = 86_400.0
NOW_S = 1_795_478_400.0 + DAY_S / 2  # noon of 2026-11-24 in UTC
KINDS = {"a10g": ("g5.12xlarge", 4, 2.1), "t4": ("g4dn.xlarge", 1, 0.2)}
PEOPLE = {
    "ada": "vision",
    "grace": "vision",
    "linus": "speech",
    **{f"student{number}": "teaching" for number in range(18)},
}
ODD = "<script>alert(1)</script>"


def idle_of(bills: Sequence[Bill], seed: int = 3) -> list[IdleSpan]:
    """What the agent wrote of these nodes, between days on which it was away."""
    chance = random.Random(seed)
    return [
        IdleSpan(each.instance_id, at_s, at_s + 3600.0, chance.choice(list(IdleUse)))
        for each in bills
        for at_s in range(round(each.since_s), round(each.until_s), 7200)
    ]


def two_weeks(seed: int = 3) -> tuple[list[Bill], list[Run]]:
    """More in the second one; a job has an odd name, some runs were cut short."""
    chance = random.Random(seed)
    bills: list[Bill] = []
    runs: list[Run] = []
    for number in range(160):
        node = f"i-{number:017x}"
        pool = chance.choice(sorted(KINDS))
        kind, gpus, price = KINDS[pool]
        starts_s = NOW_S - 14 * DAY_S * chance.random() ** 1.4
        ends_s = min(NOW_S, starts_s + chance.uniform(0.5, 30) * 3600)
        joins_s = starts_s + 150
        account = chance.choice(sorted(set(PEOPLE.values())))
        offering = Offering(kind, "us-east-1a", Market.SPOT)
        known = (node, pool, offering, account, starts_s, joins_s)
        middle_s = (starts_s + ends_s) / 2
        bills.append(Bill(*known, starts_s, middle_s, price))
        bills.append(Bill(*known, middle_s, ends_s, price * 1.1))
        at_s = joins_s + 20
        while at_s < ends_s - 600:
            user = chance.choice(sorted(PEOPLE))
            lasts_s = chance.uniform(600, 20_000)
            runs.append(
                Run(
                    job_id=str(len(runs)),
                    user=user,
                    account=PEOPLE[user],
                    partition=pool,
                    name=ODD if len(runs) == 7 else chance.choice(["train", "tune", "eval"]),
                    nodes=(node,),
                    started_at_s=at_s,
                    ended_at_s=min(ends_s, at_s + lasts_s),
                    gpus=float(chance.randint(1, gpus)),
                    cpus=4.0,
                    memory_mib=8000.0,
                    is_cut_short=chance.random() < 0.04,
                    eligible_at_s=at_s - chance.expovariate(1 / 120),
                )
            )
            at_s += lasts_s + chance.expovariate(1 / 600)
    cut = [number for number, run in enumerate(runs) if run.is_cut_short]
    for number in cut[::2]:  # of every other one it is known what it lost
        run = runs[number]
        since_s = run.ended_at_s - (run.ended_at_s - run.started_at_s) / 4
        runs[number] = replace(run, lost=LostTime(since_s, is_rest_kept=True))
    return bills, runs
