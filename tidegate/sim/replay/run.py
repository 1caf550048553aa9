"""One replay from its history to its figures."""

from collections.abc import Callable, Iterator

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.errors import BadConfig
from tidegate.core.model.frozen import frozen
from tidegate.sim.replay.baselines import Asg, Karpenter, ParallelCluster, Static, offers
from tidegate.sim.replay.outcome import Outcome, outcome
from tidegate.sim.replay.plans_paid import throughout
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
    """Play the history on the cluster.

    Errors: KeyError when there is no such policy; BadConfig when it could buy nothing there.
    """
    policy = POLICIES[policy_name]()
    unmet = policy.unmet if isinstance(policy, Tidegate) else {}
    if policy_name != TIDEGATE and not offers(cluster):
        raise BadConfig(
            f"{policy_name} is modelled to buy on demand only, and no pool of {cluster.name} has"
            " the capacity type on-demand: add it to one, or leave this policy out"
        )
    if policy_name != TIDEGATE and (name_of := next(pools_in_parts(cluster), "")):
        raise BadConfig(
            f"{policy_name} is modelled with whole GPUs, and pool {name_of} of {cluster.name} has"
            " them in parts of several kinds: leave this policy out, or compare with a cluster file"
            " without"
        )
    world = World(trace.jobs, throughout(cluster), setting, policy)
    if progress is not None:
        world.on_progress = progress
    world.play()
    disks = policy.disks_usd(world.now_s) if isinstance(policy, Tidegate) else {}
    return Replayed(outcome(world, name or cluster.name, policy_name, unmet, disks), world)


def pools_in_parts(cluster: Cluster) -> Iterator[str]:
    """Pools whose GPUs are shared, or cut by node: of others than Tidegate no rule is known."""
    for pool in cluster.pools:
        if any(of.profiles or of.shards_per_gpu for of in pool.instance_types):
            yield pool.name


POLICIES: dict[str, Callable[[], Policy]] = {
    TIDEGATE: Tidegate,
    "parallelcluster": ParallelCluster,
    "karpenter": Karpenter,
    "asg": Asg,
    "static-peak": lambda: Static(100.0),
    "static-p95": lambda: Static(95.0),
}
