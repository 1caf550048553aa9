"""The dashboards in front of a real Prometheus that scraped what the product exposes.

What node exporter and dcgm-exporter would say is written here, under their documented names.
"""

import json
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.make import NOW_S, cluster, instance, job, node, record, snapshot
from tests.userdata.neuron import program, report
from tidegate.agent.meter import Meter
from tidegate.agent.metrics import GPU_PORT, NODE_PORT, exposition, targets
from tidegate.cli.dashboards.boards import BOARDS
from tidegate.cli.dashboards.grafana import Board, Panel, Query, as_json
from tidegate.cli.main import app
from tidegate.core.explain.verdicts import verdicts_of
from tidegate.core.model.cluster import Limits, SpendingBudget
from tidegate.core.model.orders import OrderKind, OrderOutcome, OrderResult
from tidegate.core.model.slurm import Node
from tidegate.core.planner import plan
from tidegate.service.control import Round
from tidegate.service.outcome import Outcome
from tidegate.service.samples import look_samples
from userdata.monitoring import METRICS_DIR, Monitoring, prometheus_config, prometheus_rules
from userdata.node.neuron_use import Errors
from userdata.node.neuron_use import metrics as neuron_metrics

HEAD_MACHINE = """\
node_load1 0.4
node_memory_MemTotal_bytes 8.0e+09
node_memory_MemAvailable_bytes 6.0e+09
node_filesystem_size_bytes{device="/dev/root",fstype="ext4",mountpoint="/"} 3.0e+10
node_filesystem_avail_bytes{device="/dev/root",fstype="ext4",mountpoint="/"} 2.0e+10
node_uname_info{release="6.8"} 1
"""
NODE_MACHINE = f"""{HEAD_MACHINE}
node_network_receive_bytes_total{{device="ens5"}} 12345
node_network_transmit_bytes_total{{device="ens5"}} 12345
node_cpu_seconds_total{{cpu="0",mode="idle"}} 99
tidegate_efa_tx_bytes_total 12345
tidegate_efa_retrans_timeout_events_total 2
tidegate_efa_unresponsive_remote_events_total 1
{neuron_metrics(report([program({0: 42.0}, gib={0: 3})]), Errors(), {4711: "8"})}
"""
# As dcgm-exporter writes them by default, with --hpc-job-mapping-dir.
GPU_LABELS = (
    'gpu="0",UUID="GPU-1",pci_bus_id="00000000:00:1E.0",device="nvidia0",modelName="Tesla T4",'
    'Hostname="ip-10-0-0-1",DCGM_FI_DRIVER_VERSION="580.1",hpc_job="7"'
)
GPU_METRICS = (
    *("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"),
    *("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_XID_ERRORS"),
    *("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_DEV_SM_CLOCK"),
)
GPU_MACHINE = "".join(f"{name}{{{GPU_LABELS}}} 40\n" for name in GPU_METRICS)


def exposed() -> tuple[str, tuple[Node, ...]]:
    """What the agent of a cluster at work writes, and its nodes."""
    of = replace(
        cluster(limits=Limits(nodes=4)), budgets={"cluster": SpendingBudget(usd_per_day=100.0)}
    )
    nodes = tuple(
        replace(each, features=("t4", "g4dn.xlarge"), address="127.0.0.1")
        for each in (
            node("i-0000000000000001", state="MIXED", gpus_alloc=1),
            node("i-0000000000000002"),
        )
    )
    seen = snapshot(
        [job(1, gpus=64, begins_at_s=NOW_S - 60), job(2, on=[nodes[0].name])],
        nodes,
        of=of,
        instances=[instance(each.name) for each in nodes],
        records=[record(each.name) for each in nodes],
    )
    assert seen.digest
    meter, made = Meter(NOW_S), plan(seen)
    meter.looked(seen.digest.reading, time.time(), 0.01)
    meter.published(time.time())
    meter.gpu_time("gpu", 60.0, 30.0)
    meter.carried_out([OrderResult("o-1", OrderKind.DRAIN, nodes[0].name, OrderOutcome.DONE)])
    samples = look_samples(Round(seen, made, Outcome()))
    meter.judged(replace(verdicts_of(made, seen), samples=samples))
    return exposition(meter.samples(time.time())), nodes


