"""The agent's metrics: what they say, and that nothing of the agent's work hangs on them."""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agent.fakes import NOW_S, FakeBus, FakeClock, FakeSlurm, agent_of, order
from tests.agent.test_run import PollingBus, eventually
from tidegate.agent.loop import Agent
from tidegate.agent.meter import TOLD_FOR_S, Meter
from tidegate.agent.metrics import (
    METRICS_FILE,
    SAMPLES_MAX,
    TARGETS_FILE,
    MetricsFolder,
    exposition,
    targets,
)
from tidegate.agent.run import Service
from tidegate.agent.watch import Waker
from tidegate.core.explain.verdicts import Verdicts
from tidegate.core.model import prometheus as metrics
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.prometheus import Sample
from tidegate.core.model.slurm import Node, NodeState


def verdicts(*samples: Sample, at_s: float = NOW_S) -> Verdicts:
    return Verdicts("test", f"p-{at_s:g}", at_s, 1, 0.0, (), {}, {}, samples=samples)


@pytest.fixture
def watch() -> FakeClock:
    """A stopwatch, which no change of the clock moves."""
    return FakeClock()


@pytest.fixture
def meter(watch: FakeClock) -> Meter:
    return Meter(NOW_S, stopwatch=watch.now_s)


@pytest.fixture
def metered(slurm: FakeSlurm, bus: FakeBus, clock: FakeClock, meter: Meter) -> Agent:
    return agent_of(slurm, bus, clock, meter)


def told(meter: Meter, now_s: float = NOW_S) -> dict[str, float]:
    """Series -> value, as the file has them."""
    lines = exposition(meter.samples(now_s)).splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {series: float(value) for series, value in pairs}


def test_an_agent_that_has_done_nothing_tells_zeros_and_no_times(meter: Meter) -> None:
    found = told(meter)

    assert found['tidegate_agent_orders_total{kind="drain",outcome="done"}'] == 0
    assert found["tidegate_agent_slurm_up"] == 0
    assert "tidegate_agent_last_look_timestamp_seconds" not in found
    assert "tidegate_digest_age_seconds" not in found


def test_looks_digests_and_orders_are_counted(
    metered: Agent, slurm: FakeSlurm, clock: FakeClock, meter: Meter
) -> None:
    slurm.put("i-0001", "IDLE")
    slurm.queue("7", count=3)
    metered.tick()
    metered.on_orders([order(OrderKind.DRAIN, "i-0001", "i-0002")])
    clock.sleep(5)

    found = told(meter, clock.now_s())

    assert found["tidegate_agent_slurm_up"] == 1
    assert found["tidegate_agent_last_look_timestamp_seconds"] == NOW_S
    assert found["tidegate_digest_age_seconds"] == 5
    assert found['tidegate_agent_digests_total{outcome="sent"}'] == 1
    assert found['tidegate_slurm_jobs{state="pending"}'] == 3
    assert found['tidegate_slurm_nodes{state="idle"}'] == 1
    orders = {name: count for name, count in found.items() if "orders_total" in name and count}
    assert sum(orders.values()) == 2
    assert orders['tidegate_agent_orders_total{kind="drain",outcome="done"}'] == 1


def test_an_order_that_comes_twice_counts_once(metered: Agent, slurm: FakeSlurm, meter: Meter):
    slurm.put("i-0001", "IDLE")
    drain = order(OrderKind.DRAIN, "i-0001")

    metered.on_orders([drain])
    metered.on_orders([drain])

    assert told(meter)['tidegate_agent_orders_total{kind="drain",outcome="done"}'] == 1


def test_a_silent_slurm_and_a_silent_bus_are_told(
    metered: Agent, slurm: FakeSlurm, bus: FakeBus, meter: Meter
) -> None:
    metered.tick()
    bus.is_throttled = True
    slurm.queue("8")
    metered.tick()
    slurm.is_up = False
    metered.tick()

    found = told(meter)

    assert found["tidegate_agent_slurm_up"] == 0
    assert found['tidegate_agent_digests_total{outcome="failed"}'] == 1
    assert found['tidegate_slurm_jobs{state="pending"}'] == 1, "of the last look that there was"


