"""What EFA's devices count, summed for node exporter."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

NODE = Path(__file__).parents[2] / "userdata" / "node"
SCRIPT, STAGE = NODE / "efa-metrics.sh", NODE / "exporters.sh"
BUSY = 2**63 + 1_000_000  # a counter of 64 bits


def told(devices: Path, counted: Mapping[str, Mapping[str, str]]) -> list[str]:
    for device, counters in counted.items():
        folder = devices / device / "ports/1/hw_counters"
        folder.mkdir(parents=True)
        for name, value in counters.items():
            (folder / name).write_text(f"{value}\n")
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail; source {SCRIPT} nowhere; metrics"],
        env={"PATH": "/usr/bin:/bin", "DEVICES": str(devices)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_devices_are_summed_and_numbers_stay_whole(tmp_path: Path) -> None:
    lines = told(
        tmp_path,
        {
            "rdmap79s0": {"tx_bytes": str(BUSY), "retrans_timeout_events": "3", "rx_bytes": "12"},
            "rdmap80s0": {"tx_bytes": "4096", "retrans_timeout_events": "4"},
        },
    )

    said = dict(line.split() for line in lines if line[0] != "#")
    assert said.keys() == {
        "tidegate_efa_tx_bytes_total",
        "tidegate_efa_retrans_timeout_events_total",
    }
    assert said["tidegate_efa_retrans_timeout_events_total"] == "7"
    assert said["tidegate_efa_tx_bytes_total"].isdigit()
    assert abs(int(said["tidegate_efa_tx_bytes_total"]) - BUSY - 4096) < 4096
    assert "# TYPE tidegate_efa_tx_bytes_total counter" in lines


@pytest.mark.parametrize(
    "counted",
    [
        {},
        {"rdmap79s0": {"lifespan": "12"}},
        {"rdmap79s0": {"tx_bytes": "N/A", "retrans_timeout_events": ""}},
    ],
    ids=["no device", "an older driver", "no number"],
)
def test_what_is_not_counted_is_not_told(
    tmp_path: Path, counted: Mapping[str, Mapping[str, str]]
) -> None:
    assert told(tmp_path, counted) == []


@pytest.mark.parametrize(("efa", "is_told"), [(0, False), (32, True)])
def test_node_exporter_reads_the_file_where_there_are_devices(efa: int, is_told: bool) -> None:
    told = f"EFA={efa} RUN_DIR=/nowhere"
    line = f"set -euo pipefail; {told}; source {STAGE}; exporter_options; echo; efa_unit"
    said = subprocess.check_output(["bash", "-c", line], text=True).splitlines()

    folder = "--collector.textfile.directory="
    found = [each.removeprefix(folder) for each in said[0].strip('"').split() if folder in each]
    (start,) = [each.split() for each in said if each.startswith("ExecStart=")]
    assert start[1].endswith("/files/efa-metrics.sh")
    assert found == ([str(Path(start[2]).parent)] if is_told else [])
    assert ("--collector.textfile" in said[0].split()) == is_told
