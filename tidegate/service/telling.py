"""Telling people what a look found, each cause once.

A message goes out before it is remembered that it did. A planner that dies between the two tells
again, and so may two that look at once: at least once, and never not at all.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import groupby

from tidegate.core.explain.mail import mail_text, said_of
from tidegate.core.explain.notices import notices
from tidegate.core.model.frozen import frozen
from tidegate.core.model.notice import MailEnd, Message, Notice, NoticeCode, Told, still_told
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

    def tell(self, looked: Looked) -> int:
        """How many causes were told of that had not been. Errors: Throttled, NotAuthorized.

        A look that did not know the queue tells nothing. Where nothing is to tell, nothing is
        asked for either.
        """
        known = looked.last_known
        every = notices(known.snapshot, known.plan, wait_s=self.wait_s) if known else ()
        found = [each for each in every if self.owners or not each.user]
        if not found:
            return 0
        now_s = self.clock.now_s()
        before = self.notices.told()
        new = [each for each in found if each.key not in before.at_s]
        if not new:
            return 0
        told = still_told(before, frozenset(each.key for each in found), now_s)
        ends = self._write([each for each in new if each.user])
        done = [each.key for each in new if ends.get(each.key, MailEnd.LATER) is not MailEnd.LATER]
        if done:
            told = Told({**told.at_s, **dict.fromkeys(done, now_s)})
            self.notices.note(told)
        to_all = (self._with_end(each, ends) for each in new if not each.user)
        for code, group in groupby(to_all, lambda each: each.code):
            about = tuple(group)
            self.notices.publish(Message(self.cluster, code, now_s, about))
            told = Told({**told.at_s, **{each.key: now_s for each in about}})
            self.notices.note(told)
        return len(done) + sum(not each.user for each in new)

    def _write(self, new: Iterable[Notice]) -> Mapping[str, MailEnd]:
        """By key what became of each; one mail for all that is new to a user."""
        ends: dict[str, MailEnd] = {}
        by_user: dict[str, list[Notice]] = {}
        for each in new:
            by_user.setdefault(each.user, []).append(each)
        for number, (user, about) in enumerate(sorted(by_user.items())):
            is_late = number >= MAILS_MAX or MailEnd.LATER in ends.values()
            end = MailEnd.LATER if is_late else self._write_to(user, about)
            ends |= dict.fromkeys((each.key for each in about), end)
        return ends

    def _write_to(self, user: str, about: list[Notice]) -> MailEnd:
        assert self.owners is not None, "without them their notices are left out"
        address = self.owners.address_of(user)
        if not address:
            return MailEnd.NO_ADDRESS
        return self.owners.mail.send(address, *mail_text(self.cluster, about))

    def _with_end(self, notice: Notice, ends: Mapping[str, MailEnd]) -> Notice:
        """Who runs the cluster reads what the owner heard."""
        end = ends.get(f"{NoticeCode.OWN_GPUS_IDLE}/{notice.cause}")
        if notice.code is not NoticeCode.GPUS_IDLE or end is None or self.owners is None:
            return notice
        said = said_of(end, self.owners.mail.sender)
        return replace(notice, sentence=f"{notice.sentence}; {said}")
