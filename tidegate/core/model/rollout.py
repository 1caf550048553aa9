"""How far a pool has gone over to a new template, and what its nodes have shown until now."""

from dataclasses import replace
from enum import StrEnum
from math import comb

from tidegate.core.model.codes import Coded
from tidegate.core.model.ec2 import Template
from tidegate.core.model.frozen import frozen
from tidegate.core.model.site_check import Checked

# How many nodes a bad template may touch: one could be a bad machine, two are the template's
# fault (three failures in 1,000 node-days are published, arXiv 2605.09370).
CANARIES_MAX = 2

# After the first nodes this part of a pool, in percent.
SHARE_PERCENT = 10

# A step is over after so long with a node that has joined well, the first one also after so many
# jobs that ended there.
WATCHED_S = 600.0
WATCHED_JOBS = 5
# Where no job has run there. Some pools only wait, and get their new image all the same.
WATCHED_IDLE_S = 24 * 3600.0

# Jobs fail of themselves too. Beside what ended on other nodes meanwhile, one failed job and
# nineteen good ones are assumed; a difference counts that chance gives less often than this.
ASSUMED_ENDED, ASSUMED_FAILED = 20, 1
CHANCE = 0.01

# Who has paused a roll-out whose check does not run.
BY_CHECK = "the site's check"


class Step(StrEnum):
    """How many nodes may be made from the new template."""

    CANARY = "canary"  # one, then two
    TENTH = "tenth"  # every tenth; after it all


class RolloutCode(Coded):
    """What a look or a person has decided about a roll-out."""

    BEGUN = "rollout-begun", "the pool has a new template, and its first nodes are made from it"
    SEEN = "rollout-seen", "its nodes or jobs have shown something, and it goes on as it is"
    TENTH = "rollout-tenth", "its first nodes are good: every tenth node may be made from it"
    DONE = "rollout-done", "all nodes are made from the new template from now on"
    BAD_NODES = (
        "rollout-bad-nodes",
        "given up: nodes did not join well, or became unhealthy",
        "mend the image and deploy, or `tidegate retry POOL`",
    )
    BAD_JOBS = (
        "rollout-bad-jobs",
        "given up: jobs fail there more often than elsewhere",
        "mend the image and deploy, or `tidegate retry POOL`",
    )
    BAD_CHECK = (
        "rollout-bad-check",
        "given up: the site's own check failed on its nodes",
        "mend the image and deploy, or `tidegate retry POOL`",
    )
    NOT_SOLD = (
        "rollout-not-sold",
        "given up: EC2 refuses the template itself",
        "deploy again what the refusal names, or `tidegate retry POOL`",
    )
    BAD_ALARM = (
        "rollout-bad-alarm",
        "given up: an alarm of the cluster file went into ALARM",
        "see the alarm, then `tidegate retry POOL`",
    )
    ABORTED = "rollout-aborted", "given up: by a person's word", "`tidegate retry POOL`"
    PAUSED = "rollout-paused", "it waits until a person resumes it", "`tidegate rollout resume`"
    CHECKING = "rollout-checking", "the site's check was asked for"
    CHECKED = "rollout-checked", "the site's check has passed"
    UNCHECKED = (
        "rollout-unchecked",
        "the site's check did not run: paused until a person says how to go on",
        "mend the check, then `tidegate rollout resume`",
    )
    RESUMED = "rollout-resumed", "it goes on after a pause"
    HELD = (
        "rollout-held",
        "its alarms say that it may not go on, or cannot be read",
        "see the alarms that rollout.alarms names",
    )
    UNHELD = "rollout-unheld", "its alarms are quiet, and it goes on"
    NO_WAY_BACK = (
        "rollout-no-way-back",
        "the last good template cannot be launched any more: nodes come from the new one",
    )


@frozen
class Tally:
    """Jobs that ended, and how many of them failed."""

    ended: int = 0  #: jobs that ended
    failed: int = 0  #: how many of them failed

    def plus(self, *, failed: bool) -> "Tally":
        return Tally(self.ended + 1, self.failed + failed)


@frozen
class Rollout:
    """A pool on its way from its last good template to `template`."""

    template: Template  #: the newer template
    since_s: float  #: since when
    step: Step = Step.CANARY  #: how many nodes may be made from it: the first two, or every tenth
    #: since when a node of it is well in this step; null: none has joined
    step_since_s: float | None = None
    tried: tuple[str, ...] = ()  #: its first nodes, those that joined or failed
    bad: tuple[str, ...] = ()  #: its nodes that are no good
    jobs: Tally = Tally()  #: jobs that ended on its nodes
    jobs_beside: Tally = Tally()  #: jobs that ended on the pool's other nodes meanwhile
    counted_until_s: float = 0.0  #: until when they are counted, on the head's clock
    given_up: RolloutCode | None = None  #: why no node is made from it any more; null: it goes on
    said: str = ""  #: that in words, or its last trouble
    is_paused: bool = False  #: a person has paused it, a check that did not run, or an alarm
    #: what a person wants, which the next plan does; null: nothing
    asked: RolloutCode | None = None
    by: str = ""  #: who asked last
    checked: Checked = Checked()  #: how far the site's check of it has come
    #: its alarms were all quiet at once since it began or was paused by one
    is_watched: bool = False
    held: str = ""  #: why it waits for its alarms; empty: it does not

    @property
    def is_stopped(self) -> bool:
        return self.is_paused or self.given_up is not None

    def most(self, pool_nodes: int) -> int:
        """How many nodes may be made from it, in a pool of so many."""
        if self.step is Step.CANARY:
            return CANARIES_MAX if self.tried else 1
        return max(CANARIES_MAX, -(-pool_nodes * SHARE_PERCENT // 100))

    def giving_up(self, why: RolloutCode, said: str) -> "Rollout":
        return replace(self, given_up=why, said=said, is_paused=False)

    def obeying(self) -> "Rollout":
        """With what a person has asked done."""
        done = replace(self, asked=None)
        match self.asked:
            case RolloutCode.ABORTED:
                return done.giving_up(RolloutCode.ABORTED, f"by the word of {self.by}")
            case RolloutCode.PAUSED | RolloutCode.RESUMED:
                return replace(done, is_paused=self.asked is RolloutCode.PAUSED)
            case _:
                return done


def fails_more(there: Tally, beside: Tally) -> bool:
    """Whether jobs fail more often there than beside it, by more than chance gives.

    Fisher's exact test, one-sided: of all these jobs so many failed; how likely is it that so
    many of them, or more, ended there?
    """
    ended = there.ended + beside.ended + ASSUMED_ENDED
    failed = there.failed + beside.failed + ASSUMED_FAILED
    most = min(there.ended, failed)
    ways = sum(
        comb(failed, here) * comb(ended - failed, there.ended - here)
        for here in range(there.failed, most + 1)
    )
    return ways < CHANCE * comb(ended, there.ended)
