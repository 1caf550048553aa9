"""slurm.conf of a cluster, from its template."""

import math
import re
from collections.abc import Iterable, Iterator

import jinja2

from userdata.bundle import read
from userdata.slurm_values import NodeShape, SlurmConfValues, SlurmPool

MIN_NODE_TABLE = 1024
_END_OF_PARAMETERS = "\n# What could be bought."


def slurm_conf(values: SlurmConfValues) -> str:
    """slurm.conf of the cluster; nodes get it from slurmctld (configless).

    Placeholders in state FUTURE stand for what could be bought: Slurm accepts a job that
    one of them could run, and refuses at once what no instance type can ever run.
    """
    template = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    ).from_string(read("head/slurm.conf.j2"))
    placeholders = tuple(_placeholders(values.pools))
    shapes = [shape for pool in values.pools for shape in pool.shapes]
    types = sorted(_gres_types(shapes))
    text = template.render(
        v=values,
        placeholders=[(shape, _names(shape, count), more) for shape, more, count in placeholders],
        max_node_count=max(
            MIN_NODE_TABLE,
            sum(count for _, _, count in placeholders)
            + 4 * values.max_nodes
            + sum(map(_num_nodes, values.static)),
        ),
        gres_types=",".join(types),
        counted_gres=",".join(_counted(types, shapes)),
        def_mem_per_cpu_mib=min((s.memory_mib // s.cpus for s in shapes), default=0),
    )
    parameters, mark, rest = text.partition(_END_OF_PARAMETERS)
    assert mark
    return with_settings(parameters, _settings(values)) + mark + rest


def _settings(values: SlurmConfValues) -> Iterable[tuple[str, str]]:
    """The site's own, whose plugins of submissions go before ours."""
    for key, value in values.settings:
        is_beside = values.has_submit and key.lower() == "jobsubmitplugins"
        yield key, f"{value},lua" if is_beside else value


def _gres_types(shapes: Iterable[NodeShape]) -> set[str]:
    shapes = tuple(shapes)
    shared = {shape.shared_gres for shape in shapes if shape.shards}
    return {"gpu", *(shape.gres_name for shape in shapes), *shared}


def _counted(types: Iterable[str], shapes: Iterable[NodeShape]) -> Iterator[str]:
    """What accounting keeps of GRES: without its type nobody knows how large a MIG instance was."""
    yield from (f"gres/{each}" for each in types)
    cut = {(each.gres_name, kind) for each in shapes for kind in each.mig_types}
    yield from (f"gres/{gres}:{kind}" for gres, kind in sorted(cut))


def topology_conf(values: SlurmConfValues) -> str:
    """topology.conf of the cluster: the top of the tree, and a leaf for what EC2 knows nothing of.

    A job of several nodes is tried against placeholders when it is submitted, and runs only where
    one switch reaches all its nodes: so these and `static` nodes are below the same top as others.
    Source: Slurm's Topology Guide; tried on 26.05 (docs/topology.md).
    """
    named = [_names(each, count) for each, _, count in _placeholders(values.pools)]
    named += [found for line in values.static if (found := _names_of_nodes(line))]
    lines = ["SwitchName=all Switches=elsewhere", f"SwitchName=elsewhere Nodes={','.join(named)}"]
    return "".join(f"{line}\n" for line in lines)


def _names(shape: NodeShape, count: int) -> str:
    """The placeholders of an instance type, like ph-g5-xlarge-[1-16]."""
    return f"ph-{shape.instance_type.replace('.', '-')}-[1-{count}]"


def _names_of_nodes(line: str) -> str:
    """The nodes that a line `NodeName=rack[1-4,7],big1 ...` names; "": another line."""
    key, _, names = line.split()[0].partition("=")
    return names if key == "NodeName" and names != "DEFAULT" else ""


def _num_nodes(line: str) -> int:
    """How many nodes a line of slurm.conf names; 0: another line."""
    parts = re.findall(r"(?:[^,\[]|\[[^\]]*\])+", _names_of_nodes(line))
    return sum(math.prod(map(_num_numbers, re.findall(r"\[(.*?)\]", part))) for part in parts)


def _num_numbers(ranges: str) -> int:
    ends = [each.split("-") for each in ranges.split(",")]
    return sum(int(end[-1]) - int(end[0]) + 1 for end in ends)


def with_settings(text: str, settings: Iterable[tuple[str, str]]) -> str:
    """`text` with each of `settings` in the place of the line of its key, or at the end."""
    wanted = {_slot(key): f"{key}={value}" for key, value in settings}
    lines = []
    for line in text.splitlines():
        lines.append(wanted.pop(_slot(line.partition("=")[0]), line))
    return "".join(f"{line}\n" for line in (*lines, *wanted.values()))


def _slot(key: str) -> str:
    """What stands for `key` in a configuration file, where keys have no case.

    Slurm knows one default amount of memory, by CPU, GPU or node (slurm.conf(5)).
    """
    slot = key.lower()
    return "defmem" if slot.startswith("defmemper") else slot


def _placeholders(pools: Iterable[SlurmPool]) -> Iterable[tuple[NodeShape, str, int]]:
    """One group per instance type: its shape, the features of all its pools, how many.

    Pools share a group because each submit costs slurmctld time per placeholder.
    """
    shapes: dict[str, NodeShape] = {}
    features: dict[str, dict[str, None]] = {}
    counts: dict[str, int] = {}
    for pool in pools:
        for shape in pool.shapes:
            name = shape.instance_type
            shapes.setdefault(name, shape)
            family = name.split(".")[0]
            found = features.setdefault(name, {})
            found.update(dict.fromkeys((pool.name, name, family, *pool.markets, *pool.labels)))
            counts[name] = max(counts.get(name, 0), pool.max_job_nodes)
    for name, shape in shapes.items():
        yield shape, ",".join(features[name]), counts[name]
