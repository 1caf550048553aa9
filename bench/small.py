"""A cluster with one pool of one type in one zone, where a larger one would change no figure."""

from tidegate.core.model.cluster import Cluster, Limits, Partition, Pool
from tidegate.core.model.ec2 import InstanceType, Market
from tidegate.sim.draw import ON_DEMAND_USD, TYPES, ZONES

_NAMED = {each.name: each for each in TYPES}
T4, T4_BIG, A10G_BIG = _NAMED["g4dn.xlarge"], _NAMED["g4dn.12xlarge"], _NAMED["g5.12xlarge"]
SPOT_FACTOR = 0.4
UNLIMITED = Limits()


def cluster(
    of: InstanceType,
    *,
    markets: tuple[Market, ...] = (Market.SPOT, Market.ON_DEMAND),
    limits: Limits = UNLIMITED,
    spare_nodes: int = 0,
) -> Cluster:
    pool = Pool(
        of.gpu_type,
        (of,),
        ZONES[:1],
        markets,
        limits=limits,
        idle_s=60.0,
        headroom_nodes=spare_nodes,
    )
    prices = {each: _usd_per_hour(of, each.market) for _, each in pool.offerings()}
    return Cluster("bench", (pool,), (Partition("gpu", (pool.name,), is_default=True),), prices)


def _usd_per_hour(of: InstanceType, market: Market) -> float:
    return ON_DEMAND_USD[of.name] * (SPOT_FACTOR if market is Market.SPOT else 1.0)
