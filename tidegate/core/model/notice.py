"""What people are told unasked: what each message is about, and what was told already."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from tidegate.core.model.frozen import frozen


class NoticeCode(StrEnum):
    """What a notice is about."""

    JOB_WAITS = "job-waits"
    BUDGET_NEARLY_SPENT = "budget-nearly-spent"
    BUDGET_SPENT = "budget-spent"
    CHECK_DOUBTED = "check-doubted"  # a health check is believed no more
    NODE_HELD = "node-held"  # by a person who looks into it
    ROLLOUT_STOPPED = "rollout-stopped"  # given up, or paused until a person says how to go on
    BLOCK_ENDS = "block-ends"
    GPUS_IDLE = "gpus-idle"
    OWN_GPUS_IDLE = "own-gpus-idle"  # the same, told to who owns the job
    REPORT_READY = "report-ready"  # the page of a day, a week or a month is there


# What is over as soon as it is not seen any more: the next time is another cause.
OF_JOBS = frozenset({NoticeCode.JOB_WAITS, NoticeCode.GPUS_IDLE, NoticeCode.OWN_GPUS_IDLE})


class MailEnd(StrEnum):
    """What became of a mail to the owner of a job. All but `LATER` are final for this cause."""

    SENT = "sent"
    NO_ADDRESS = "no-address"
    RECIPIENT_UNVERIFIED = "recipient-unverified"  # SES's sandbox takes no others
    SENDER_UNVERIFIED = "sender-unverified"
    SUPPRESSED = "suppressed"  # SES took it and sends nothing to this address
    PAUSED = "sending-paused"
    REFUSED = "refused"
    DENIED = "not-authorized"
    LATER = "later"  # too many at a time, or for a day


@frozen
class Notice:
    """`cause`: what is told once, unique among those of its code. `user`: who alone is told it, ""
    for everybody who has subscribed.
    """

    code: NoticeCode
    cause: str
    sentence: str
    user: str = ""

    @property
    def key(self) -> str:
        return key_of(self.code, self.cause)


def key_of(code: NoticeCode, cause: str) -> str:
    return f"{code}/{cause}"


@frozen
class Message:
    """One message: all notices of a code that a look has to tell, at least one."""

    cluster: str
    code: NoticeCode
    at_s: float
    notices: tuple[Notice, ...]


@frozen
class Mail:
    """What became of a mail to the owner of a job, and when that was known, epoch seconds."""

    end: MailEnd
    at_s: float


@frozen
class Told:
    """What people were told: key of a notice -> when, epoch seconds; and of those for the owner of
    a job what became of the mail, also where that is yet to go.
    """

    at_s: Mapping[str, float] = field(default_factory=dict)
    mails: Mapping[str, Mail] = field(default_factory=dict)


# Longer than a month, whose budget is told of once.
TOLD_KEPT_S = 40 * 86400.0


def still_told(told: Told, seen: frozenset[str], now_s: float) -> Told:
    """What need not be told again. `seen`: the keys of what is so now."""
    at_s = {
        key: at_s
        for key, at_s in told.at_s.items()
        if key in seen or (key.split("/")[0] not in OF_JOBS and now_s - at_s < TOLD_KEPT_S)
    }
    return Told(at_s, {key: mail for key, mail in told.mails.items() if key in seen})
