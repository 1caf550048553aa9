"""Telling people what a look found, each cause once.

A message goes out before it is remembered that it did. A planner that dies between the two tells
again, and so may two that look at once: at least once, and never not at all.
"""

from itertools import groupby

from tidegate.core.explain.notices import notices
from tidegate.core.model.frozen import frozen
from tidegate.core.model.notice import Message, Told, still_told
from tidegate.ports import Clock, Notices
from tidegate.service.control import Looked


@frozen
class Teller:
    """Tells of one cluster. `wait_s`: from so long a wait on, a job is told of."""

    cluster: str
    notices: Notices
    clock: Clock
    wait_s: float

    def tell(self, looked: Looked) -> int:
        """How many causes were told of that had not been. Errors: Throttled, NotAuthorized.

        A look that did not know the queue tells nothing. Where nothing is to tell, nothing is
        asked for either.
        """
        known = looked.last_known
        found = notices(known.snapshot, known.plan, wait_s=self.wait_s) if known else ()
        if not found:
            return 0
        now_s = self.clock.now_s()
        before = self.notices.told()
        new = [each for each in found if each.key not in before.at_s]
        if not new:
            return 0
        told = still_told(before, frozenset(each.key for each in found), now_s)
        for code, group in groupby(new, lambda each: each.code):
            about = tuple(group)
            self.notices.publish(Message(self.cluster, code, now_s, about))
            told = Told({**told.at_s, **{each.key: now_s for each in about}})
            self.notices.note(told)
        return len(new)
