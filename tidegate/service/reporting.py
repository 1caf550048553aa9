"""Makes the page of each period that is over, once the head has handed in who ran, and tells.

A page is written once, whoever makes it how often. It is written before people are told, and they
are told before that is noted: who dies in between tells a second time, and never not at all.
"""

from collections.abc import Iterator, Mapping

from tidegate.core.explain.figures import Figures, figures
from tidegate.core.explain.report_page import as_html, summary
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.frozen import frozen
from tidegate.core.model.notice import Message, Notice, NoticeCode
from tidegate.core.offers.periods import Every, before, ended
from tidegate.core.offers.spend import Period
from tidegate.ports import Clock, Ledger, Notices, Reports
from tidegate.service.billing import bills

# A head that was stopped hands in all of them at its start.
PERIODS_MAX = 7


@frozen(kw_only=True)
class Reporter:
    """Reports of one cluster. `types`: every instance type, by name. `notices`: None: nobody is
    told.
    """

    cluster: str
    every: Every
    reports: Reports
    ledger: Ledger
    clock: Clock
    types: Mapping[str, InstanceType]
    notices: Notices | None

    def make(self) -> tuple[str, ...]:
        """The periods whose page was made, or told of, now; the oldest first.

        Errors: Throttled, NotAuthorized; SlurmUnavailable, what was handed in cannot be read.
        """
        pages = self.reports.pages()
        return tuple(name for each in self._due(pages) if (name := self._one(each, pages)))

    def _due(self, pages: Mapping[str, bool]) -> Iterator[Period]:
        """Of what was handed in before the period was over something is missing."""
        handed_in = self.reports.handed_in()
        for each in ended(self.every, self.clock.now_s(), PERIODS_MAX):
            at_s = handed_in.get(each.name)
            is_done = each.name in pages and (pages[each.name] or self.notices is None)
            if at_s is not None and at_s >= each.ends_at_s and not is_done:
                yield each

    def _one(self, period: Period, pages: Mapping[str, bool]) -> str:
        """Its name; "": another one was faster, and tells."""
        earlier = before(self.every, period)
        since_s, until_s = period.starts_at_s, period.ends_at_s
        found = self.reports.accounted(period.name, until_s)
        billed, _ = bills(self.ledger, self.clock, earlier.starts_at_s)
        given = billed, found.runs, self.types
        now = figures(*given, since_s, until_s, found.idle)
        then = figures(*given, earlier.starts_at_s, since_s, found.idle)
        if period.name not in pages:
            page = as_html(self.cluster, now, then)
            if not self.reports.put(period.name, page):
                return ""
        self._tell(period, now, then)
        return period.name

    def _tell(self, period: Period, now: Figures, then: Figures) -> None:
        if self.notices is None:
            return
        where = self.reports.where(period.name)
        # Long sentences are cut at their end, and half an address leads nowhere.
        said = f"report of {period.name}: {where} : {summary(now, then)}"
        notice = Notice(NoticeCode.REPORT_READY, period.name, said)
        self.notices.publish(
            Message(self.cluster, NoticeCode.REPORT_READY, self.clock.now_s(), (notice,))
        )
        self.reports.note_told(period.name)
