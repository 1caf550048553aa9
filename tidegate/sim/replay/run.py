"""One replay from its history to its figures."""

from collections.abc import Callable

from tidegate.core.frozen import frozen
from tidegate.core.pool import Cluster
from tidegate.sim.replay.baselines import Asg, Karpenter, ParallelCluster, Static, static_nodes
from tidegate.sim.replay.outcome import Outcome, outcome
from tidegate.sim.replay.tidegate_policy import Tidegate
from tidegate.sim.replay.trace import Trace
from tidegate.sim.replay.world import Policy, Setting, World

TIDEGATE = "tidegate"


@frozen
class Replayed:
    """The figures, and the world they come from, for what is drawn of it."""

    outcome: Outcome
    world: World


def replay(
    trace: Trace,
    cluster: Cluster,
    setting: Setting,
    policy_name: str = TIDEGATE,
    name: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> Replayed:
    """Play the history on the cluster. Errors: KeyError when there is no such policy."""
    policy, unmet = _policy(policy_name, trace, cluster)
    world = World(trace.jobs, cluster, setting, policy)
    if progress is not None:
        world.on_progress = progress
    world.play()
    return Replayed(outcome(world, name or cluster.name, policy_name, unmet), world)


def _policy(name: str, trace: Trace, cluster: Cluster) -> tuple[Policy, dict[str, str]]:
    """The policy, and where it writes why it does nothing for a job."""
    make = POLICIES[name]
    policy = make(trace, cluster)
    return policy, policy.unmet if isinstance(policy, Tidegate) else {}


def _static(percent: float) -> Callable[[Trace, Cluster], Policy]:
    return lambda trace, cluster: Static(static_nodes(trace.jobs, cluster, percent))


POLICIES: dict[str, Callable[[Trace, Cluster], Policy]] = {
    TIDEGATE: lambda trace, cluster: Tidegate(),
    "parallelcluster": lambda trace, cluster: ParallelCluster(),
    "karpenter": lambda trace, cluster: Karpenter(),
    "asg": lambda trace, cluster: Asg(),
    "static-peak": _static(100.0),
    "static-p95": _static(95.0),
}
