"""What a mail to the owner of jobs says, and what became of it."""

from collections.abc import Sequence

from tidegate.core.model.notice import MailEnd, Notice

# More is for `squeue --me`; a mail is read on a phone.
NAMED_MAX = 20


def mail_text(cluster: str, about: Sequence[Notice]) -> tuple[str, str]:
    """Subject and text."""
    named = [f"{each.sentence[0].upper()}{each.sentence[1:]}." for each in about[:NAMED_MAX]]
    more = [f"And {len(about) - NAMED_MAX} more of your jobs."] if len(about) > NAMED_MAX else []
    jobs = f"job {about[0].cause.split('/')[0]}" if len(about) == 1 else f"{len(about)} jobs"
    foot = f"Told once for each run by Tidegate, which runs the nodes of cluster {cluster}."
    return f"Tidegate {cluster}: GPUs of your {jobs} idle", "\n\n".join([*named, *more, foot])


def said_of(end: MailEnd, sender: str) -> str:
    """What became of it, and what would help."""
    match end:
        case MailEnd.SENT:
            return "its owner was told by mail"
        case MailEnd.LATER:
            return "its owner is told by mail as soon as SES takes it"
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
    return f"its owner got no mail, {why}"
