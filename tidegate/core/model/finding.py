"""What checks found of nodes: which node, which check, how grave it is, and where the node was."""

import re
from enum import StrEnum

from tidegate.core.model.ec2 import Offering
from tidegate.core.model.frozen import frozen

# What the watch over the health of our own nodes begins with (userdata/node/health-watch.sh).
OUR_CHECKS = "tidegate-health:"

# For how long a finding counts against its check, and for how long it is kept at all.
CHECK_COUNTS_S = 86_400.0
FINDING_KEPT_S = 7 * 86_400.0

# Of one pool. A stopped check adds none, so that many checks have room.
FINDINGS_MAX = 100

# A check is believed of this share of a pool's nodes in a day: of two nodes in any case, and of
# not more than a number that no fleet of sound machines comes near. Published rates are three
# failures in 1,000 node-days (arXiv 2605.09370).
BELIEVED_SHARE = 0.2
BELIEVED_MIN = 2
BELIEVED_MAX = 32
# What is fatal to what runs there a job may have brought about, as it may what Slurm itself says (a
# task that cannot be killed, an epilog that fails). Such a job is held with its fourth fault
# (passes/faults.py), and must not stop what a small pool buys for others before.
BELIEVED_MIN_OF_OTHERS = 5

# The last brackets of a reason, as `(fatal; NVIDIA's remedy: reset, then a test; below nn-0a1b)`:
# by the table of findings (tidegate/data/findings.txt) and the place that EC2 tells, which the node
# knows. One of the version before tells no severity, and whose remedy it is where that is fatal.
_SAID = re.compile(
    r".*\((?:(fatal|degraded); )?([^()]*)remedy: ([^();]+)(?:; below (nn-[0-9a-z]+))?\)", re.DOTALL
)
# What these checks find stays after a reboot, and nodes that booted before 0.1.0 say nothing of it:
# rows that cannot be remapped, a full disk, an instance store that has failed (NVIDIA, "GPU Memory
# Error Management", RMA policy; EC2 User Guide, "Reboot your instance"). Until 0.2.0: by then a
# roll-out has replaced those nodes.
_STAYS = tuple(f"{OUR_CHECKS} {check}: " for check in ("rows", "disk", "scratch"))


class Severity(StrEnum):
    """How grave it is that software has drained a node."""

    DEGRADED = "degraded"  # the node is to go, what runs there goes on
    FATAL = "fatal"  # what computes there fails, or waits for ever


def severity_of(reason: str) -> Severity:
    """By the reason of a drain."""
    said = _SAID.match(reason) if reason.startswith(OUR_CHECKS) else None
    if said is None:
        return Severity.DEGRADED
    whose = Severity.FATAL if said[2] else Severity.DEGRADED
    return Severity(said[1]) if said[1] else whose


def network_node_of(reason: str) -> str:
    """The lowest of EC2's network nodes that the node is below; "": it does not say."""
    said = _SAID.match(reason) if reason.startswith(OUR_CHECKS) else None
    return (said[4] or "") if said else ""


def is_reset(reason: str) -> bool:
    """Whether a reset of the GPUs is tried before the node is rebooted, as the reason says."""
    said = _SAID.match(reason)
    return said is not None and said[3].partition(",")[0] == "reset"


def needs_test(reason: str) -> bool:
    """Whether only a test under load shows, after a reboot, that it is mended."""
    said = _SAID.match(reason) if reason.startswith(OUR_CHECKS) else None
    return said is not None and said[3].endswith(", then a test")


def is_replaced(reason: str) -> bool:
    """Whether no reboot mends it, as the reason says, also one of a site's own check."""
    said = _SAID.match(reason)
    return said[3] == "replace" if said else reason.startswith(_STAYS)


@frozen
class Finding:
    """Software drained a node: who found it, and where the node was."""

    instance_id: str  #: the node
    check: str  #: who found it unhealthy, by the name that `fleet.drains.check_of` gives
    offering: Offering  #: what it was bought as
    at_s: float  #: when, epoch seconds
    pool_nodes: int  #: how many nodes its pool had
    place_nodes: int  #: how many of them were bought as the same
    template: str = ""  #: digest of what it is made from
    reservation: str = ""  #: the reservation that it was in; empty: none
    reboot_at_s: float | None = None  #: since when it is to be rebooted for that; null: it is not
    has_rebooted: bool = False  #: Slurm was seen to do it, or the node to be back
    is_fatal: bool = False  #: to what computed there, by the reason
    needs_test: bool = False  #: only a test under load shows that a reboot has mended it
    network_node: str = ""  #: the lowest of EC2's that it was below; empty: not known
    reset_said: str = ""  #: what became of a reset of its GPUs; empty: it has said nothing


@frozen
class StoppedCheck:
    """A check that found more of a pool's nodes unhealthy than it is believed of."""

    check: str  #: the check
    since_s: float  #: since when, epoch seconds
    found: int  #: how many nodes were let go for it before
    of: int  #: how many the pool had
    is_lifted: bool = False  #: a person has said that it counts again; the next plan forgets it

    def is_by(self, check: str) -> bool:
        """Whether what this name found is its word too."""
        return self.check in (check, checker(check))


def checker(check: str) -> str:
    """Who is believed or not: the check itself, where it has a name. A program that gives sentences
    instead, each maybe another one (`dcgm: the disk of ada is full`), counts as one check.
    """
    program, _, name = check.partition(": ")
    if name and " " not in name:
        return check
    return program if name else check.split(" ")[0]


def believed(pool_nodes: int, *, is_check: bool) -> int:
    """Of how many nodes it is believed in a day, in a pool of so many. `is_check`: neither Slurm's
    own word nor fatal to what runs.
    """
    least = BELIEVED_MIN if is_check else BELIEVED_MIN_OF_OTHERS
    return min(max(int(pool_nodes * BELIEVED_SHARE), least), BELIEVED_MAX)
