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
from pathlib import Path
from typing import Any, NamedTuple

# Four reports that are missing. What was told last must not stand there as if it were so.
SILENT_S = 120
TELL_S = 60
PROC = Path("/proc")
# Where Slurm puts a job's processes, with cgroups of version 2 and 1: /…/slurmstepd.scope/JOB/… and
# /slurm/uid_1000/JOB/… JOB is job_4711, or from 26.05 on the job's SLUID. Users' own cgroups, which
# may have any name, lie in no slice's top. Source: cgroup.conf(5), CgroupJobIdPaths; xcgroup.c.
JOB_CGROUP = re.compile(
    r"^\d+:[^:]*:/(?:(?:[^/]+\.slice/)*[^/]*slurmstepd\.scope|slurm[^/]*/uid_\d+)/([^/\n]+)", re.M
)


class Held(NamedTuple):
    """What a program has of a NeuronCore: `value` is a percentage, or a number of bytes."""

    pid: int
    device: int
    value: float


def held(
    report: Any, group: str, of_cores: Callable[[Any], Mapping[str, float]]
) -> list[Held] | None:
    """Core by core; None where a program cannot be read, which is not 0. One that counts more
    NeuronCores than there are has cut its devices otherwise than the report tells.
    """
    info = report["neuron_hardware_info"]
    found: list[Held] = []
    for program in report["neuron_runtime_data"] or ():
        if program.get("error") or program["report"][group].get("error"):
            return None
        for core, value in of_cores(program["report"][group]).items():
            device = int(core) // info["neuroncore_per_device_count"]
            if device >= info["neuron_device_count"]:
                return None
            found.append(Held(program["pid"], device, value))
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


class Jobs:
    """Which jobs run here, and which of them a program is of. Nothing of it asks Slurm."""

    def __init__(self, folder: Path, proc: Path = PROC) -> None:
        self.folder, self.proc = folder, proc
        self.names: dict[str, str] = {}
        self.last: frozenset[str] = frozenset()

    def look(self) -> list[str]:
        """The jobs that were here at the last look too: a report is of the time between."""
        found: dict[str, str] = {}
        for file in self.folder.glob("*"):
            try:
                found.update({name: file.name for name in (file.read_text().strip(),) if name})
            except OSError:
                continue  # it ended
            found[f"job_{file.name}"] = file.name
        self.names, now = found, frozenset(found.values())
        stayed, self.last = sorted(now & self.last, key=int), now
        return stayed

    def of(self, pid: int) -> str:
        """The job whose cgroup the program is in, out of which no user moves it; "" of none here,
        or it is gone.
        """
        try:
            found = JOB_CGROUP.findall((self.proc / str(pid) / "cgroup").read_text())
        except OSError:
            return ""
        return next((self.names[name] for name in found if name in self.names), "")


def metrics(report: Any, errors: Errors, job_of: Callable[[int], str] = lambda pid: "") -> str:
    """Nothing of devices that the driver does not tell of."""
    info, counted = report["neuron_hardware_info"], report["system_data"]["neuron_hw_counters"]
    if info.get("error"):
        return ""
    if not counted.get("error"):
        errors.take(counted["neuron_devices"] or ())
    cores, size = info["neuroncore_per_device_count"] * 100, info.get("neuron_device_memory_size")
    of_use, of_memory = (
        held(report, "neuroncore_counters", use),
        held(report, "memory_used", memory),
    )
    jobs = _job_of_each(info["neuron_device_count"], (*(of_use or ()), *(of_memory or ())), job_of)
    lines = [
        *([f"memory_bytes {info['neuron_device_count'] * size}"] if size else ()),
        *(f"use_ratio{{{job}}} {value / cores:.4f}" for job, value in _sums(of_use, jobs)),
        *(f"memory_used_bytes{{{job}}} {value:.0f}" for job, value in _sums(of_memory, jobs)),
        *(f'errors_total{{device="{n}",kind="{k}"}} {v}' for (n, k), v in errors.sums.items()),
    ]
    return "".join(f"tidegate_neuron_{line}\n" for line in lines)


def _sums(found: list[Held] | None, jobs: list[str]) -> Iterator[tuple[str, float]]:
    """The labels and the sum of each device."""
    for device, job in enumerate(jobs if found is not None else ()):
        label = f',hpc_job="{job}"' if job else ""
        total = sum(each.value for each in found or () if each.device == device)
        yield f'device="{device}"{label}', total


def _job_of_each(count: int, found: Iterable[Held], job_of: Callable[[int], str]) -> list[str]:
    """Of each device the job that computes on it or has data there; "" of none, or of several.

    A program lists all NeuronCores that it sees, so what is 0 says nothing.
    """
    pids: list[set[int]] = [set() for _ in range(count)]
    for each in found:
        if each.value > 0:
            pids[each.device].add(each.pid)
    owners = [{job_of(pid) for pid in of_device} for of_device in pids]
    return [next(iter(each)) if len(each) == 1 else "" for each in owners]


def told(report: Any, jobs: Iterable[str], job_of: Callable[[int], str]) -> list[str]:
    """A line for each job: `JOB of` and DEVICE:PERCENT of those that its programs compute on, the
    most of a device's NeuronCores; all else that it holds does nothing. `JOB -`: not known, also
    since what computes here is of no job, and so may be of any.
    """
    has_driver = not report["neuron_hardware_info"].get("error")
    found = held(report, "neuroncore_counters", use) if has_driver else None
    busy = [each for each in found or () if each.value > 0]
    owners = {each.pid: job_of(each.pid) for each in busy}
    if found is None or not all(owners.values()):
        return [f"{job} -" for job in jobs]
    most: dict[tuple[str, int], int] = {}
    for each in busy:
        at = owners[each.pid], each.device
        most[at] = max(most.get(at, 0), min(int(each.value), 100))
    return [
        f"{job} of" + "".join(f" {n}:{most[of, n]}" for of, n in sorted(most) if of == job)
        for job in jobs
    ]


def tell(script: Path, lines: list[str]) -> None:
    """Where the head reads it. A shared folder that hangs ends nothing here."""
    text = "\n".join([f"{time.time():.0f}", *lines])
    put = ["bash", "-c", 'source "$1" && put "$2"', "put", str(script), text]
    try:
        subprocess.run(put, timeout=TELL_S, check=False)
    except subprocess.TimeoutExpired:
        print(f"the use of Neuron devices was not written within {TELL_S} s", file=sys.stderr)


def silent(*_: object) -> None:
    sys.exit(f"{sys.argv[4]} has said nothing for {SILENT_S} s")


def main(path: Path, folder: Path, script: Path, *command: str) -> None:
    """Ends when neuron-monitor does, with what it last said taken away."""
    errors, jobs, new = Errors(), Jobs(folder), path.with_suffix(".new")
    signal.signal(signal.SIGALRM, silent)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as monitor:
        try:
            signal.alarm(SILENT_S)
            for line in monitor.stdout or ():
                signal.alarm(SILENT_S)
                report, stayed = json.loads(line), jobs.look()
                new.write_text(metrics(report, errors, jobs.of))
                new.replace(path)
                if stayed:
                    tell(script, told(report, stayed, jobs.of))
        finally:
            monitor.kill()
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
