"""The bundle of nodes: the same for all clusters of one version, so that an image can hold it."""

from collections.abc import Iterable
from dataclasses import replace

from userdata.bundle import Bundle, Stage, pack, read, read_stage
from userdata.stages import BAKED_STAGES, NODE_STAGES

_NODE_FILES = (
    *("checks.sh", "findings.sh", "xids", "neuron_errors", "device_errors"),
    *("health-check.sh", "health-watch.sh", "spot-watch.sh", "head-watch.sh"),
    *("job_credentials.py", "assume-role.sh", "gpu-use.sh", "efa-metrics.sh"),
    *("neuron_use.py", "neuron-monitor.json"),
    *("data-sets.sh", "tidegate-data.sh", "tidegate-import.sh"),
)


def node_bundle() -> Bundle:
    """What nodes run at their boot, and their image when it is baked; of all clusters."""
    files = {name: read(f"node/{name}") for name in _NODE_FILES}
    files["hooks.sh"] = read("both/hooks.sh")
    files |= {name: read(name) for name in ("early.sh", "tidegate-early.service")}
    return pack({"node": map(read_stage, NODE_STAGES), "image": baked_stages()}, files)


def baked_stages() -> Iterable[Stage]:
    """What an image is baked by. Each needs only what is baked as well."""
    stages = [read_stage(path) for path in BAKED_STAGES]
    names = {each.name for each in stages}
    return (replace(each, needs=tuple(n for n in each.needs if n in names)) for each in stages)
