"""Invariants of what rests: it is not asked for, and rests only for whom it concerns."""

from collections.abc import Iterator

from tidegate.core.model.ec2 import (
    POOL_TAG,
    TEMPLATE_TAG,
    FleetRequest,
    FleetResult,
    Offering,
    Override,
    template_name,
)
from tidegate.core.model.resting import BOOT_FAILURES, Resting, RestKey
from tidegate.ports import LedgerView
from tidegate.service.control import Looked
from tidegate.sim.checks.witness import Check, Witness

type _Asked = tuple[Offering, str, str]
"""An offering, the reservation that it is asked from ("": from none), and the subnet that was full
("": it lay in none).
"""


class RestingNotTried(Check):
    """An offering that rested when the planner looked is in no new request of whom it rests for:
    of all, or of the pool whose template was refused or brought no good node. A boot that failed
    counts for nothing while more of the same joined about then than failed in a row, nor the first
    one of a template that has brought good nodes.
    """

    def requested(self, request: FleetRequest) -> None:
        view = self.witness.view()
        if view is None or not self.witness.is_new(request):
            return
        record, now_s = self.witness.record_of(request), self.witness.now_s
        keys = set(_rest_keys(request, record.launch.reservation if record else ""))
        tried = [
            r.offering
            for r in view.resting
            if r.until_s > now_s and r.key in keys and not _counts_for_nothing(r, view)
        ]
        if tried:
            raise self.broken(f"{request.client_token} asks for {min(tried)}, which rests")


class BootFailuresRestTheirPool(Check):
    """What a node did that came of one pool's template keeps no other pool from buying."""

    def looked(self, looked: Looked) -> None:
        for each in self.world.ledger.all_resting.values():
            if each.code in BOOT_FAILURES and not (each.pool and each.template):
                raise self.broken(f"{each.offering} rests for all: {each.code}, {each.message}")


class RefusalsRemembered(Check):
    """What EC2 refused is not asked for again by later plans before the shortest rest is over, of
    the same reservation where it is paid for.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.heard: dict[int, dict[_Asked, float]] = {}  # by each planner, and when it answered
        self.refused_at_s: dict[_Asked, float] = {}

    def begun(self) -> None:
        self.heard[self.witness.depth] = {}

    def answered(self, request: FleetRequest, result: FleetResult) -> None:
        record = self.witness.record_of(request)
        into = record.launch.reservation if record else ""
        refused = [(each.offering, into, each.subnet) for each in result.refusals]
        self.heard[self.witness.depth].update(dict.fromkeys(refused, self.witness.now_s))

    def looked(self, looked: Looked) -> None:
        """A rest begins with EC2's answer, however long its planner looks on or stands still."""
        if not looked.trouble:
            self.refused_at_s.update(self.heard[self.witness.depth])

    def requested(self, request: FleetRequest) -> None:
        record = self.witness.record_of(request)
        if record is None or not self.witness.is_new(request):
            return
        heard = self.heard[self.witness.depth]
        into = record.launch.reservation
        asked = [_asked(each, request, into) for each in request.overrides]
        if all(heard.keys() & each for each in asked):
            raise self.broken(f"{request.client_token} asks only for what was refused just now")
        rest_s = self.world.cluster.timings.rest_min_s
        for each in sorted({one for ways in asked for one in ways}):
            ago_s = record.created_at_s - self.refused_at_s.get(each, -rest_s)
            if 0 < ago_s < rest_s:
                raise self.broken(f"{each[0]} was refused {ago_s:.0f} s ago and is tried again")


def _counts_for_nothing(resting: Resting, view: LedgerView) -> bool:
    if resting.code not in BOOT_FAILURES:
        return False
    never_joined = ("BootstrapFailed", "EndedWhileBooting", "BootBoundExceeded")
    since_s = resting.since_s - 1800
    joined = [
        node
        for node in view.nodes
        if (node.offering, node.pool, node.template) == resting.key[:3]
        and (node.joined_at_s or 0.0) > since_s
    ]
    goods = [each.good for each in view.pool_history if each.pool == resting.pool]
    is_first = resting.failures < 2
    is_proven = any(each and each.digest == resting.template for each in goods)
    is_rare = resting.code in never_joined and len(joined) > resting.failures
    return is_rare or (is_first and is_proven)


def _rest_keys(request: FleetRequest, reservation: str) -> Iterator[RestKey]:
    """All by which something of the request may rest."""
    tags = dict(request.tags)
    name = template_name(request.launch_template_id, request.launch_template_version)
    for each in request.overrides:
        offering = Offering(each.instance_type, each.zone, request.market)
        for into in {"", reservation}:
            yield offering, "", "", into, ""
            yield offering, "", "", into, each.subnet_id
            for template in ("", name, tags.get(TEMPLATE_TAG, "")):
                yield offering, tags[POOL_TAG], template, into, ""


def _asked(override: Override, request: FleetRequest, into: str) -> set[_Asked]:
    """As what it may have been refused: wherever its subnet is, or for that."""
    offering = Offering(override.instance_type, override.zone, request.market)
    return {(offering, into, ""), (offering, into, override.subnet_id)}
