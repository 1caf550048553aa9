"""Why we drain a node: a record that Slurm keeps as the node's reason, in a text for people.

`tidegate: kept for gang 7 (kept 7 until 2026-11-23T08:00:00Z)`: the sentence, then in brackets the
code, its subject and its end. Programs read what is in the brackets, whoever wrote it: the planner,
the agent, the watcher of a spot node (userdata/node/spot-watch.sh).
"""

import re
from datetime import UTC, datetime

from tidegate.core.model.codes import Coded
from tidegate.core.model.frozen import frozen

# What every reason of ours begins with.
MARK = "tidegate"

# The agent cuts a reason after 1,000 characters, and the record stands at its end.
SENTENCE_MAX_CHARS = 800


# The subject of a cordon for which AWS Health has no word: EC2 recommends to leave a spot node.
REBALANCE = "rebalance"


class DrainCode(Coded):
    """What a reason is about, and in the comment the subject, if it has one."""

    STOPPED = "stopped", "the calendar, or a person, has stopped the cluster", "`tidegate keep-up`"
    CLOSED = "closed", "no job starts there until one comes that is worth its price"
    KEPT = "kept", "it is kept for the rest of a gang, until its end"  # the gang
    FREED = "freed", "its gang no longer waits for it"  # the gang
    COMPLETE = "complete", "its gang is there, and it opens"  # the gang
    OPEN = "open", "it takes jobs: no drain, but the reason given as it was undrained"
    RECLAIM = "reclaim", "EC2 reclaims it in two minutes, and its jobs are saved"
    NOTICED = "noticed", "the node itself has seen EC2's notice, and waits for the service"
    SAVING = "saving", "EC2 reclaims it, and the node saves its jobs itself"
    TAKEN = "taken", "AWS takes it for another cause than spot, or has said so before"
    CORDON = "cordon", "AWS says that it may not last: it takes no new job"  # what AWS said
    GONE = "gone", "its instance has ended or is not seen any more"
    UNASKED = "unasked", "it joined after it had been let go, and leaves"
    BLOCK_ENDS = "block-ends", "the capacity block or reservation that it is in ends"
    UNUSABLE = "unusable", "it is in a state in which Slurm starts no job", "see sinfo -R"
    UNHEALTHY = "unhealthy", "a health check failed", "`tidegate node log NODE`"
    EXPIRED = "expired", "it is older than the pool's disruption.expire_after_s"
    DRIFTED = "drifted", "the pool makes its nodes from another template by now"
    EMPTY = "empty", "no job has needed it for the pool's idle_s"
    CONSOLIDATABLE = "consolidatable", "its job is moved to cheaper nodes"  # the job
    GIVEN_UP = "given-up", "it is made from a template that is no good", "`tidegate rollout status`"
    HELD = "held", "a person looks into it, until its end", "`tidegate node release NODE`"
    HOLD_ENDS = "hold-ends", "the time of the person who held it is over"
    LEFT = "left", "an earlier drain of Tidegate's whose cause is over was still there"
    RELEASE = "release", "the agent lets it go"  # the order
    OTHER = "other", "another version of Tidegate drained it, or an order without a text"


@frozen
class DrainReason:
    """Why a node of ours is drained. `until_s`: when that ends by itself; None: it does not."""

    code: DrainCode
    sentence: str
    subject: str = ""
    until_s: float | None = None

    def __str__(self) -> str:
        """As the node's reason in Slurm."""
        words = [self.code.value, *filter(None, [self.subject])]
        if self.until_s is not None:
            words += ["until", datetime.fromtimestamp(self.until_s, UTC).strftime(_INSTANT)]
        sentence = self.sentence[:SENTENCE_MAX_CHARS]
        return f"{MARK}: {sentence} ({' '.join(words)})"


# Given with every undrain: Slurm 24.11 keeps the reason of a node that is opened, and does not
# write its own over it when it drains the node by itself later.
OPEN = str(DrainReason(DrainCode.OPEN, "it takes jobs"))

_INSTANT = "%Y-%m-%dT%H:%M:%SZ"

# Slurm may add words of its own after ours, behind " : ".
_WRITTEN = re.compile(
    rf"{MARK}: (?P<sentence>.*) "
    r"\((?P<code>[a-z-]+)(?: (?!until )(?P<subject>\S+))?(?: until (?P<until>\S+))?\)"
    r"(?: : (?P<since>.*))?",
    re.DOTALL,
)

# What version 0.1 wrote, without a record. To be read until no node of its is left.
_BEFORE = {
    DrainCode.STOPPED: re.compile(r"tidegate: the cluster is stopped"),
    DrainCode.CLOSED: re.compile(r"tidegate: kept for larger jobs$"),
    DrainCode.KEPT: re.compile(r"tidegate: kept for gang (?P<subject>\S+) until (?P<until>\S+)$"),
    DrainCode.RECLAIM: re.compile(r"tidegate: EC2 reclaims"),
    DrainCode.NOTICED: re.compile(r"tidegate: spot reclaim at"),
    DrainCode.SAVING: re.compile(r"tidegate: the node saves its jobs"),
    DrainCode.CORDON: re.compile(r"tidegate: (?:AWS Health: (?P<subject>\S+)$|EC2 recommends to )"),
    DrainCode.OPEN: re.compile(r"tidegate: open$"),
    DrainCode.RELEASE: re.compile(r"tidegate release (?P<subject>\S+)"),
}


def is_marked(text: str) -> bool:
    """Whether it begins as all that we write does; anybody may write so."""
    return text.startswith(MARK)


def read(text: str) -> DrainReason | None:
    """The record in a node's reason; None: there is none, or it is not ours."""
    if not is_marked(text):
        return None
    if found := _WRITTEN.fullmatch(text):
        code = found["code"] if found["code"] in _CODES else DrainCode.OTHER
        until_s = _instant(found["until"])
        return DrainReason(DrainCode(code), found["sentence"], found["subject"] or "", until_s)
    for before, pattern in _BEFORE.items():
        if found := pattern.match(text):
            said = found.groupdict()
            default = REBALANCE if before is DrainCode.CORDON else ""
            subject = said.get("subject") or default
            return DrainReason(before, _words(text), subject, _instant(said.get("until")))
    return None


def code_of(text: str) -> DrainCode | None:
    """What a node's reason is about; None: it is not ours, or holds no record."""
    found = read(text)
    return found.code if found else None


def sentence_of(text: str) -> str:
    """A reason as people read it, whoever wrote it; "": there is none.

    That a node was opened is no reason: what Slurm has said since is.
    """
    found = read(text)
    if found is None:
        return _words(text)
    written = _WRITTEN.fullmatch(text)
    since = (written["since"] or "") if written else ""
    if found.code is DrainCode.OPEN:
        return since
    return f"{found.sentence}; then {since}" if since else found.sentence


def _words(text: str) -> str:
    return text.removeprefix(f"{MARK}: ")


def _instant(text: str | None) -> float | None:
    """0: it is no time that can be read, and so over."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


_CODES = frozenset(DrainCode)
