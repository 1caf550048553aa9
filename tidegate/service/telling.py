"""Telling people what a look found, each cause once.

A message goes out before it is remembered that it did. A planner that dies between the two tells
again, and so may two that look at once: at least once, and never not at all.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from tidegate.core.explain.history import LookEvent
from tidegate.core.explain.mail import mail_event, mail_text, said_of
from tidegate.core.explain.notices import notices
from tidegate.core.model.frozen import frozen
from tidegate.core.model.notice import (
    Mail,
    MailEnd,
    Message,
    Notice,
    NoticeCode,
    Told,
    key_of,
    still_told,
)
from tidegate.ports import Clock, Notices
from tidegate.ports.owner_mail import OwnerMail
from tidegate.service.control import Looked

# Of users in one look, which has other things to do; the next look writes to the others.
MAILS_MAX = 10


@frozen
class Owners:
    """How the owners of jobs are reached. `address_of`: of a user, "" for who has none."""

    mail: OwnerMail
    address_of: Callable[[str], str]


@frozen
class Teller:
    """Tells of one cluster. `wait_s`: from so long a wait on, a job is told of. `owners` None: they
    are not written to.
    """

    cluster: str
    notices: Notices
    clock: Clock
    wait_s: float
    owners: Owners | None = None

    def write(self, looked: Looked) -> tuple[LookEvent, ...]:
        """Write to the owners of jobs what is new to them: what became of each user's mail, where
        that is not as it was. Errors: Throttled, NotAuthorized.
        """
        found = self._found(looked)
        if not any(each.user for each in found):
            return ()
        before = self.notices.told()
        new = [each for each in found if each.user and each.key not in before.at_s]
        now_s = self.clock.now_s()
        mails = {key: Mail(end, now_s) for key, end in self._sent(new).items()}
        changed = [
            each
            for each in new
            if each.key not in before.mails or before.mails[each.key].end != mails[each.key].end
        ]
        if not changed:
            return ()
        told = still_told(before, frozenset(each.key for each in found), now_s)
        done = (key for key, mail in mails.items() if mail.end is not MailEnd.LATER)
        now = {each.key: mails[each.key] for each in changed}
        at_s = {**told.at_s, **dict.fromkeys(done, now_s)}
        self.notices.note(Told(at_s, {**told.mails, **now}))
        return tuple(
            self._event(about, now[about[0].key], looked) for about in _by_user(changed).values()
        )

    def tell(self, looked: Looked) -> int:
        """How many causes all were told of that they had not been. Errors: Throttled,
        NotAuthorized.

        A look that did not know the queue tells nothing. Where nothing is to tell, nothing is
        asked for either.
        """
        found = self._found(looked)
        if not found:
            return 0
        now_s = self.clock.now_s()
        before = self.notices.told()
        new = [each for each in found if not each.user and each.key not in before.at_s]
        if not new:
            return 0
        told = still_told(before, frozenset(each.key for each in found), now_s)
        to_all = (self._with_end(each, told) for each in new)
        for code, group in groupby(to_all, lambda each: each.code):
            about = tuple(group)
            self.notices.publish(Message(self.cluster, code, now_s, about))
            told = replace(told, at_s={**told.at_s, **{each.key: now_s for each in about}})
            self.notices.note(told)
        return len(new)

    def _found(self, looked: Looked) -> list[Notice]:
        """All that is so now, for whom the file tells."""
        known = looked.last_known
        every = notices(known.snapshot, known.plan, wait_s=self.wait_s) if known else ()
        return [each for each in every if self.owners or not each.user]

    def _sent(self, new: Iterable[Notice]) -> Mapping[str, MailEnd]:
        """By key what became of each; one mail for all that is new to a user."""
        ends: dict[str, MailEnd] = {}
        for number, (user, about) in enumerate(_by_user(new).items()):
            is_late = number >= MAILS_MAX or MailEnd.LATER in ends.values()
            end = MailEnd.LATER if is_late else self._send(user, about)
            ends |= dict.fromkeys((each.key for each in about), end)
        return ends

    def _send(self, user: str, about: list[Notice]) -> MailEnd:
        assert self.owners is not None, "without them their notices are left out"
        address = self.owners.address_of(user)
        if not address:
            return MailEnd.NO_ADDRESS
        return self.owners.mail.send(address, *mail_text(self.cluster, about))

    def _event(self, about: Sequence[Notice], mail: Mail, looked: Looked) -> LookEvent:
        assert self.owners is not None, "without them nobody is written to"
        assert looked.last_known is not None, "what is told of was seen"
        look_id = str(looked.last_known.snapshot.epoch)
        return mail_event(about, mail, sender=self.owners.mail.sender, look_id=look_id)

    def _with_end(self, notice: Notice, told: Told) -> Notice:
        """Who runs the cluster reads what the owner heard."""
        mail = told.mails.get(key_of(NoticeCode.OWN_GPUS_IDLE, notice.cause))
        if notice.code is not NoticeCode.GPUS_IDLE or mail is None or self.owners is None:
            return notice
        said = said_of(mail.end, self.owners.mail.sender)
        return replace(notice, sentence=f"{notice.sentence}; {said}")


def _by_user(of_owners: Iterable[Notice]) -> Mapping[str, list[Notice]]:
    """In the order of their names."""
    found: dict[str, list[Notice]] = {}
    for each in of_owners:
        found.setdefault(each.user, []).append(each)
    return dict(sorted(found.items()))
