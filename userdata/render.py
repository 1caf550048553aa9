"""What a head or a node is told at its first boot: user data and slurm.conf, as text.

Pure text out of plain values. Every value is checked when it is made, so none of them can
add a word of shell or a line of configuration. No value is a secret: user data can be read
by anyone who may describe the instance.
"""

import base64
import gzip
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

import jinja2

from userdata.values import (
    HeadValues,
    MungeSecret,
    NodePool,
    NodeShape,
    NodeValues,
    Shared,
    SlurmConfValues,
    SlurmPartition,
    SlurmPool,
)

__all__ = [
    "MAX_USER_DATA_BYTES",
    "HeadValues",
    "MungeSecret",
    "NodePool",
    "NodeShape",
    "NodeValues",
    "Shared",
    "SlurmConfValues",
    "SlurmPartition",
    "SlurmPool",
    "head_user_data",
    "node_user_data",
    "slurm_conf",
]

MAX_USER_DATA_BYTES = 16_384  # EC2's limit, before base64
MIN_NODE_TABLE = 1024

_HERE = Path(__file__).parent
_END_OF_PARAMETERS = "\n# What could be bought."
_CGROUP_CONF = """\
CgroupPlugin=autodetect
ConstrainCores=yes
ConstrainRAMSpace=yes
ConstrainDevices=yes
"""
_NODE_STAGES = (
    "node/reboot",
    "both/identity",
    "node/shape",
    "both/owner_rule",
    "both/shared",
    "both/munge",
    "node/users",
    "node/gpu",
    "node/health",
    "node/slurmd",
    "node/spot",
)
_HEAD_STAGES = (
    "head/again",
    "both/identity",
    "both/owner_rule",
    "both/shared",
    "both/munge",
    "head/config",
    "head/slurmctld",
    "head/agent",
)


def node_user_data(values: NodeValues) -> str:
    """The user data of every node that this launch template starts.

    Raises ValueError when it would not fit into EC2's limit.
    """
    settings = {
        "ROLE": "node",
        "HEAD": f"{values.head_host}:{values.slurmctld_port}",
        "METADATA_USERS": "root",
        "SHAPES": "\n".join(map(_shape_line, values.shapes)),
        "POOLS": "\n".join(_pool_line(pool) for pool in values.pools),
        "REGISTER_WAIT_S": str(values.register_wait_s),
        "SPOT_POLL_S": f"{values.spot_poll_s:g}",
        "BOOT_BOUND_S": str(values.boot_bound_s),
        **_settings_of_both(values.munge, values.shared),
    }
    title = f"Tidegate: a node of cluster {values.cluster}"
    return _script(title, settings, _NODE_STAGES, {"SPOT_WATCH": _read("node/spot-watch.sh")})


def head_user_data(values: HeadValues) -> str:
    """The user data of the head. Raises ValueError when it would not fit into EC2's limit."""
    settings = {
        "ROLE": "head",
        "HEAD_NAME": values.slurm.head_name,
        "METADATA_USERS": f"root {values.agent_user}",
        "AGENT_USER": values.agent_user,
        "AGENT_COMMAND": shlex.join(values.agent_command),
        "STATE_DIR": values.slurm.state_dir,
        "BOOT_BOUND_S": str(values.boot_bound_s),
        **_settings_of_both(values.munge, values.shared),
    }
    files = {
        "SLURM_CONF_GZ": _packed(slurm_conf(values.slurm)),
        "CGROUP_CONF": _with_settings(_CGROUP_CONF, values.slurm.cgroup),
        "AGENT_ENV": _lines(f'{name}="{value}"' for name, value in values.agent_env),
    }
    title = f"Tidegate: the head of cluster {values.slurm.cluster}"
    return _script(title, settings, _HEAD_STAGES, files)


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
    ).from_string(_read("head/slurm.conf.j2"))
    placeholders = tuple(_placeholders(values.pools))
    shapes = [shape for pool in values.pools for shape in pool.shapes]
    text = template.render(
        v=values,
        placeholders=placeholders,
        max_node_count=max(
            MIN_NODE_TABLE,
            sum(count for _, _, count in placeholders) + 4 * values.max_nodes,
        ),
        def_mem_per_cpu_mib=min((s.memory_mib // s.cpus for s in shapes), default=0),
    )
    parameters, mark, rest = text.partition(_END_OF_PARAMETERS)
    assert mark
    return _with_settings(parameters, values.settings) + mark + rest


def _with_settings(text: str, settings: Iterable[tuple[str, str]]) -> str:
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


def _settings_of_both(munge: MungeSecret, shared: Shared) -> dict[str, str]:
    return {
        "MUNGE_SECRET": munge.secret_id,
        "MUNGE_FINGERPRINT": munge.fingerprint,
        "MUNGE_WAIT_S": str(munge.wait_s),
        "FILE_SYSTEM": shared.file_system_id,
        "ACCESS_POINT": shared.access_point_id,
        "SHARED_DIR": shared.directory,
        "SHARED_WAIT_S": str(shared.wait_s),
    }


def _shape_line(shape: NodeShape) -> str:
    gpus = f"{shape.gpus} {shape.gpu_type or '-'}"
    return f"{shape.instance_type} {shape.cpus} {shape.memory_mib} {gpus} {shape.weight}"


def _pool_line(pool: NodePool) -> str:
    return f"{pool.name} {','.join(pool.labels) or '-'}"


def _script(
    title: str, settings: Mapping[str, str], stages: Iterable[str], files: Mapping[str, str]
) -> str:
    """One bash script: the settings, the embedded files, the stages, and the run of them."""
    parts = ["#!/bin/bash", f"# {title}", "set -euo pipefail", "umask 022", ""]
    parts += [f"readonly {name}={shlex.quote(value)}" for name, value in settings.items()]
    for name, text in files.items():
        # A quoted here-document: nothing in the text is expanded.
        parts += ["", f"file_{name}() {{", f"    cat <<'END_OF_{name}'", text.rstrip("\n")]
        parts += [f"END_OF_{name}", "}"]
    for path in ("both/run", *stages):
        parts += ["", _without_comments(_read(f"{path}.sh"))]
    names = " ".join(stage.split("/")[1] for stage in stages)
    script = "\n".join([*parts, "", f"run_stages {names}", ""])
    size = len(script.encode())
    if size >= MAX_USER_DATA_BYTES:
        raise ValueError(f"user data of {size} bytes; EC2 takes {MAX_USER_DATA_BYTES - 1}")
    return script


def _without_comments(text: str) -> str:
    """Room for a hundred more instance types; whoever reads the scripts reads userdata/."""
    lines = text.strip().splitlines()
    return "\n".join(line for line in lines if not line.startswith("#"))


def _read(path: str) -> str:
    return (_HERE / path).read_text()


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def _packed(text: str) -> str:
    """gzip and base64 in lines: hundreds of placeholder groups would not fit otherwise."""
    packed = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    return "\n".join(packed[at : at + 100] for at in range(0, len(packed), 100))
