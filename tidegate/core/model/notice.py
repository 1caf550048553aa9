"""What people are told unasked: what each message is about, and what was told already."""

from collections.abc import Mapping
from dataclasses import field

from tidegate.core.model.codes import Coded
from tidegate.core.model.frozen import frozen


class NoticeCode(Coded):
    """What a notice is about."""

    JOB_WAITS = (
        "job-waits",
        "a job has waited longer than notifications.wait_s",
        "`tidegate why JOBID`",
    )
    BUDGET_NEARLY_SPENT = "budget-nearly-spent", "a budget of money is spent to nine tenths"
    BUDGET_SPENT = "budget-spent", "a budget of money is spent", "raise it, or wait for its end"
    CHECK_DOUBTED = (
        "check-doubted",
        "a health check drained so many nodes that it is believed no more",
        "mend the check, then `tidegate retry POOL`",
    )
    NODE_HELD = (
        "node-held",
        "a person holds a node to look into it, which is paid for meanwhile",
        "`tidegate node release NODE`",
    )
    ROLLOUT_STOPPED = (
        "rollout-stopped",
        "a roll-out was given up, or is paused until a person says how to go on",
        "`tidegate rollout status`",
    )
    BLOCK_ENDS = "block-ends", "a capacity block or reservation with running jobs ends soon"
    GPUS_IDLE = "gpus-idle", "a job's GPUs do nothing", "`tidegate why JOBID`"
    OWN_GPUS_IDLE = "own-gpus-idle", "the same, told to who owns the job"
    REPORT_READY = "report-ready", "the page of a day, a week or a month is there"


# What is over as soon as it is not seen any more: the next time is another cause.
OF_JOBS = frozenset({NoticeCode.JOB_WAITS, NoticeCode.GPUS_IDLE, NoticeCode.OWN_GPUS_IDLE})


class MailEnd(Coded):
    """What became of a mail to the owner of a job. All but `LATER` are final for this cause."""

    SENT = "sent", "SES took it"
    NO_ADDRESS = "no-address", "the owner has none: notifications.owners makes no valid one of it"
    RECIPIENT_UNVERIFIED = (
        "recipient-unverified",
        "SES's sandbox takes no recipients that are not verified",
        "ask AWS for production access of SES, or verify the address",
    )
    SENDER_UNVERIFIED = (
        "sender-unverified",
        "SES does not know the sender of notifications.owners",
        "verify its address or domain in SES",
    )
    SUPPRESSED = (
        "suppressed",
        "the address is on SES's suppression list: a mail to it bounced, or was called spam",
        "aws sesv2 delete-suppressed-destination",
    )
    PAUSED = "sending-paused", "AWS lets the account send no mail", "see the account's SES page"
    REFUSED = "refused", "SES refused it"
    DENIED = "not-authorized", "a policy forbids the planner's function to send it"
    LATER = "later", "too many at a time, or for a day: it is tried again"


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
