"""The agent's metrics as a file for node exporter's textfile collector, and its nodes as targets.

Metrics are worth less than the agent's work: what cannot be written is said once and left.
"""

import json
import logging
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tidegate.agent.meter import Meter
from tidegate.core.model.prometheus import METRICS, MetricType, Sample
from tidegate.core.model.slurm import Node
from tidegate.ports import Clock

WRITE_EVERY_S = 10.0
# The collector reads what ends with `.prom`; Prometheus is told the name of the other.
METRICS_FILE, TARGETS_FILE = "tidegate.prom", "nodes.json"
# A planner of ours gives some hundreds. Bounds what a file in the bucket can make of a scrape.
SAMPLES_MAX = 5_000
LABEL_MAX_CHARS = 100

NODE_PORT, GPU_PORT = 9100, 9400

_NAME = re.compile(r"tidegate_[a-z0-9_]{1,80}", re.ASCII)
_LABEL = re.compile(r"[a-z][a-z0-9_]{0,30}", re.ASCII)
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}", re.ASCII)

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class MetricsFolder:
    """Where node exporter and Prometheus read what the agent knows."""

    folder: Path
    cluster: str
    meter: Meter
    clock: Clock
    _has_trouble: bool = False
    _targets: str = ""

    def write(self) -> None:
        """Replace what has changed. Raises nothing: it tries again."""
        try:
            text = exposition(self.meter.samples(self.clock.now_s()))
            _replace(self.folder / METRICS_FILE, text)
            self._write_targets()
        except OSError as error:
            if not self._has_trouble:
                logger.warning("Metrics cannot be written, all else goes on: %s", error)
            self._has_trouble = True
        else:
            self._has_trouble = False

    def _write_targets(self) -> None:
        """Only news: Prometheus reads the whole list whenever it is replaced.

        Before the first look the list of the agent before stays.
        """
        nodes = self.meter.nodes
        if nodes is None:
            return
        path, text = self.folder / TARGETS_FILE, targets(nodes, self.cluster)
        if text != self._targets or not path.exists():
            _replace(path, text)
            self._targets = text


def exposition(samples: Iterable[Sample]) -> str:
    """Prometheus' text format. What is no sample is left out: some come from another machine."""
    lines: dict[str, dict[str, str]] = {}
    for each in islice(samples, SAMPLES_MAX):
        if _NAME.fullmatch(each.name) and math.isfinite(each.value):
            # A series that is there twice would cost the whole file.
            lines.setdefault(each.name, {})[_series(each)] = f"{each.value:.15g}"
    return "".join(_family(name, values) for name, values in lines.items())


def _family(name: str, values: dict[str, str]) -> str:
    metric = METRICS.get(name)
    kind = metric.type if metric else MetricType.GAUGE
    said = metric.help if metric else "Of a newer planner."
    head = f"# HELP {name} {said}\n# TYPE {name} {kind}\n"
    return head + "".join(f"{series} {value}\n" for series, value in values.items())


def _series(sample: Sample) -> str:
    labels = [
        f'{name}="{_escaped(value[:LABEL_MAX_CHARS])}"'
        for name, value in sample.labels
        if _LABEL.fullmatch(name)
    ]
    return f"{sample.name}{{{','.join(labels)}}}" if labels else sample.name


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def targets(nodes: Sequence[Node], cluster: str) -> str:
    """Where Prometheus finds the exporters of nodes, by the addresses that Slurm has of them.

    `exporter` says which of the two it is; `__`-names of Prometheus are not for files.
    """
    return json.dumps(list(_targets(nodes, cluster)), indent=0)


def _targets(nodes: Sequence[Node], cluster: str) -> Iterator[dict[str, object]]:
    for node in nodes:
        if not _ADDRESS.fullmatch(node.address):
            continue
        labels = {"cluster": cluster, "instance": node.name, "pool": next(iter(node.features), "")}
        ports = [("node", NODE_PORT)]
        ports += [("gpu", GPU_PORT)] if node.gpus and node.gres == "gpu" else []
        for exporter, port in ports:
            target = f"{node.address}:{port}"
            yield {"targets": [target], "labels": {**labels, "exporter": exporter}}


def _replace(path: Path, text: str) -> None:
    """All at once: whoever reads sees the old file or the new one. Errors: OSError."""
    new = path.with_suffix(".new")
    try:
        with new.open("w") as file:
            file.write(text)
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
