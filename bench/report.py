"""What a report of many runs takes of its function, which has 512 MB and 45 s.

    python -m bench.report [RUNS]    100,000 when left out: two months of a busy cluster

Draws runs, exports them as the head does, and makes the page as the function does. CPU seconds and
the largest memory of the process, which has the catalogue and the drawn runs beside it.
"""

import gzip
import random
import resource
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from tidegate.adapters.slurm_accounting import accounted_in
from tidegate.core.explain.figures import figures
from tidegate.core.explain.report_page import as_html
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ledger import Bill
from tidegate.wire.catalogue import load_catalogue

SINCE_S, DAY_S, DAYS, RUNS = 1_790_812_800.0, 86_400.0, 61, 100_000
NODES = 4_000


def lines(count: int, chance: random.Random) -> Iterator[str]:
    """As sacct prints them."""
    for number in range(count):
        start_s = SINCE_S + chance.random() * DAYS * DAY_S
        words = [
            datetime.fromtimestamp(at, UTC).strftime("%FT%T") for at in (start_s, start_s + 60)
        ]
        end = datetime.fromtimestamp(start_s + chance.uniform(60, 7200), UTC).strftime("%FT%T")
        node = f"i-{chance.randrange(NODES):017x}"
        user = f"user{chance.randrange(200)}"
        yield (
            f"{number}|{user}|group{number % 20}|gpu|COMPLETED|{words[0]}|{words[1]}|{end}|"
            f"cpu=4,mem=16G,gres/gpu=1|{node}|1001|train-{number % 50}"
        )


def bills(chance: random.Random) -> Iterator[Bill]:
    """Each node lives for a day or two."""
    for number in range(NODES):
        at_s = SINCE_S + chance.random() * (DAYS - 2) * DAY_S
        offering = Offering("g4dn.12xlarge", "us-east-1a", Market.SPOT)
        ends_s = at_s + chance.uniform(0.2, 2) * DAY_S
        node = f"i-{number:017x}"
        yield Bill(node, "t4", offering, "", at_s, at_s + 90, at_s, ends_s, 1.4)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    chance = random.Random(7)
    data = gzip.compress("\n".join(lines(count, chance)).encode())
    billed = tuple(bills(chance))
    types = {name: row.instance_type for name, row in load_catalogue().items()}
    middle_s, until_s = SINCE_S + 30 * DAY_S, SINCE_S + DAYS * DAY_S

    began_s = time.process_time()
    runs = accounted_in(data, until_s).runs
    now = figures(billed, runs, types, middle_s, until_s)
    page = as_html("dev", now, figures(billed, runs, types, SINCE_S, middle_s))
    took_s = time.process_time() - began_s

    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(runs):,} runs, {len(billed):,} nodes: handed in {len(data) / 2**20:.1f} MiB")
    print(f"page of {len(page) / 1024:.0f} kB in {took_s:.1f} s of CPU, {peak_mib:.0f} MiB")


if __name__ == "__main__":
    main()
