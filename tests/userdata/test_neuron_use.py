"""What neuron-monitor says of each Neuron device, told to node exporter."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.userdata.neuron import GIB, device, program, report
from userdata.node.neuron_use import Errors, metrics, owners

NODE = Path(__file__).parents[2] / "userdata" / "node"
SCRIPT, STAGE = NODE / "neuron_use.py", NODE / "gpu_use.sh"


def told(of: dict[str, Any], errors: Errors | None = None) -> dict[str, float]:
    text = metrics(of, errors or Errors(), owners(of, {}))
    lines = (line.split() for line in text.splitlines())
    return {name.removeprefix("tidegate_neuron_"): float(value) for name, value in lines}


def test_use_and_memory_are_told_by_device() -> None:
    one, another = program({0: 42.0, 1: 20.0}, gib={0: 3, 1: 2}), program({2: 98.0}, gib={2: 5})

    seen = told(report([one, another]))

    assert seen['use_ratio{device="0"}'] == 0.31
    assert seen['use_ratio{device="1"}'] == 0.49, "a core without a program is one that idles"
    assert seen['memory_used_bytes{device="0"}'] == 5 * GIB
    assert seen['memory_used_bytes{device="1"}'] == 5 * GIB
    assert seen["memory_bytes"] == 64 * GIB


@pytest.mark.parametrize("nobody", [(), None])
def test_devices_without_a_program_idle(nobody: tuple[()] | None) -> None:
    seen = told(report(nobody))

    assert seen['use_ratio{device="1"}'] == seen['memory_used_bytes{device="1"}'] == 0


def test_what_cannot_be_read_is_not_told_as_idle() -> None:
    broken = program({}, error="no such process")

    seen = told(report([program({0: 42.0}, gib={0: 3}), broken], [device(0, corrected=2)]))

    assert seen == {
        "memory_bytes": 64 * GIB,
        'errors_total{device="0",kind="corrected"}': 2,
        'errors_total{device="0",kind="uncorrected"}': 0,
    }


def test_a_program_that_counts_more_cores_than_there_are_is_one_that_cannot_be_read() -> None:
    """A job may cut its devices into twice as many logical NeuronCores as neuron-monitor takes."""
    seen = told(report([program({0: 42.0, 7: 42.0}, gib={7: 3})], [device(0, corrected=2)]))

    assert seen == {
        "memory_bytes": 64 * GIB,
        'errors_total{device="0",kind="corrected"}': 2,
        'errors_total{device="0",kind="uncorrected"}': 0,
    }


def test_a_report_without_words_of_errors_has_none() -> None:
    of = report([program({0: 42.0}, gib={0: 3})])

    assert told(json.loads(json.dumps(of), object_hook=_without_error)) == told(of)


def _without_error(of: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in of.items() if name != "error"}


def test_of_devices_that_the_driver_does_not_know_nothing_is_told() -> None:
    assert told(report(error="the Neuron driver is not running")) == {}


@pytest.mark.parametrize(
    ("counted", "total"),
    [
        ([0, 3, 3, 5], 5),  # since the driver came
        ([0, 3, 0, 2], 5),  # since the last report
        ([4, 6, 1], 7),  # the driver was loaded anew
    ],
)
def test_errors_are_counted_once_whichever_way_they_are_said(
    counted: list[int], total: int
) -> None:
    errors = Errors()

    for number in counted:
        seen = told(report(devices=[device(0), device(1, uncorrected=number)]), errors)

    assert seen['errors_total{device="1",kind="uncorrected"}'] == total
    assert seen['errors_total{device="0",kind="uncorrected"}'] == 0


def monitor(tmp_path: Path, then: str) -> list[str]:
    said = tmp_path / "said"
    said.write_text(json.dumps(report([program({0: 42.0})])) + "\n")
    return ["sh", "-c", f"cat {said}; {then}"]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for each in started:
        each.kill()
        each.communicate()


def start(tmp_path: Path, script: Path, then: str) -> subprocess.Popen[bytes]:
    paths = (script, tmp_path / "x.prom", tmp_path / "jobs", tmp_path / "gpu-use.sh")
    words = [sys.executable, *map(str, paths), *monitor(tmp_path, then)]
    return subprocess.Popen(words, stderr=subprocess.PIPE)


def test_what_was_said_goes_with_who_said_it(
    tmp_path: Path, running: list[subprocess.Popen[bytes]]
) -> None:
    file = tmp_path / "x.prom"
    running.append(start(tmp_path, SCRIPT, f"while [ ! -e {tmp_path}/end ]; do sleep 0.05; done"))
    until_s = time.monotonic() + 20
    while not file.exists():
        assert time.monotonic() < until_s
        time.sleep(0.02)
    assert 'tidegate_neuron_use_ratio{device="0"} 0.2100\n' in file.read_text()

    (tmp_path / "end").touch()
    running[0].communicate(timeout=20)

    assert not file.exists()


def test_a_monitor_that_is_silent_is_ended(
    tmp_path: Path, running: list[subprocess.Popen[bytes]]
) -> None:
    script = tmp_path / "hasty.py"
    script.write_text(SCRIPT.read_text().replace("SILENT_S = 120", "SILENT_S = 1"))

    running.append(start(tmp_path, script, "exec sleep 60"))
    _, said = running[0].communicate(timeout=20)

    assert running[0].returncode == 1
    assert b"sh has said nothing for 1 s" in said
    assert not (tmp_path / "x.prom").exists()


@pytest.mark.parametrize(("gres", "is_there"), [("gpu", False), ("neuron", True)])
def test_it_runs_where_there_are_devices(tmp_path: Path, gres: str, is_there: bool) -> None:
    (tmp_path / "neuron-monitor").write_text("#!/bin/sh\n")
    (tmp_path / "neuron-monitor").chmod(0o755)
    line = f"RUN_DIR=/run/tidegate GRES={gres} PATH=$PATH:{tmp_path}; source {STAGE}; unit"

    said = subprocess.check_output(["bash", "-euo", "pipefail", "-c", line], text=True)

    (words,) = [each.split() for each in said.splitlines() if each.startswith("ExecStart=")]
    assert (f"{tmp_path}/neuron-monitor" in words) == is_there
    assert any(each.endswith("/neuron_use.py") for each in words) == is_there
    assert words[0].endswith("python3" if is_there else "/bin/bash")


@pytest.mark.parametrize("is_told", [False, True])
def test_node_exporter_reads_the_file_where_it_is_written(tmp_path: Path, is_told: bool) -> None:
    if is_told:
        (tmp_path / "neuron-jobs").mkdir()
    line = f"EFA=0 RUN_DIR={tmp_path}; source {NODE / 'exporters.sh'}; exporter_options"

    said = subprocess.check_output(["bash", "-euo", "pipefail", "-c", line], text=True)

    folder = "--collector.textfile.directory="
    found = [each.removeprefix(folder) for each in said.strip('"').split() if folder in each]
    assert found == (["/run/tidegate/metrics"] if is_told else [])


def test_of_each_program_and_device_what_is_told_is_asked_for() -> None:
    asked = json.loads((NODE / "neuron-monitor.json").read_text())

    (of_programs,) = asked["neuron_runtimes"]
    assert {each["type"] for each in of_programs["metrics"]} == set(program({})["report"])
    assert {each["type"] for each in asked["system_metrics"]} == set(report()["system_data"])