def serve(text: str) -> ThreadingHTTPServer:
    class Exporter(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Prometheus:
    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}/api/v1"

    def asked(self, expr: str) -> list[dict[str, Any]]:
        """Errors: HTTPError, for what is no query."""
        words = urllib.parse.urlencode({"query": expr})
        with urllib.request.urlopen(f"{self.base}/query?{words}", timeout=5) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found

    def has(self, expr: str) -> bool:
        try:
            return bool(self.asked(expr))
        except OSError:  # it does not listen yet
            return False


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """With the configuration and the rules of a head, but for ports and the folder of targets."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("real path: Debian's package prometheus is not installed")
    folder = tmp_path_factory.mktemp("prometheus")
    ours, nodes = exposed()
    head, of_node, of_gpu = serve(HEAD_MACHINE + ours), serve(NODE_MACHINE), serve(GPU_MACHINE)
    listed = targets(nodes, "test")
    config = prometheus_config(Monitoring("test", interval_s=1)).replace(METRICS_DIR, str(folder))
    config = config.replace("127.0.0.1:9100", f"127.0.0.1:{head.server_port}")
    for port, server in ((NODE_PORT, of_node), (GPU_PORT, of_gpu)):
        listed = listed.replace(f":{port}", f":{server.server_port}")
    (folder / "nodes.json").write_text(listed)
    (folder / "prometheus.yml").write_text(config)
    (folder / "tidegate.rules.yml").write_text(prometheus_rules())
    port = free_port()
    log = (folder / "log").open("w")
    words = [f"--web.listen-address=127.0.0.1:{port}", f"--storage.tsdb.path={folder}/data"]
    running = subprocess.Popen(
        [program, f"--config.file={folder}/prometheus.yml", *words], stdout=log, stderr=log
    )
    made = Prometheus(port)
    until_s = time.monotonic() + 60
    # A rate needs two scrapes, and a record an evaluation after the first.
    ready = (
        "count(count_over_time(up[1m]) > 1) == 5 and on () count(tidegate:budget_used_ratio)"
        " and on () count(tidegate:gpus_busy_ratio)"
    )
    while not made.has(ready):
        assert time.monotonic() < until_s, (folder / "log").read_text()
        time.sleep(0.1)
    yield made
    running.terminate()
    running.wait(20)
    log.close()
    for server in (head, of_node, of_gpu):
        server.shutdown()
        server.server_close()


def every_query() -> list[tuple[Board, Panel, Query]]:
    return [(b, panel, query) for b in BOARDS for panel in b.panels for query in panel.queries]


@pytest.mark.parametrize(
    ("board", "panel", "query"),
    [pytest.param(*each, id=f"{each[0].name}-{each[1].title}") for each in every_query()],
)
def test_a_panel_finds_what_it_shows(
    prometheus: Prometheus, board: Board, panel: Panel, query: Query
) -> None:
    expr = query.expr.replace("$cluster", "test").replace("$__rate_interval", "1m")

    found = prometheus.asked(expr)

    assert found, expr
    names = re.findall(r"{{(\w+)}}", query.legend)
    assert all(each["metric"].get(name) for each in found for name in names), found
    another = expr.replace('cluster="test"', 'cluster="another"')
    assert prometheus.asked(another) == [] or expr.endswith("or vector(0)"), "of any cluster"


def test_of_a_node_nothing_is_kept_that_nobody_asks_for(prometheus: Prometheus) -> None:
    """2,000 nodes: a series more for each is 2,000 more."""
    kept = {each["metric"]["__name__"] for each in prometheus.asked('{job=~"node|gpu"}')}

    dropped = {"node_uname_info", "node_cpu_seconds_total", "DCGM_FI_DEV_SM_CLOCK"}
    assert not kept & dropped
    (one,) = prometheus.asked('DCGM_FI_DEV_GPU_UTIL{instance="i-0000000000000002"}')
    assert one["metric"] == {
        "__name__": "DCGM_FI_DEV_GPU_UTIL",
        "cluster": "test",
        "instance": "i-0000000000000002",
        "job": "gpu",
        "pool": "t4",
        "gpu": "0",
        "hpc_job": "7",
        "modelName": "Tesla T4",
    }


def test_a_cluster_at_work_raises_no_alert(prometheus: Prometheus) -> None:
    assert prometheus.asked('ALERTS{alertstate="firing"}') == []


def test_files_are_written_for_grafana_and_prometheus(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["dashboards", "--out", str(tmp_path / "new")])

    assert done.exit_code == 0, done.output
    names = sorted(each.name for each in (tmp_path / "new").iterdir())
    boards = [f"tidegate-{each.name}.json" for each in BOARDS]
    assert names == sorted([*boards, "tidegate.rules.yml"])
    for name in boards:
        made = json.loads((tmp_path / "new" / name).read_text())
        sources = {json.dumps(each["datasource"]) for each in made["panels"]}
        assert sources == {'{"type": "prometheus", "uid": "${datasource}"}'}
        assert [each["name"] for each in made["templating"]["list"]] == ["datasource", "cluster"]


@pytest.mark.parametrize("where", ["a-file", "no/such/folder"])
def test_a_place_where_nothing_can_be_written_is_refused(tmp_path: Path, where: str) -> None:
    (tmp_path / "a-file").write_text("")

    done = CliRunner().invoke(app, ["dashboards", "--out", str(tmp_path / where)])

    assert done.exit_code == 2


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_panels_stand_beside_and_below_each_other(board: Board) -> None:
    places = [each["gridPos"] for each in as_json(board)["panels"]]

    taken = [
        (place["x"] + dx, place["y"] + dy)
        for place in places
        for dx in range(place["w"])
        for dy in range(place["h"])
    ]
    assert len(taken) == len(set(taken))
    assert all(x < 24 for x, _ in taken)
    assert all(panel.says.endswith(".") for panel in board.panels)
