"""Whose a drain is: ours, a person's, or some software's that found the node sick.

A person's drain is kept and waited for; what software drained is judged and replaced within
bounds. Slurm stores with each reason the user who gave it, and the agent writes beside each of
its own the same words as the node's comment, so that no reason has to be believed by its prefix.
"""

import re
from collections.abc import Collection
from enum import Enum, auto

from tidegate.core.model.drain_reason import DrainCode, code_of, is_marked, read, sentence_of
from tidegate.core.model.finding import OUR_CHECKS
from tidegate.core.model.idle_check import FOUND
from tidegate.core.model.slurm import Node, SetBy

# What slurmctld, slurmd and slurmstepd write when they drain a node or set it DOWN by themselves.
# Source: Slurm 22.05 to 26.05, every drain_nodes, set_node_reason, set_node_down, reason_down in
# src/slurmctld, and _drain_node, stepd_drain_node in src/slurmd. slurmctld's have the user
# SlurmUser, those of the daemons on the node SlurmdUser, which is root.
_SLURMS_OWN = re.compile(
    r"(?:Epilog error|Prolog error|Prolog/Epilog failure|Job env setup error|Kill task failed"
    r"|Job step not running|Duplicate jobid|batch job complete failure|Bad core count"
    r"|Not responding|Node unexpectedly rebooted|SlurmdSpoolDir is full|ResumeTimeout reached"
    r"|reboot timed out|switch_g_job_postfini failed|NO NETWORK ADDRESS FOUND"
    r"|Could not unpack gres data|Low (?:RealMemory|CPUs|TmpDisk|socket\*core\*thread count)"
    r"|CoreSpec differ|Invalid KNL modes|Failed to parse dynamic_conf nodeline"
    r"|Reported active features (?=\()|RestrictedCoresPerGPU(?==)"
    r"|gres/[\w:-]+ count (?:reported lower|changed)[^,:]*)(?=$| \(|, | : |:|=|\()"
)


# Of these: a node that joins with less than it should have. It is Slurm's measurement, and what
# launches of its template do about it is another rule (`templates`).
_MISFIT = re.compile(r"Low |CoreSpec differ|Invalid KNL|Reported active features|gres/")

# A check's own name, where it writes more than that: numbers, and words of hex digits, are of one
# node or device (an instance's id, a GPU's UUID, an address on the bus or in the network). A word
# that only ends with a number has a name: `ecc0` and `fb0` are two.
CHECK_MAX_CHARS = 60
_OF_ONE = re.compile(
    r"(?<![A-Z0-9])(?![A-F]+\d+(?![A-Z0-9]|[:.-]+[0-9A-F]))"
    r"(?:i-)?(?=[0-9A-F:.-]{0,36}\d)[0-9A-F](?:[0-9A-F:.-]*[0-9A-F])?(?![A-Z0-9])|\d+",
    re.IGNORECASE,
)


class Hand(Enum):
    """Who has drained a node."""

    OURS = auto()  # the service, the agent, the node's own watcher; or it is at its gate
    SOFTWARE = auto()
    PERSON = auto()


def is_ours(node: Node) -> bool:
    """Drained by us, or at its gate: a gate has no reason."""
    return hand(node) is Hand.OURS


def told_by(node: Node) -> str:
    """Who drained the node and why, as an order repeats it: others may use the same words."""
    return f"{node.set_by}: {node.reason}"


def is_misfit(node: Node) -> bool:
    """Slurm has drained it since it is not what its type is."""
    said = sentence_of(node.reason)
    return _SLURMS_OWN.match(said) is not None and _MISFIT.match(said) is not None


def check_of(node: Node) -> str:
    """The name of the check that drained the node, the same for all that it drains: Slurm's own
    words, or what stands before the second colon (`NHC: check_fs_used`), with # for numbers and
    for what names the node.
    """
    said = sentence_of(node.reason)
    if found := _SLURMS_OWN.match(said):
        return found[0]
    name = ": ".join(said.split(": ", 2)[:2])
    return _OF_ONE.sub("#", name)[:CHECK_MAX_CHARS] or "no reason given"


def is_a_check(check: str) -> bool:
    """It is not Slurm itself that says so."""
    return not _SLURMS_OWN.match(check)


def hand(node: Node, health_reasons: Collection[str] = ()) -> Hand:
    """Who gave the node the reason that it has. `health_reasons`: what those of the site's own
    checkers begin with, whichever user they run as.
    """
    reason = node.reason
    if reason.startswith(FOUND):
        return Hand.SOFTWARE  # the agent writes it in the name of a check
    if not reason or node.set_by is SetBy.US:
        return Hand.OURS
    code = code_of(reason)
    # Slurm 24.11 keeps the reason of a node that is opened when it drains it by itself later.
    if reason.startswith((*health_reasons, OUR_CHECKS)) or code is DrainCode.OPEN:
        return Hand.SOFTWARE
    if code is DrainCode.HELD:
        # What Slurm adds leaves the node to the person; without a word of its own it is as above.
        is_left_over = node.set_by is SetBy.SLURM and str(read(reason)) == reason
        return Hand.SOFTWARE if is_left_over else Hand.PERSON
    match node.set_by:
        case SetBy.SLURM:  # nobody works as this user; an agent of the version before does
            if is_marked(reason):
                return Hand.OURS
            # Slurm adds its words to those of whoever drained it: a person, or it would be known.
            _, is_added, _ = reason.partition(" : ")
            is_slurms = not is_added or _SLURMS_OWN.match(reason) is not None
            return Hand.SOFTWARE if is_slurms else Hand.PERSON
        case SetBy.ROOT:
            if code in (DrainCode.NOTICED, DrainCode.SAVING):
                return Hand.OURS
            return Hand.SOFTWARE if _SLURMS_OWN.match(reason) else Hand.PERSON
        case SetBy.USER:
            return Hand.PERSON
        case _:  # the head's agent does not tell yet
            if is_marked(reason):
                return Hand.OURS
            return Hand.SOFTWARE if _SLURMS_OWN.match(reason) else Hand.PERSON


def is_at_gate(node: Node) -> bool:
    """It is drained without a reason, as nodes join that wait for a gang: Slurm wants one from
    whoever drains a node later.
    """
    return node.state.is_drain and not node.reason
