"""The bundle of nodes: the same for all clusters of one version, so that an image can hold it."""

from collections.abc import Iterable
from dataclasses import replace

from userdata.bundle import HERE, Bundle, Stage, pack, read, read_stage
from userdata.stages import BAKED_STAGES, NODE_STAGES

# What follows from what is found of a node: `tidegate findings` shows the same table.
FINDINGS = HERE.parent / "tidegate" / "data" / "findings.txt"

_NODE_FILES = (
    *("checks.sh", "findings.sh"),
    *("health-check.sh", "health-watch.sh", "gpu-reset.sh"),
    *("spot-watch.sh", "head-watch.sh"),
    *("job_credentials.py", "assume-role.sh", "gpu-use.sh", "efa-metrics.sh"),
    *("neuron_use.py", "neuron-monitor.json"),
    *("data-sets.sh", "tidegate-data.sh", "tidegate-import.sh"),
)


def node_bundle() -> Bundle:
    """What nodes run at their boot, and their image when it is baked; of all clusters."""
    files = {name: read(f"node/{name}") for name in _NODE_FILES}
    files |= {"hooks.sh": read("both/hooks.sh"), "findings": node_findings(FINDINGS.read_text())}
    files |= {name: read(name) for name in ("early.sh", "tidegate-early.service")}
    return pack({"node": map(read_stage, NODE_STAGES), "image": baked_stages()}, files)


def node_findings(table: str) -> str:
    """The table of findings as nodes read it, a row each: source, finding, action (`reset,diag`: a
    test is to follow), severity, and words, of a check instead of these when it is asked. Of what
    is ignored no more than the action. An image's document is bound in its size.
    """
    rows = (line.split(maxsplit=6) for line in table.splitlines() if not line.startswith("#"))
    return "".join(f"{' '.join(_of_node(*row))}\n" for row in rows)


def _of_node(
    source: str, name: str, action: str, severity: str, retest: str, asked: str, words: str
) -> tuple[str, ...]:
    if action == "ignore":
        return source, name, action
    then = ",diag" if retest == "diag" else ""
    return source, name, action + then, severity, words if asked == "log" else asked


def baked_stages() -> Iterable[Stage]:
    """What an image is baked by. Each needs only what is baked as well."""
    stages = [read_stage(path) for path in BAKED_STAGES]
    names = {each.name for each in stages}
    return (replace(each, needs=tuple(n for n in each.needs if n in names)) for each in stages)
