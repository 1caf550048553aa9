"""Invariants of what rests: it is not asked for, and rests only for whom it concerns."""

from collections.abc import Iterator

from tidegate.core.model.ec2 import (
    POOL_TAG,
    TEMPLATE_TAG,
    FleetRequest,
    FleetResult,
    Offering,
    template_name,
)
from tidegate.core.model.resting import BOOT_FAILURES, RestKey
from tidegate.service.control import Looked
from tidegate.sim.checks.witness import Check, Witness


class RestingNotTried(Check):
    """An offering that rested when the planner looked is in no new request of whom it rests for:
    of all, or of the pool whose template was refused or brought no good node.
    """

    def requested(self, request: FleetRequest) -> None:
        view = self.witness.view()
        if view is None or not self.witness.is_new(request):
            return
        keys, now_s = set(_rest_keys(request)), self.witness.now_s
        tried = [r.offering for r in view.resting if r.until_s > now_s and r.key in keys]
        if tried:
            raise self.broken(f"{request.client_token} asks for {min(tried)}, which rests")


class BootFailuresRestTheirPool(Check):
    """What a node did that came of one pool's template keeps no other pool from buying."""

    def looked(self, looked: Looked) -> None:
        for each in self.world.ledger.all_resting.values():
            if each.code in BOOT_FAILURES and not (each.pool and each.template):
                raise self.broken(f"{each.offering} rests for all: {each.code}, {each.message}")


class RefusalsRemembered(Check):
    """What EC2 refused is not asked for again by later plans before the shortest rest is over."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.heard: dict[int, dict[Offering, float]] = {}  # by each planner, and when it answered
        self.refused_at_s: dict[Offering, float] = {}

    def begun(self) -> None:
        self.heard[self.witness.depth] = {}

    def answered(self, result: FleetResult) -> None:
        refused = [each.offering for each in result.refusals]
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
        offerings = {offering for offering, *_ in _rest_keys(request)}
        if offerings <= heard.keys():
            raise self.broken(f"{request.client_token} asks only for what was refused just now")
        rest_s = self.world.cluster.timings.rest_min_s
        for offering in sorted(offerings):
            ago_s = record.created_at_s - self.refused_at_s.get(offering, -rest_s)
            if 0 < ago_s < rest_s:
                raise self.broken(f"{offering} was refused {ago_s:.0f} s ago and is tried again")


def _rest_keys(request: FleetRequest) -> Iterator[RestKey]:
    """All by which something of the request may rest."""
    tags = dict(request.tags)
    name = template_name(request.launch_template_id, request.launch_template_version)
    for each in request.overrides:
        offering = Offering(each.instance_type, each.zone, request.market)
        yield offering, "", ""
        for template in ("", name, tags.get(TEMPLATE_TAG, "")):
            yield offering, tags[POOL_TAG], template
