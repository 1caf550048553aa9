"""What the head submits as the site's checks: of new templates, of an idle node, and of two."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from userdata.bundle import read
from userdata.patterns import NAME, check, check_positive

# Of which kind a check is, as its name says it, and where its script is kept.
TEMPLATES, IDLE, PAIRS = "check", "idle", "pair"
SCRIPT = "/etc/slurm/tidegate-check.sbatch"
SCRIPTS = {
    TEMPLATES: SCRIPT,
    IDLE: "/etc/slurm/tidegate-idle.sbatch",
    PAIRS: "/etc/slurm/tidegate-pair.sbatch",
}

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\-]{0,63}")
_PARTITION = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SCRIPT_PATH = re.compile(r"/[^\s\\'\"$`]+")


@dataclass(frozen=True, slots=True)
class SiteCheckValues:
    """`partitions`: in which partition it runs, by pool. `script`: its text, which begins with
    #!, or its path.
    """

    user: str
    nodes: int
    time_limit_s: int
    wait_s: int
    script: str
    partitions: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        check("user of the check", self.user, _USER)
        check_positive("nodes, time_limit_s", self.nodes, self.time_limit_s, self.wait_s)
        for pool, partition in self.partitions:
            check("pool of the check", pool, NAME)
            check("partition of the check", partition, _PARTITION)
        if not self.is_inline:
            check("script of the check", self.script, _SCRIPT_PATH)

    @property
    def is_inline(self) -> bool:
        return self.script.startswith("#!")


def check_files(checks: Mapping[str, SiteCheckValues | None]) -> Mapping[str, str]:
    """The files of the head's bundle. Nothing of it fits into the parameter, which holds 4 KB.

    `checks`: by kind; None: there is none.
    """
    found = {kind: values for kind, values in checks.items() if values is not None}
    if not found:
        return {}
    lines = (line for kind, values in found.items() for line in _lines(kind, values))
    scripts = {f"{k}.sbatch": each.script for k, each in found.items() if each.is_inline}
    return {
        "tidegate-check.sh": read("head/tidegate-check.sh"),
        "check": "".join(lines),
        **scripts,
    }


def _lines(kind: str, values: SiteCheckValues) -> Iterator[str]:
    script = SCRIPTS[kind] if values.is_inline else values.script
    rest = f"{values.user} {values.nodes} {values.time_limit_s} {values.wait_s} {script}"
    return (f"{kind}:{pool} {partition} {rest}\n" for pool, partition in values.partitions)