def test_what_the_planner_saw_is_told_with_what_the_agent_saw(meter: Meter) -> None:
    meter.judged(verdicts(metrics.NODES_LATE.of(2)))

    assert told(meter)["tidegate_nodes_late"] == 2


def test_verdicts_grow_old_by_the_stopwatch_and_not_by_any_clock(
    meter: Meter, watch: FakeClock
) -> None:
    meter.judged(verdicts(metrics.NODES_LATE.of(2), at_s=NOW_S - 1e6))
    watch.sleep(60)
    meter.judged(verdicts(metrics.NODES_LATE.of(2), at_s=NOW_S - 1e6))
    assert told(meter, NOW_S + 1e6)["tidegate_verdicts_age_seconds"] == 60

    meter.judged(verdicts(at_s=NOW_S - 2e6))

    assert told(meter)["tidegate_verdicts_age_seconds"] == 0


def test_what_a_planner_saw_that_is_silent_is_told_no_more(meter: Meter, watch: FakeClock) -> None:
    meter.judged(verdicts(metrics.NODES_LATE.of(2)))

    watch.sleep(TOLD_FOR_S + 1)

    found = told(meter)
    assert "tidegate_nodes_late" not in found
    assert found["tidegate_verdicts_age_seconds"] > TOLD_FOR_S


def test_a_file_that_somebody_else_wrote_spoils_no_scrape() -> None:
    """The verdicts come from a bucket: a name, a label or a value may be anything."""
    given = [
        Sample("tidegate_new_thing", 1.0, (("pool", 'a"b\\c\nd'),)),
        Sample("tidegate_new_thing", 2.0, (("pool", 'a"b\\c\nd'),)),
        Sample("up", 1.0),
        Sample("tidegate_bad name", 1.0),
        Sample("tidegate_nan", float("nan")),
        Sample("tidegate_label", 1.0, (("a b", "c"), ("long", "x" * 500))),
    ]

    text = exposition(given)

    assert text.splitlines() == [
        "# HELP tidegate_new_thing Of a newer planner.",
        "# TYPE tidegate_new_thing gauge",
        r'tidegate_new_thing{pool="a\"b\\c\nd"} 2',
        "# HELP tidegate_label Of a newer planner.",
        "# TYPE tidegate_label gauge",
        f'tidegate_label{{long="{"x" * 100}"}} 1',
    ]
    many = (Sample("tidegate_x", 1.0, (("n", str(n)),)) for n in range(SAMPLES_MAX * 2))
    assert len(exposition(many).splitlines()) == SAMPLES_MAX + 2


@pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="real path: Debian's package prometheus is not installed",
)
def test_names_and_format_are_as_prometheus_wants_them(meter: Meter, metered: Agent) -> None:
    metered.tick()
    meter.gpu_time("gpu", 60.0, 0.0)
    every = [each.of(1.0, **dict.fromkeys(each.labels, "x")) for each in metrics.OF_PLANNER]
    meter.judged(verdicts(*every))
    text = exposition(meter.samples(NOW_S))

    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert {line.split()[2] for line in text.splitlines() if line[0] == "#"} == set(metrics.METRICS)


def test_nodes_become_targets_of_their_exporters_by_the_addresses_that_slurm_has() -> None:
    idle = NodeState.parse("IDLE")
    nodes = [
        Node("i-1", idle, 8, 1000, 4, "t4", features=("gpu", "g4dn"), address="10.0.0.1"),
        Node("i-2", idle, 8, 1000, 0, "", features=("cpu",), address="10.0.0.2"),
        Node("i-3", idle, 8, 1000, 0, "", address=""),
        Node("i-4", idle, 8, 1000, 0, "", address="a b/c?d"),
    ]

    found = json.loads(targets(nodes, "test"))

    label = {"cluster": "test", "instance": "i-1", "pool": "gpu"}
    assert found[:2] == [
        {"targets": ["10.0.0.1:9100"], "labels": {**label, "exporter": "node"}},
        {"targets": ["10.0.0.1:9400"], "labels": {**label, "exporter": "gpu"}},
    ]
    assert [each["targets"] for each in found[2:]] == [["10.0.0.2:9100"]]


