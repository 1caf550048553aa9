"""A launch in the making, and what EC2 is asked for in the end."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tidegate.core.demand.demand import Need
from tidegate.core.model.cluster import OPEN
from tidegate.core.model.ec2 import Offering, Template
from tidegate.core.model.ledger import Launch
from tidegate.core.model.mig import uniform
from tidegate.core.offers.limits import Load
from tidegate.core.offers.ranges import OfferGroup


@dataclass(slots=True, eq=False)
class PendingLaunch:
    """A launch in the making.

    `each`: what a node of it counts against the limits. `mask`: the entries of the offer group on
    which all its jobs may run, also the fullest of its nodes. `zone` "": any. `needs`: one of each
    kind of its jobs. `template`: what its nodes are made from; None: as all others; `but`: what
    rests for it. `layout`: what GPUs are cut into for its jobs; "": for those of one kind, or none.
    """

    offer_group: OfferGroup
    number: int
    offering: Offering
    each: Load
    mask: int
    count: int = 0
    gated_for: str = ""
    zone: str = ""
    kept: str = ""
    for_jobs: list[str] = field(default_factory=list)
    needs: dict[int, Need] = field(default_factory=dict)
    gangs: list[str] = field(default_factory=list)
    share: int = 0
    template: Template | None = None
    but: frozenset[Offering] = frozenset()
    layout: str = ""

    @property
    def choice(self) -> int:
        """The entries that EC2 may choose from; a layout is for the GPUs of one type, and without
        one their boot ends.
        """
        alone, uncut = 1 << self.number, self.offer_group.catalogue.uncut
        others = self.mask & uncut if uncut & alone else 0
        return others | alone

    @property
    def min_count(self) -> int:
        """With fewer none of it is of use."""
        return (self.share or self.count) if self.gated_for else 1

    @property
    def expected_usd_per_hour(self) -> float:
        """What one of its nodes counts in the fleet's price, where EC2 gives the first offering."""
        return self.each.usd_per_hour if self.offer_group.plan else self.usd_per_hour

    @property
    def usd_per_hour(self) -> float:
        """The price of its first offering, beyond what is paid for anyway."""
        prices = self.offer_group.catalogue.entries[self.number].zones
        return next(usd for usd, offering in prices if offering == self.offering)

    def split(self, nodes: int) -> "PendingLaunch":
        """Take so many nodes out of it, for the first of its jobs."""
        jobs = len(self.for_jobs) * nodes // self.count or min(len(self.for_jobs), 1)
        part = replace(self, count=nodes, for_jobs=self.for_jobs[:jobs])
        self.count -= nodes
        self.for_jobs = self.for_jobs[jobs:] or self.for_jobs
        return part

    def launch(self, offerings: tuple[Offering, ...], launch_id: str, paid: str = "") -> Launch:
        """What EC2 is asked for, any of these offerings, and the sentence that says why. `paid`: by
        whom it is paid for anyway, in words; "": by nobody.
        """
        jobs = tuple(dict.fromkeys(self.for_jobs))
        pool = self.offer_group.pool.name
        target = self.offer_group.target
        into = f" in {target}" if target not in ("", OPEN) else ""
        usd = self.expected_usd_per_hour
        what = f"{self.count} x {self.offering}{into} at {usd:.3f} USD per hour"
        reason = (
            f"{what} for job {self._named(jobs)}: nothing that exists or boots fits, and this is "
            f"the cheapest in pool {pool}"
        )
        if self.kept:
            reason = f"{what}: {self.kept}"
        return Launch(
            launch_id=launch_id,
            pool=pool,
            offerings=offerings,
            count=self.count,
            min_count=self.min_count,
            for_jobs=jobs,
            usd_per_hour_each=self.each.usd_per_hour,
            gated_for=self.gated_for,
            reason=reason
            + (f"; {paid}" if paid else "")
            + self._relaxed(offerings)
            + self._tried(),
            gangs=tuple(self.gangs) if len(self.gangs) > 1 else (),
            template=self.template,
            layout=self.layout or self._usual_layout(),
            reservation=target,
        )

    def _usual_layout(self) -> str:
        """As many instances as GPUs hold of what a gang asks, else of the pool's first profile."""
        of = self.offer_group.catalogue.entries[self.number].instance_type
        asked = next((need.shape.gpu_type for need in self.needs.values() if need.shape.gpus), "")
        return uniform(of.profiles, of.gpus, asked) if of.profiles else ""

    def _tried(self) -> str:
        made_from = self.template.digest if self.template else ""
        return f"; made from template {made_from}, which is rolled out" if made_from else ""

    def _named(self, jobs: Sequence[str]) -> str:
        named = ", ".join(jobs[:5]) + (f" and {len(jobs) - 5} more" if len(jobs) > 5 else "")
        if len(self.gangs) > 1:
            return f"{named}, {self.share} each or none"
        return f"{named}, all or none" if self.gated_for else named

    def _relaxed(self, offerings: tuple[Offering, ...]) -> str:
        """What became of the pool's `flexibility`, where there is too little to choose from."""
        pool, named = self.offer_group.pool, len({each.instance_type for each in offerings})
        if named >= pool.min_types or self.offer_group.market.is_prepaid:
            return ""
        return (
            f"; it names {named} of the {pool.min_types} instance types that the pool wants at "
            "least (flexibility), since no other fits the jobs and the limits and is to be had"
        )
