"""What comes at an hour of the week, from the weeks that were seen, and how far to trust that.

Monday's rush is not to be seen in what came on Sunday. But most teams keep no hours: on the public
histories of small ones what comes in an hour says nothing of the same hour a week later. So two
forecasts of each hour are judged by what came in it, the one from what came lately and the one from
the same hour of earlier weeks. The week counts where its squared error has been less.

Hours are of UTC. A week counts for two thirds of the one after it.
"""

from bisect import bisect_left
from dataclasses import replace
from math import exp, sqrt

from tidegate.core.model.frozen import frozen
from tidegate.core.model.pool_history import HourSeen, SpareNode, Week

HOUR_S = 3600.0
HOURS = 168
# 1970 began on a Thursday.
MONDAY = 72
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

FADES_TO = 2 / 3
FORGOTTEN_WEEKS = 12
# Forecasts are judged by about so many hours.
JUDGED_OVER = 14 * 24.0
# Of a longer silence not every hour is judged.
JUDGED_MAX = 2 * HOURS

# How fast a mean of what came lately fades, see `tidegate.core.fleet.arrivals`.
LATE_FADES_S = 2 / (1 / HOUR_S + 1 / 86400.0)


@frozen
class Forecast:
    """What comes for nodes of one type in an hour, by the same hour of earlier weeks.

    `times`: in how many weeks it was seen; `pieces`: how many boots it is long; `nodes`: how many
    are wanted in it, `off`: the standard deviation of that; `jobs`: how many come; `used`: the
    share of the boots in which any do.
    """

    hour: int
    times: int
    pieces: float
    nodes: float = 0.0
    off: float = 0.0
    jobs: float = 0.0
    used: float = 0.0

    @property
    def name(self) -> str:
        """Like Monday 9:00 UTC."""
        return f"{DAYS[self.hour // 24]} {self.hour % 24}:00 UTC"

    def spare(self, number: int) -> SpareNode:
        """What the spare node of this number (0: the first) saves and how it is used.

        Few of the boots may have all the jobs: each further node is as likely wanted beside the
        one before as makes their mean.
        """
        if not self.used or not self.nodes:
            return SpareNode()
        together = max(self.nodes / (self.pieces * self.used), 1.0)
        used = self.used * (1 - 1 / together) ** number
        share = used / self.used / together
        saved = self.jobs / self.pieces * share
        return SpareNode(saved, saved, used, used)


def hour_at(at_s: float) -> int:
    """The hour since 1970."""
    return int(at_s // HOUR_S)


def with_piece(week: Week | None, hour: int, piece_s: float, jobs: float, nodes: float) -> Week:
    """With the jobs and nodes of a piece of time that has ended, which began in this hour."""
    week = week or Week(hour, hour)
    number, of_week = divmod(hour + MONDAY, HOURS)
    seen = _newest(_seen(week, of_week, number), number)
    had_nodes, had_jobs, had_used = seen.newest
    used = min(had_used + piece_s / HOUR_S, 1.0)
    newest = round(had_nodes + nodes, 3), round(had_jobs + jobs, 3), round(used, 3)
    seen = replace(seen, newest=newest)
    others = (each for each in week.hours if each.hour != of_week and not _is_over(each, number))
    hours = sorted((*others, seen), key=lambda each: each.hour)  # as `_seen` wants them
    return replace(week, hours=tuple(hours))


def forecast(week: Week | None, hour: int, piece_s: float) -> Forecast:
    """Of this hour since 1970, by the weeks before it alone; pieces of it are as long as a boot."""
    pieces = max(HOUR_S / max(piece_s, 1.0), 1.0)
    number, of_week = divmod(hour + MONDAY, HOURS)
    times = max((hour - week.since) // HOURS, 0) if week else 0
    if week is None or not times:
        return Forecast(of_week, 0, pieces)
    seen = _newest(_seen(week, of_week, number), number)
    weeks = (1 - FADES_TO**times) / (1 - FADES_TO)
    nodes, jobs, used, squares = (each / weeks for each in seen.before)
    off = sqrt(max(squares - nodes * nodes, 0.0))
    return Forecast(of_week, times, pieces, nodes, off, jobs, used)


def is_trusted(week: Week | None) -> bool:
    """Whether the week has been less wrong than what came lately."""
    return week is not None and week.week_error < week.late_error


def judged(week: Week | None, hour: int, late_nodes: float) -> Week | None:
    """With both forecasts judged by all hours before this one.

    `late_nodes`: what is expected within an hour by what came lately, from now on.
    """
    if week is None or hour <= week.judged:
        return week
    fade = exp(-1 / JUDGED_OVER)
    late, late_error, week_error = week.late_nodes, week.late_error, week.week_error
    for each in range(max(week.judged, hour - JUDGED_MAX), hour):
        known = forecast(week, each, HOUR_S)
        if known.times:
            came = _came(week, each)
            late_error = late_error * fade + (came - late) ** 2
            week_error = week_error * fade + (came - known.nodes) ** 2
        ahead = hour - each - 1
        late = late_nodes * exp(ahead * HOUR_S / LATE_FADES_S) if ahead else late_nodes
    return replace(
        week,
        judged=hour,
        late_nodes=round(late_nodes, 4),
        late_error=round(late_error, 3),
        week_error=round(week_error, 3),
    )


def _came(week: Week, hour: int) -> float:
    number, of_week = divmod(hour + MONDAY, HOURS)
    seen = _seen(week, of_week, number)
    return seen.newest[0] if seen.week == number else 0.0


def _seen(week: Week, of_week: int, number: int) -> HourSeen:
    place = bisect_left(week.hours, of_week, key=lambda each: each.hour)
    if place < len(week.hours) and week.hours[place].hour == of_week:
        return week.hours[place]
    return HourSeen(of_week, number)


def _is_over(seen: HourSeen, week: int) -> bool:
    """Nothing has come in it for so long that it says nothing any more."""
    return week - seen.week > FORGOTTEN_WEEKS


def _newest(seen: HourSeen, week: int) -> HourSeen:
    """The same with this week as the newest, in which nothing came yet if it was not."""
    if week <= seen.week:
        return seen
    fade = FADES_TO ** (week - seen.week)
    ahead = fade / FADES_TO  # the week before this one counts whole
    nodes, jobs, used = seen.newest
    came = nodes, jobs, used, nodes * nodes
    pairs = zip(seen.before, came, strict=True)
    before = [round(each * fade + new * ahead, 3) for each, new in pairs]
    return HourSeen(seen.hour, week, before=(before[0], before[1], before[2], before[3]))
