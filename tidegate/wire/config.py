"""The cluster file: reads it, checks it whole, and makes a `Cluster` of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from tidegate.core.errors import BadConfig
from tidegate.core.pool import Cluster
from tidegate.wire.models import ClusterModel
from tidegate.wire.problems import Problem, problems_of, render
from tidegate.wire.rules import problems_across
from tidegate.wire.yaml_file import read_yaml


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """One cluster file, validated: the planner's part, and what deployment needs beside it."""

    cluster: Cluster
    region: str
    slurm_version: str
    shared_dir: str
    subnets: Mapping[str, str]

    def summary(self) -> str:
        """`2 pools, 3 instance types, up to 16 nodes`."""
        pools = self.cluster.pools
        instance_types = {each.name for pool in pools for each in pool.instance_types}
        nodes = _most_nodes(self.cluster)
        return ", ".join(
            (
                _count(len(pools), "pool"),
                _count(len(instance_types), "instance type"),
                "no limit on nodes" if nodes is None else f"up to {_count(nodes, 'node')}",
            )
        )


def load_cluster(path: Path | str) -> ClusterFile:
    """Read and check a cluster file. Errors: BadConfig, whose message lists every problem."""
    data, problems = read_yaml(Path(path))
    model: ClusterModel | None = None
    try:
        model = ClusterModel.model_validate(data)
    except ValidationError as error:
        problems += problems_of(error, ClusterModel)
    problems += problems_across(data)
    if problems or model is None:
        raise BadConfig(render(path, _in_order(problems)))
    return ClusterFile(
        cluster=model.cluster(),
        region=model.region,
        slurm_version=model.slurm.version,
        shared_dir=model.shared_dir,
        subnets=MappingProxyType(dict(model.network.subnets) if model.network else {}),
    )


def _most_nodes(cluster: Cluster) -> int | None:
    """Nodes that the limits on nodes allow at the same time; None: no limit."""
    of_pools = [pool.limits.nodes for pool in cluster.pools]
    bounds = [cluster.limits.nodes, None if None in of_pools else sum(filter(None, of_pools))]
    return min((bound for bound in bounds if bound is not None), default=None)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _in_order(problems: list[Problem]) -> list[Problem]:
    """Problems of one section together, sections in the order of the model."""
    sections = list(ClusterModel.model_fields)

    def section(problem: Problem) -> int:
        first = problem.place[0] if problem.place else ""
        return sections.index(str(first)) if first in sections else len(sections)

    return sorted(problems, key=section)
