"""The head's Prometheus: its configuration and its alerts, judged by promtool.

A fault is planted into a healthy series; its alert fires within two evaluations after the
time that the alert itself waits, and no other does.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidegate.core.model.prometheus import METRICS
from userdata.monitoring import Monitoring, monitoring_files, prometheus_config, prometheus_rules

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None,
    reason="real path: Debian's package prometheus is not installed",
)

STEP_S, MINUTE, LENGTH = 30, 2, 160  # a sample and an evaluation every 30 s, for 80 minutes
ONSET = 12 * MINUTE
GROUPS = yaml.safe_load(prometheus_rules())["groups"]
ALERTS = {rule["alert"]: rule for group in GROUPS for rule in group["rules"] if "alert" in rule}

type Values = list[float | None]

DISK = 'instance="head",job="head",mountpoint="/",fstype="ext4"'
GPU = 'DCGM_FI_DEV_GPU_UTIL{cluster="c",pool="gpu",instance="i-1",gpu="0",hpc_job="7"}'
NEURON = 'tidegate_neuron_use_ratio{cluster="c",pool="trn",instance="i-2",device="0",hpc_job="8"}'
WRITTEN = 'tidegate_agent_written_timestamp_seconds{cluster="c"}'
WAIT = 'tidegate_jobs_oldest_wait_seconds{cluster="c",verdict="%s"}'
NODES = 'tidegate_nodes{cluster="c",pool="gpu",capacity_type="spot",state="%s"}'
ORDERS = 'tidegate_agent_orders_total{cluster="c",kind="undrain",outcome="failed"}'
LIMIT = 'tidegate_limit_used_ratio{cluster="c",scope="pool gpu",resource="nodes"}'
SPENT = 'tidegate_spent_usd{cluster="c",scope="cluster",period="day"}'
BOOT_FAILED = 'tidegate_offerings_resting{cluster="c",reason="boot-failed"}'
GPUS = 'tidegate_gpus{cluster="c",state="%s"}'
UP = 'up{cluster="c",job="head",instance="head"}'
AVAIL, SIZE = f'node_filesystem_avail_bytes{{cluster="c",{DISK}}}', "node_filesystem_size_bytes"
REMOTE = 'prometheus_remote_storage_%s{cluster="c",job="prometheus",instance="head"}'
SENT = REMOTE % "queue_highest_sent_timestamp_seconds"
REFUSED = REMOTE % "samples_failed_total"
MEMORY = 'node_memory_MemAvailable_bytes{cluster="c",job="head",instance="head"}'


def steady(value: float) -> Values:
    return [value] * LENGTH


def clock(behind_s: float = 0) -> Values:
    return [max(STEP_S * number - behind_s, 0) for number in range(LENGTH)]


def healthy() -> dict[str, Values]:
    return {
        WRITTEN: clock(),
        'tidegate_agent_slurm_up{cluster="c"}': steady(1),
        'tidegate_digest_age_seconds{cluster="c"}': steady(200),
        'tidegate_verdicts_age_seconds{cluster="c"}': steady(290),
        WAIT % "resting": steady(300),
        WAIT % "limit": steady(90_000),
        WAIT % "starting": steady(200),
        LIMIT: steady(0.5),
        SPENT: steady(50),
        'tidegate_budget_usd{cluster="c",scope="cluster",period="day"}': steady(100),
        NODES % "unhealthy": steady(0),
        NODES % "busy": steady(8),
        'tidegate_nodes_lost{cluster="c"}': steady(0),
        'tidegate_nodes_late{cluster="c"}': steady(0),
        BOOT_FAILED: steady(0),
        'tidegate_offerings_resting{cluster="c",reason="refused"}': steady(3),
        GPUS % "paid": steady(32),
        GPUS % "busy": steady(20),
        GPU: steady(80),
        NEURON: steady(0.8),
        ORDERS: [number / 20 for number in range(LENGTH)],
        UP: steady(1),
        'up{cluster="c",job="gpu",instance="i-1"}': steady(0),
        AVAIL: steady(20e9),
        f'{SIZE}{{cluster="c",{DISK}}}': steady(30e9),
        REMOTE % "highest_timestamp_in_seconds": clock(),
        SENT: clock(behind_s=60),
        REFUSED: steady(3),
        MEMORY: steady(4e9),
        'node_memory_MemTotal_bytes{cluster="c",job="head",instance="head"}': steady(8e9),
    }


def from_onset(values: Values, then: Values) -> Values:
    return [*values[:ONSET], *then[ONSET:]]


@dataclass(frozen=True)
class Case:
    """`changes`: the series from the onset on. `fires`: alert -> minutes after the onset."""

    name: str
    changes: Mapping[str, Values] = field(default_factory=dict)
    fires: Mapping[str, float] = field(default_factory=dict)

    def series(self) -> dict[str, Values]:
        usual = healthy()
        changes = self.changes.items()
        return usual | {key: from_onset(usual.get(key, GONE), then) for key, then in changes}


STOPPED: Values = [float(STEP_S * ONSET)] * LENGTH
GONE: Values = [None] * LENGTH
LOADING: Values = [0.0 if number < ONSET + 30 * MINUTE else 90.0 for number in range(LENGTH)]

FAULTS = [
    Case("the agent is silent", {WRITTEN: STOPPED}, {"TidegateAgentSilent": 5 + 2}),
    Case(
        "nothing of ours is scraped",
        dict.fromkeys((key for key in healthy() if key.startswith("tidegate")), GONE),
        # A series that is gone is seen for five minutes more.
        {"TidegateMetricsMissing": 5 + 10},
    ),
    Case(
        "slurmctld is silent",
        {'tidegate_agent_slurm_up{cluster="c"}': steady(0)},
        {"TidegateSlurmSilent": 5},
    ),
    Case(
        "no digest gets through",
        {'tidegate_digest_age_seconds{cluster="c"}': steady(901)},
        {"TidegateDigestNotSent": 2},
    ),
    Case(
        "the planner is silent",
        {'tidegate_verdicts_age_seconds{cluster="c"}': steady(901)},
        {"TidegateQueueNotJudged": 2},
    ),
    Case(
        "EC2 has no capacity for a job", {WAIT % "resting": steady(481)}, {"TidegateJobsRefused": 1}
    ),
    Case("a pool is near its limit", {LIMIT: steady(0.95)}, {"TidegateNearLimit": 5}),
    Case("a budget is nearly spent", {SPENT: steady(80)}, {"TidegateBudgetNearlySpent": 1}),
    Case("nodes are unhealthy", {NODES % "unhealthy": steady(1)}, {"TidegateNodesUnhealthy": 10}),
    Case(
        "nodes are lost",
        {'tidegate_nodes_lost{cluster="c"}': steady(2)},
        {"TidegateLostCapacity": 15},
    ),
    Case("boots fail", {BOOT_FAILED: steady(1)}, {"TidegateBootsFailing": 1}),
    Case(
        "nodes do not join",
        {'tidegate_nodes_late{cluster="c"}': steady(1)},
        {"TidegateBootsFailing": 1},
    ),
    Case("GPUs have no job", {GPUS % "busy": steady(3)}, {"TidegateGpusUnused": 30}),
    Case("a job leaves its GPUs idle", {GPU: steady(0)}, {"TidegateGpusIdle": 60}),
    Case("a job leaves its Neuron devices idle", {NEURON: steady(0)}, {"TidegateGpusIdle": 60}),
    Case(
        "orders fail",
        {ORDERS: [number - ONSET * 0.95 for number in range(LENGTH)]},
        {"TidegateOrdersFail": 5.5},
    ),
    Case("the head is not scraped", {UP: steady(0)}, {"TidegateHeadNotScraped": 5}),
    Case("the head's disk is full", {AVAIL: steady(1e9)}, {"TidegateHeadDiskFull": 5}),
    Case("nothing reaches the workspace", {SENT: STOPPED}, {"TidegateRemoteWriteBehind": 10 + 5}),
    Case(
        "the workspace refuses samples for good",
        {REFUSED: [3.0 + max(number - ONSET, 0) for number in range(LENGTH)]},
        {"TidegateRemoteWriteBehind": 5.5},
    ),
    Case("the head's memory is short", {MEMORY: steady(1e8)}, {"TidegateHeadMemoryLow": 10}),
]


def once(values: Values, *, other: float) -> Values:
    """One sample of another world."""
    return [other if number == ONSET else value for number, value in enumerate(values)]


# What looks like a fault and is none.
PEACE = [
    Case("all is well"),
    Case("the clock is put forward by an hour", {WRITTEN: once(clock(), other=ONSET * 30 - 3600)}),
    Case("the clock is put back by an hour", {WRITTEN: once(clock(), other=ONSET * 30 + 3600)}),
    Case("the agent is started again and counts from 0", {ORDERS: steady(0)}),
    Case("a job pauses to write a checkpoint", {GPU: once(steady(80), other=0)}),
    Case("a job just began and loads data for half an hour", {GPU.replace("7", "8"): LOADING}),
    Case("no budget and no limit is set", {SPENT: GONE, LIMIT: GONE}),
    Case("the cluster is empty", {GPUS % "paid": steady(0), GPUS % "busy": steady(0)}),
    Case("one scrape is lost", {UP: once(steady(1), other=0)}),
    Case("no node has an exporter of GPUs", {GPU: GONE}),
    Case("a workspace is slow for a while", {SENT: clock(behind_s=400)}),
    Case(
        "nothing is written elsewhere",
        dict.fromkeys((key for key in healthy() if key.startswith("prometheus_remote")), GONE),
    ),
]
# A figure that its dead writer left behind is not believed.
LEFT_BEHIND = Case(
    "the agent died in bad times",
    {WRITTEN: STOPPED, WAIT % "resting": steady(9e3), LIMIT: steady(1), BOOT_FAILED: steady(4)},
    {"TidegateAgentSilent": 7},
)


def fires_at(case: Case, minutes: float, alerts: Iterable[str]) -> dict[str, Any]:
    """What promtool is to find firing so many minutes after the onset."""
    return {
        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": f"{int((ONSET / MINUTE + minutes) * 60)}s",
        "exp_samples": [
            {"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(alerts)
        ],
    }


def unit_test(case: Case) -> dict[str, Any]:
    """None before; the right one within two evaluations of when it may; at peace never one."""
    series = [
        {"series": key, "values": " ".join("_" if v is None else f"{v:g}" for v in values)}
        for key, values in case.series().items()
    ]
    asked = [fires_at(case, minutes, ()) for minutes in (-8, -0.5)]
    for alert, minutes in case.fires.items():
        asked += [fires_at(case, minutes - 1, ()), fires_at(case, minutes + 1, {alert})]
    if not case.fires:
        asked += [fires_at(case, minutes, ()) for minutes in (0.5, 2, 6, 20, 45, 65)]
    return {
        "name": case.name,
        "interval": f"{STEP_S}s",
        "input_series": series,
        "promql_expr_test": asked,
    }


@needs_promtool
@pytest.mark.parametrize("slurm", [False, True])
def test_prometheus_takes_the_configuration(tmp_path: Path, slurm: bool) -> None:
    values = Monitoring("dev", retention_days=30, has_slurm=slurm)
    for name, text in monitoring_files(values).items():
        (tmp_path / name).write_text(text)

    done = subprocess.run(
        ["promtool", "check", "config", tmp_path / "prometheus.yml"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr + done.stdout
    jobs = [
        each["job_name"] for each in yaml.safe_load(prometheus_config(values))["scrape_configs"]
    ]
    of_slurm = ["slurmctld-jobs", "slurmctld-partitions", "slurmctld-scheduler"]
    assert jobs == ["head", "node", "gpu", *(of_slurm if slurm else [])]


@needs_promtool
def test_each_fault_raises_its_alert_and_a_healthy_cluster_none(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(prometheus_rules())
    tests = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": f"{STEP_S}s",
        "tests": [unit_test(case) for case in (*FAULTS, *PEACE, LEFT_BEHIND)],
    }
    (tmp_path / "tests.yml").write_text(json.dumps(tests))

    done = subprocess.run(
        ["promtool", "test", "rules", "tests.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_fault_that_raises_it() -> None:
    assert {alert for case in FAULTS for alert in case.fires} == set(ALERTS)


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_names_cause_and_remedy_in_a_sentence_each(name: str) -> None:
    said = ALERTS[name]["annotations"]

    assert set(said) == {"summary", "remedy"}
    assert all(text.endswith(".") and len(text) < 200 for text in said.values())
    assert ALERTS[name]["labels"]["severity"] in ("info", "warning", "critical")


@pytest.mark.parametrize("name", ALERTS)
def test_what_the_agent_left_behind_raises_nothing(name: str) -> None:
    expr = ALERTS[name]["expr"]
    # Nodes tell of Neuron devices, and take the file away that nobody writes any more.
    of_ours = set(re.findall(r"tidegate[_:](?!neuron_)[a-z_]+", expr))
    is_about_age = of_ours <= {"tidegate_agent_written_timestamp_seconds"}
    is_counted = "increase(" in expr

    assert is_about_age or is_counted or "tidegate:agent_is_fresh == 1" in expr


def test_the_guide_has_every_alert_and_every_metric_with_what_it_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text()

    alerts = set(re.findall(r"^\| `(Tidegate\w+)` \|", page, re.MULTILINE))
    assert alerts == set(ALERTS)
    for each in METRICS.values():
        labels = ", ".join(each.labels)
        assert f"| `{each.name}` | {labels} | {each.help.removesuffix('.')} |" in page


def test_the_name_of_a_cluster_is_no_place_for_configuration() -> None:
    with pytest.raises(ValueError, match="cluster"):
        Monitoring("dev}\n  - evil: {")
