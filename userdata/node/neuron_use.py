"""What each Neuron device of a node does and for which job: for node exporter, and for the head.

    neuron_use.py FILE JOBS GPU_USE neuron-monitor -c CONFIG

FILE is what node exporter reads; JOBS a folder with a file for each job that Slurm has started
here, with the other name of its cgroup; GPU_USE the script that writes where the head reads.

Source: AWS Neuron documentation, "Neuron Monitor User Guide": a report a line, NeuronCores counted
through all devices. Runs on the image's own Python, which may be 3.9.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

# Four reports that are missing. What was told last must not stand there as if it were so.
SILENT_S = 120
# Where Slurm puts a job's processes, with cgroups of version 2 and 1: /.../slurmstepd.scope/JOB/...
# and /slurm/uid_1000/JOB/... Users' own cgroups, which may have any name, lie below a service of
# theirs. Source: Slurm's cgroup.conf(5), CgroupJobIdPaths; cgroup_v2.c; xcgroup.c.
JOB = re.compile(r":/(?:[^/]+\.slice/)*(?:[^/]*slurmstepd\.scope|slurm[^/]*/uid_\d+)/([^/\n]+)")


def held(report: Any, group: str, of_cores: Callable[[Any], dict[str, float]]) -> Any:
    """Of each NeuronCore of each program its pid, the device, and the value; None where they cannot
    be read, which is not 0. One that counts more NeuronCores than there are has cut its
    devices otherwise than the report tells.
    """
    info, found = report["neuron_hardware_info"], []
    if info.get("error"):
        return None
    for program in report["neuron_runtime_data"] or ():
        if program.get("error") or program["report"][group].get("error"):
            return None
        for core, value in of_cores(program["report"][group]).items():
            device = int(core) // info["neuroncore_per_device_count"]
            if device >= info["neuron_device_count"]:
                return None
            found.append((program["pid"], device, value))
    return found


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


def here(folder: Path) -> dict[str, str]:
    """The jobs that run here, each by the names that its cgroup may have. Asks Slurm nothing."""
    found = {}
    for file in folder.glob("*"):
        with suppress(OSError):  # it ended
            found[f"job_{file.name}"] = found[file.read_text().strip()] = file.name
    return found


def owners(report: Any, names: Mapping[str, str], proc: Path = Path("/proc")) -> dict[int, str]:
    """The job of each program, by its cgroup, out of which no user moves it; "": none of these, or
    it is gone.
    """
    found = dict.fromkeys((each["pid"] for each in report["neuron_runtime_data"] or ()), "")
    for pid in found:
        with suppress(OSError):
            for name in JOB.findall((proc / str(pid) / "cgroup").read_text()):
                found[pid] = names.get(name, found[pid])
    return found


def metrics(report: Any, errors: Errors, jobs: Mapping[int, str]) -> str:
    """Nothing of devices that the driver does not tell of. `jobs`: of programs, by their pids."""
    info, counted = report["neuron_hardware_info"], report["system_data"]["neuron_hw_counters"]
    if info.get("error"):
        return ""
    if not counted.get("error"):
        errors.take(counted["neuron_devices"] or ())
    count, size = info["neuron_device_count"], info.get("neuron_device_memory_size")
    cores = info["neuroncore_per_device_count"] * 100
    of_use = held(report, "neuroncore_counters", use)
    of_memory = held(report, "memory_used", memory)
    both = (of_use or []) + (of_memory or [])

    def sums(found: Any) -> Iterator[tuple[str, float]]:
        for n in range(count) if found is not None else ():
            # A program lists all NeuronCores that it sees, so what is 0 says nothing.
            of = {jobs[pid] for pid, device, value in both if device == n and value > 0}
            label = f',hpc_job="{of.pop()}"' if len(of) == 1 and all(of) else ""
            yield f'device="{n}"{label}', sum(value for _, device, value in found if device == n)

    lines = [
        *([f"memory_bytes {count * size}"] if size else ()),
        *(f"use_ratio{{{labels}}} {value / cores:.4f}" for labels, value in sums(of_use)),
        *(f"memory_used_bytes{{{labels}}} {value:.0f}" for labels, value in sums(of_memory)),
        *(f'errors_total{{device="{n}",kind="{k}"}} {v}' for (n, k), v in errors.sums.items()),
    ]
    return "".join(f"tidegate_neuron_{line}\n" for line in lines)


def told(report: Any, here: Iterable[str], jobs: Mapping[int, str]) -> str:
    """The time, and a line for each job that is here: `JOB of` and DEVICE:PERCENT of those that it
    computes on, the most of a device's NeuronCores; all else that it holds does nothing. `JOB -`:
    not known, also since what computes is of no job, and so may be of any.
    """
    found = held(report, "neuroncore_counters", use)
    busy = [(jobs[pid], device, int(value)) for pid, device, value in found or () if value > 0]
    lines = [f"{time.time():.0f}"]
    for job in here:
        of = {n: percent for owner, n, percent in sorted(busy) if owner == job}
        parts = [f"{n}:{percent}" for n, percent in of.items()]
        is_known = found is not None and all(owner for owner, _, _ in busy)
        lines.append(" ".join([job, "of", *parts]) if is_known else f"{job} -")
    return "\n".join(lines)


def main(path: Path, folder: Path, script: str, *command: str) -> None:
    """Ends when neuron-monitor does, with what it last said taken away."""
    errors, new, names = Errors(), path.with_suffix(".new"), dict[str, str]()
    said = f"{command[0]} has said nothing for {SILENT_S} s"
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(said))
    with subprocess.Popen(command, stdout=subprocess.PIPE) as monitor:
        try:
            signal.alarm(SILENT_S)
            for line in monitor.stdout or ():
                signal.alarm(SILENT_S)
                report, last, names = json.loads(line), names, here(folder)
                jobs = owners(report, names)
                new.write_text(metrics(report, errors, jobs))
                new.replace(path)
                # A report is of the time since the last one. A folder that hangs ends nothing here.
                if stayed := sorted({*last.values()}.intersection(names.values())):
                    put = ["timeout", "60", "bash", "-c", 'source "$1" && put "$2"', "-", script]
                    subprocess.run([*put, told(report, stayed, jobs)], check=False)
        finally:
            monitor.kill()
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
