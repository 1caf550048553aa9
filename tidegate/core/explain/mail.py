"""What a mail to the owner of jobs says, and what became of it."""

from collections.abc import Sequence

from tidegate.core.explain.history import EventKind, LookEvent
from tidegate.core.model.durations import moment
from tidegate.core.model.frozen import frozen
from tidegate.core.model.notice import Mail, MailEnd, Notice, NoticeCode, Told, key_of
from tidegate.core.model.slurm import Job

# More is for `squeue --me`; a mail is read on a phone.
NAMED_MAX = 20


def mail_text(cluster: str, about: Sequence[Notice]) -> tuple[str, str]:
    """Subject and text."""
    named = [f"{each.sentence[0].upper()}{each.sentence[1:]}." for each in about[:NAMED_MAX]]
    more = [f"And {len(about) - NAMED_MAX} more of your jobs."] if len(about) > NAMED_MAX else []
    jobs = f"job {about[0].cause.split('/')[0]}" if len(about) == 1 else f"{len(about)} jobs"
    foot = f"Told once for each run by Tidegate, which runs the nodes of cluster {cluster}."
    return f"Tidegate {cluster}: GPUs of your {jobs} idle", "\n\n".join([*named, *more, foot])


def run_of(job: Job) -> str:
    """The cause of what is told of idle GPUs: once for each run of a job."""
    return f"{job.job_id}/{job.restarts}"


@frozen
class OwnerMails:
    """What became of the mails to owners, and who sends them."""

    sender: str
    told: Told

    def about(self, job: Job) -> str:
        """Of the run of a job whose GPUs idle."""
        key = key_of(NoticeCode.OWN_GPUS_IDLE, run_of(job))
        if mail := self.told.mails.get(key):
            return f"{said_of(mail.end, self.sender)} ({moment(mail.at_s)} UTC)"
        if key in self.told.at_s:  # a version that did not remember the mail's end has written
            return "its owner was written to, and what became of the mail is not known"
        return "its owner gets a mail with the next look"


def mail_event(about: Sequence[Notice], mail: Mail, *, sender: str, look_id: str) -> LookEvent:
    """For the log that people read. `about`: all that one mail to a user is of."""
    jobs = tuple(each.cause.split("/")[0] for each in about)
    named, more = ", ".join(jobs[:NAMED_MAX]), len(jobs) - NAMED_MAX
    them = f"jobs {named}" if len(jobs) > 1 else f"job {named}"
    them += f" and {more} more" if more > 0 else ""
    said = said_of(mail.end, sender, whose="their" if len(jobs) > 1 else "its")
    sentence = f"{them} of {about[0].user}: {said}"
    return LookEvent(mail.at_s, look_id, EventKind.MAIL, mail.end.value, jobs, sentence=sentence)


def said_of(end: MailEnd, sender: str, *, whose: str = "its") -> str:
    """What became of it, and what would help."""
    match end:
        case MailEnd.SENT:
            return f"{whose} owner was told by mail"
        case MailEnd.LATER:
            return f"{whose} owner is told by mail as soon as SES takes it"
        case MailEnd.NO_ADDRESS:
            why = "notifications.owners has no address of this user: add it to by_user"
        case MailEnd.RECIPIENT_UNVERIFIED:
            why = "SES is in its sandbox here and takes verified addresses only: ask for production"
        case MailEnd.SENDER_UNVERIFIED:
            why = f"SES has not verified {sender} in this region: verify it or its domain"
        case MailEnd.SUPPRESSED:
            why = (
                "the address is on SES's suppression list here since mail to it came back or was"
                " complained of: see to that, then aws sesv2 delete-suppressed-destination"
            )
        case MailEnd.PAUSED:
            why = "SES has paused all mail of this account: its console says why"
        case MailEnd.REFUSED:
            why = "SES refused the mail: is the address right?"
        case MailEnd.DENIED:
            why = (
                "the planner's role may not send it: deploy again, or look for a policy that denies"
            )
    return f"{whose} owner got no mail, {why}"
