"""How often EC2 takes nodes back, as far as it has shown it here lately."""

from collections.abc import Iterable
from dataclasses import replace

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Offering
from tidegate.core.model.resting import TAKEN_BACK, Resting


def learnt_hazards(resting: Iterable[Resting]) -> dict[Offering, float]:
    """Interruptions per hour of the offerings that EC2 took nodes back from within the last.

    A loss is remembered for about an hour after the rest that it caused.
    """
    return {one.offering: float(one.failures) for one in resting if one.code == TAKEN_BACK}


def with_learnt(cluster: Cluster, resting: Iterable[Resting]) -> Cluster:
    """The cluster with the hazards of offerings that EC2 took nodes back from lately.

    To choose what to buy by, for the next hour. One loss is too little to refuse spot for, or to
    give up nodes that are there: a job's own requeues tell that (`tidegate.core.offers.loss`).
    """
    shown = {
        offering: max(hazard, cluster.hazard_per_hour(offering))
        for offering, hazard in learnt_hazards(resting).items()
    }
    return replace(cluster, hazards={**cluster.hazards, **shown}) if shown else cluster
