"""Faults of GPUs as often as is published, and what a node's own table makes of them.

Published: three GPU failures in 1,000 node-days, three nodes that cause half of them (arXiv
2605.09370). Guessed: the shares of the kinds, and how often programs log Xids of their own.
"""

import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile

from userdata.node_bundle import FINDINGS, node_findings

DAY_S = 86_400.0
DAYS = 160
# 5 % more nodes than are used (arXiv 2503.11901), and what else EC2 has.
NODES, SPARES, HOSTS, BAD_HOSTS = 40, 2, 60, 3
FAILURES_PER_NODE_DAY = 3 / 1000
NOISE_PER_NODE_DAY = 10 * FAILURES_PER_NODE_DAY
KINDS = {"gpu": 70, "instance": 15, "slurmd": 10, "hang": 5}

_AT = "NVRM: Xid (PCI:0000:00:1e): "
SICK = (
    "79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    "48, pid=7, name=python3, DBE (double bit error) ECC Error",
    "95, pid='<unknown>', name=<unknown>, Uncontained: FBHUB. RST: Yes, D-RST: No",
    "119, pid=7, name=python3, Timeout after 6s of waiting for RPC response from GPU0 GSP!",
    "64, pid='<unknown>', name=<unknown>, Row remapper recording failure",
    "74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 3",
    "145, RLW_REMAP Fatal XC0 i0 Link 00 (0x00000004 0x00000040 0x0 0x0)",
    "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
)
WELL = (
    "13, pid=7, name=python3, Graphics SM Warp Exception on (GPC 0, TPC 0, SM 0)",
    "31, pid=7, name=python3, Ch 00000008, MMU Fault",
    "43, pid=7, name=python3, Ch 00000008",
    "45, pid=7, name=python3, Ch 00000008",
    "63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping",
    "94, pid=7, name=python3, Contained: SM (0x1). RST: No, D-RST: No",
)


@cache
def judged(line: str) -> tuple[str, str]:
    """What a node makes of the line: its verdict, and the sentence."""
    folder = Path(__file__).parents[1] / "userdata" / "node"
    script = 'source "$0"; read_findings; judge "$1"; printf "%s|%s" "$verdict" "$finding"'
    asked = ["bash", "-euc", script, str(folder / "findings.sh"), line]
    with NamedTemporaryFile("w") as table:
        table.write(node_findings(FINDINGS.read_text()))
        table.flush()
        env = {**os.environ, "FINDINGS": table.name}
        told = subprocess.run(asked, env=env, capture_output=True, text=True, check=True).stdout
    verdict, _, finding = told.partition("|")
    return verdict, finding


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens on a host. `line`: of its kernel's log."""

    at_s: float
    host: int
    kind: str
    line: str = ""


def drawn(seed: int, days: int = DAYS) -> list[Fault]:
    """The same for whatever is done about it."""
    chance = random.Random(seed)
    total = FAILURES_PER_NODE_DAY * (NODES + SPARES)
    found: list[Fault] = []
    for host in range(HOSTS):
        others = NODES + SPARES - BAD_HOSTS
        per_day = total / 2 / (BAD_HOSTS if host < BAD_HOSTS else others)
        for at_s in _times(chance, per_day, days):
            (kind,) = chance.choices(list(KINDS), list(KINDS.values()))
            found.append(Fault(at_s, host, kind, _AT + chance.choice(SICK)))
        for at_s in _times(chance, NOISE_PER_NODE_DAY, days):
            found.append(Fault(at_s, host, "noise", _AT + chance.choice(WELL)))
    return sorted(found, key=lambda each: (each.at_s, each.host))


def _times(chance: random.Random, per_day: float, days: int) -> Iterator[float]:
    at_s = 0.0
    while (at_s := at_s + chance.expovariate(per_day / DAY_S)) < days * DAY_S:
        yield at_s
