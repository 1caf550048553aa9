"""Every code that a message, a table or an answer for programs may hold, as it is defined."""

from collections.abc import Iterator, Sequence

from tidegate.adapters.aws_codes import CAPACITY, CURES, QUOTA, SUBNET
from tidegate.cli.pcluster.codes import LossCode
from tidegate.core.fleet.cures import in_general
from tidegate.core.model.codes import Coded
from tidegate.core.model.drain_reason import DrainCode
from tidegate.core.model.ec2 import Cure
from tidegate.core.model.frozen import frozen
from tidegate.core.model.notice import MailEnd, NoticeCode
from tidegate.core.model.resting import BootFailure
from tidegate.core.model.rollout import RolloutCode
from tidegate.core.model.why import Why
from tidegate.wire.compat_rules import Rule


@frozen
class Explained:
    """A code, what it is of and who shows it, what it means and what to do ("": nothing)."""

    code: str
    family: str
    shown_by: str
    meaning: str
    remedy: str


@frozen
class Family:
    """Codes of one kind."""

    name: str
    shown_by: str
    codes: Sequence[tuple[str, str, str]]

    def explained(self) -> Iterator[Explained]:
        for code, meaning, remedy in self.codes:
            yield Explained(code, self.name, self.shown_by, meaning, remedy)


def _of(codes: type[Coded]) -> tuple[tuple[str, str, str], ...]:
    return tuple((str(each), each.meaning, each.remedy) for each in codes)


# What EC2 says of the offering itself.
_SHORT = "EC2 has none of it there now: it rests for minutes, and others are asked meanwhile"
_QUOTA = "the account may not have more of it"
_FULL = (
    "the subnet has no free address for what was asked: the pool's next one of the zone is asked"
)
_MORE_SUBNETS = "free addresses, or name another subnet of the zone under the pool's subnets"


def _of_ec2() -> tuple[tuple[str, str, str], ...]:
    wait = "wait, or have the pool allow more types, zones or markets"
    found = dict.fromkeys(CAPACITY, (_SHORT, wait))
    found |= dict.fromkeys(SUBNET, (_FULL, _MORE_SUBNETS))
    found |= dict.fromkeys(QUOTA, (_QUOTA, "ask AWS for more: `tidegate why` has the command"))
    for code, cure in CURES.items():
        if cure is not Cure.QUOTA:
            found[code] = (cure.meaning, in_general(cure))
    return tuple((code, *told) for code, told in sorted(found.items()))


FAMILIES = (
    Family("check of a cluster file", "`validate`, `cdk synth`", _of(Rule)),
    Family("why a job gets no node", "`why`, `status`, metrics", _of(Why)),
    Family("what EC2 refuses", "`why`, `status`, `events`", _of_ec2()),
    Family("why nodes did not come up", "`why`, `status`, `events`", _of(BootFailure)),
    Family("why a node is drained", "`sinfo -R`, `nodes`, `events`", _of(DrainCode)),
    Family("roll-out of a template", "`rollout`, `events`", _of(RolloutCode)),
    Family("notice", "what people are told (`docs/notifications.md`)", _of(NoticeCode)),
    Family("mail to the owner of a job", "`events`", _of(MailEnd)),
    Family("loss of an import", "`import pcluster` (`docs/migrating.md`)", _of(LossCode)),
)


def every() -> tuple[Explained, ...]:
    return tuple(each for family in FAMILIES for each in family.explained())