def names_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.fixture
def folder(tmp_path: Path, meter: Meter, clock: FakeClock) -> MetricsFolder:
    made = tmp_path / "metrics"
    made.mkdir()
    return MetricsFolder(made, "test", meter, clock)


def test_both_files_are_there_and_nothing_else(folder: MetricsFolder, metered: Agent) -> None:
    metered.tick()
    folder.write()
    folder.write()

    assert names_in(folder.folder) == [TARGETS_FILE, METRICS_FILE]


def test_the_list_of_nodes_is_replaced_when_it_has_changed_or_is_gone(
    folder: MetricsFolder, metered: Agent, slurm: FakeSlurm
) -> None:
    """Prometheus reads all of it whenever it is replaced."""
    listed = folder.folder / TARGETS_FILE
    metered.tick()

    def written() -> int:
        folder.write()
        return listed.stat().st_ino

    first = written()
    assert written() == first

    slurm.put("i-0001", "IDLE")
    slurm.nodes["i-0001"] = replace(slurm.nodes["i-0001"], address="10.0.0.1")
    metered.tick()
    assert written() != first
    assert "10.0.0.1:9100" in listed.read_text()

    listed.unlink()
    folder.write()
    assert listed.exists()


def test_an_agent_that_has_not_looked_leaves_the_list_of_the_one_before(
    folder: MetricsFolder,
) -> None:
    listed = folder.folder / TARGETS_FILE
    listed.write_text("of before")

    folder.write()

    assert listed.read_text() == "of before"


def test_a_folder_that_is_not_there_is_said_once_and_used_when_it_comes(
    folder: MetricsFolder, caplog: pytest.LogCaptureFixture
) -> None:
    folder.folder.rmdir()
    folder.write()
    folder.write()
    assert len(caplog.records) == 1
    folder.folder.mkdir()

    folder.write()

    assert (folder.folder / METRICS_FILE).stat().st_size > 1000


@pytest.fixture
def full(folder: MetricsFolder) -> Iterator[MetricsFolder]:
    """A file system of one page, which is taken."""
    if os.geteuid() != 0:
        pytest.skip("real path: a full file system needs root")
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "full", str(folder.folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("real path: this machine mounts no tmpfs")
    (folder.folder / "taken").write_bytes(b"x" * 4096)
    yield folder
    subprocess.run(["umount", str(folder.folder)], check=True)


def test_a_full_disk_is_said_once_and_leaves_what_was_there(
    full: MetricsFolder, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        full.write()
    assert names_in(full.folder) == ["taken"]
    assert [each.message for each in caplog.records] == [
        "Metrics cannot be written, all else goes on: [Errno 28] No space left on device"
    ]


def test_a_disk_that_hangs_keeps_no_order_and_no_stop_waiting(
    folder: MetricsFolder, slurm: FakeSlurm, clock: FakeClock, tmp_path: Path
) -> None:
    """A pipe that nobody reads: to open it takes for ever."""
    os.mkfifo(folder.folder / "tidegate.new")
    bus = PollingBus()
    slurm.put("i-0001", "IDLE")
    with Waker(tmp_path / "slurmctld.log") as waker:
        service = Service(agent_of(slurm, bus, clock, folder.meter), bus, waker, metrics=folder)
        thread = threading.Thread(target=service.run)
        thread.start()
        bus.orders.append(replace(order(OrderKind.DRAIN, "i-0001"), order_id="o-hangs"))
        eventually("acknowledged", lambda: bus.acknowledged == ["o-hangs"])
        service.stop()
        thread.join(20)

    assert not thread.is_alive()
    assert not (folder.folder / METRICS_FILE).exists()
