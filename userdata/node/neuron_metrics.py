"""What each Neuron device of a node does, as a file that node exporter reads.

    neuron_metrics.py FILE neuron-monitor -c CONFIG

Source: AWS Neuron documentation, "Neuron Monitor User Guide": a report a line, NeuronCores counted
through all devices. Runs on the image's own Python, which may be 3.9.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

# Four reports that are missing. What was told last must not stand there as if it were so.
SILENT_S = 120


def by_device(report: Any, group: str, of_cores: Callable[[Any], dict[str, float]]) -> list[float]:
    """The sum of each device; of none where a program cannot be read, which is not 0. One that
    counts more NeuronCores than there are has cut its devices otherwise than the report tells.
    """
    info = report["neuron_hardware_info"]
    sums = [0.0] * info["neuron_device_count"]
    for program in report["neuron_runtime_data"] or ():
        if program.get("error") or program["report"][group].get("error"):
            return []
        for core, value in of_cores(program["report"][group]).items():
            device = int(core) // info["neuroncore_per_device_count"]
            if device >= len(sums):
                return []
            sums[device] += value
    return sums


def use(told: Any) -> dict[str, float]:
    """Percent, by the number of a NeuronCore in use."""
    cores = (told["neuroncores_in_use"] or {}).items()
    return {core: of_core["neuroncore_utilization"] for core, of_core in cores}


def memory(told: Any) -> dict[str, float]:
    """Bytes on the device, by NeuronCore."""
    cores = told["neuron_runtime_used_bytes"]["usage_breakdown"]["neuroncore_memory_usage"] or {}
    return {core: sum(parts.values()) for core, parts in cores.items()}


class Errors:
    """Of each device, those of its memories that were corrected and those that were not."""

    def __init__(self) -> None:
        self.last: dict[tuple[int, str], int] = {}
        self.sums: dict[tuple[int, str], int] = {}

    def take(self, devices: Iterable[dict[str, int]]) -> None:
        """AWS does not say whether its numbers are those since the driver came or since the last
        report: a rise is added, and after a fall the whole number.
        """
        for device in devices:
            number = device["neuron_device_index"]
            for name, value in device.items():
                if "_ecc_" in name:
                    at, last = (number, name.rpartition("_")[2]), self.last.get((number, name), 0)
                    rise = value - last if value >= last else value
                    self.sums[at] = self.sums.get(at, 0) + rise
                    self.last[number, name] = value


def metrics(report: Any, errors: Errors) -> str:
    """Nothing of devices that the driver does not tell of."""
    info, counted = report["neuron_hardware_info"], report["system_data"]["neuron_hw_counters"]
    if info.get("error"):
        return ""
    if not counted.get("error"):
        errors.take(counted["neuron_devices"] or ())
    cores = info["neuroncore_per_device_count"] * 100
    of_use = by_device(report, "neuroncore_counters", use)
    of_memory = by_device(report, "memory_used", memory)
    lines = [
        f"memory_bytes {info['neuron_device_count'] * info['neuron_device_memory_size']}",
        *(f'use_ratio{{device="{n}"}} {value / cores:.4f}' for n, value in enumerate(of_use)),
        *(f'memory_used_bytes{{device="{n}"}} {v:.0f}' for n, v in enumerate(of_memory)),
        *(f'errors_total{{device="{n}",kind="{k}"}} {v}' for (n, k), v in errors.sums.items()),
    ]
    return "".join(f"tidegate_neuron_{line}\n" for line in lines)


def silent(*_: object) -> None:
    sys.exit(f"{sys.argv[2]} has said nothing for {SILENT_S} s")


def main(path: Path, *command: str) -> None:
    """Ends when neuron-monitor does, with what it last said taken away."""
    errors, new = Errors(), path.with_suffix(".new")
    signal.signal(signal.SIGALRM, silent)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as monitor:
        try:
            signal.alarm(SILENT_S)
            for line in monitor.stdout or ():
                signal.alarm(SILENT_S)
                new.write_text(metrics(json.loads(line), errors))
                new.replace(path)
        finally:
            monitor.kill()
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
