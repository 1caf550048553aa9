"""Whole replays of small histories, with figures that can be worked out by hand."""

import gzip
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
import yaml
from typer.testing import CliRunner

from tests.wire.cluster_files import BESIDE
from tidegate.cli.main import app
from tidegate.core.model.cluster import Cluster
from tidegate.sim.replay.outcome import as_days
from tidegate.sim.replay.run import POLICIES, replay
from tidegate.sim.replay.state import EPOCH_S
from tidegate.sim.replay.trace import Trace, read_trace
from tidegate.sim.replay.world import RELEASE_S, Setting
from tidegate.wire.config import parse_cluster

HEADER = "job_id,submit_s,duration_s,gpus,nodes,partition\n"
FILE = """
name: lab
region: us-east-1
partitions: {gpu: {pools: [gpu], default: true}}
pools:
  gpu:
    instance_types: [g5.xlarge, g5.12xlarge, g5.48xlarge]
    zones: [us-east-1a]
    capacity_types: [MARKET]
EXTRA
prices_usd_per_hour:
  g5.xlarge: {on-demand: 1.0, spot: 0.4}
  g5.12xlarge: {on-demand: 5.0, spot: 2.0}
  g5.48xlarge: {on-demand: 16.0, spot: 6.0}
"""
EXACT = Setting(error_sigma=0.0, fleet_s=0.0)


def cluster(extra: str = "", market: str = "on-demand", more: str = "") -> Cluster:
    text = FILE.replace("MARKET", market).replace("EXTRA", extra and f"    {extra}")
    return parse_cluster(text + more, "lab").cluster


def trace(*jobs: str) -> Trace:
    """Jobs as `submit_s duration_s gpus nodes`."""
    lines = (f"j{n},{job.replace(' ', ',')},gpu\n" for n, job in enumerate(jobs))
    return read_trace(HEADER + "".join(lines))


def drawn(num_jobs: int) -> str:
    """A workload that has bursts, sizes of all kinds and gangs, from a simple rule."""
    sizes = ("1,1", "1,1", "4,1", "8,1", "2,1", "16,2", "1,1", "24,3")
    rows = (
        f"j{n},{n // 10 * 900 + n % 3},{60 + n * 7919 % 9000},{sizes[n % 8]},gpu\n"
        for n in range(num_jobs)
    )
    return HEADER + "".join(rows)


def test_one_job_waits_for_its_boot_and_pays_until_its_node_has_idled():
    ended = replay(trace("0 3600 1 1"), cluster(), EXACT)

    billed_s = 300 + 3600 + 120 + RELEASE_S
    usd = 1.0 + BESIDE
    assert ended.outcome.cost_usd == pytest.approx(usd * billed_s / 3600, abs=0.01)
    assert ended.outcome.bound_usd == pytest.approx(usd)
    assert 300 <= ended.outcome.waits.max_s <= 305
    assert ended.outcome.by_pool == (("gpu on-demand", ended.outcome.cost_usd),)
    assert ended.outcome.gpu_hours_used == pytest.approx(1.0)
    assert sum(usd for _, usd in as_days(ended.world)) == pytest.approx(ended.outcome.cost_usd)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_no_job_runs_on_devices_of_another_kind(policy: str):
    """Both kinds in one pool: a Neuron device costs less than a GPU, and is no GPU."""
    text = FILE.replace("g5.48xlarge]", "g5.48xlarge, inf2.xlarge, inf2.48xlarge]")
    text = text.replace("MARKET", "on-demand").replace("EXTRA", "")
    prices = "  inf2.xlarge: {on-demand: 0.1}\n  inf2.48xlarge: {on-demand: 1.2}\n"
    of = parse_cluster(text + prices, "lab").cluster
    rows = [f"j{n},{n * 200},{600 + n * 7919 % 900},{1 + n % 2},1,gpu\n" for n in range(24)]
    jobs = read_trace(HEADER + "".join(rows)).jobs
    mixed = [replace(job, gres=("gpu", "neuron")[n % 2]) for n, job in enumerate(jobs)]

    ended = replay(Trace(tuple(mixed)), of, EXACT, policy)

    ran = [(run.job.gres, run.first_on.instance_type) for run in ended.world.runs if run.first_on]
    kinds = {(gres, name.startswith("inf2")) for gres, name in ran}
    assert kinds <= {("gpu", False), ("neuron", True)}
    assert kinds
    if ended.outcome.jobs_ended == len(mixed):  # others buy one type
        on_gpus_usd = sum(job.gpus_total * job.duration_s / 3600 for job in mixed[::2])
        assert on_gpus_usd < ended.outcome.bound_usd <= ended.outcome.cost_usd


def test_the_bound_counts_only_the_gpus_that_a_job_asked_for():
    """Twelve on two nodes: six on each, so that only the largest type holds a share."""
    usd = (16 + BESIDE) / 8
    even = replay(trace("0 3600 12 2"), cluster(), EXACT).outcome
    assert even.bound_usd == pytest.approx(12 * usd)
    odd = replay(trace("0 3600 9 2"), cluster(), EXACT).outcome
    assert odd.bound_usd == pytest.approx(9 * usd)


def test_nodes_boot_as_long_as_their_pool_says_unless_the_replay_does():
    slow = cluster("boot_s: 500")
    own = replay(trace("0 60 1 1"), slow, EXACT).outcome.waits.max_s
    other = replay(trace("0 60 1 1"), slow, Setting(boot_s=90.0)).outcome.waits.max_s

    assert own == pytest.approx(500, abs=5)
    assert other == pytest.approx(90, abs=5)


def test_a_node_that_is_idle_takes_the_next_job_and_goes_only_after_it():
    both = replay(trace("0 600 1 1", "930 600 1 1"), cluster(), EXACT).outcome
    late = replay(trace("0 600 1 1", "2000 600 1 1"), cluster(), EXACT).outcome

    assert (both.launches, late.launches) == (1, 2)
    assert both.waits.p50_s == 0


def test_a_gang_starts_at_once_on_nodes_that_join_behind_its_gate():
    ended = replay(trace("0 600 16 2", "1 600 8 1"), cluster(), EXACT)

    gang = ended.world.runs[0]
    assert ended.outcome.jobs_ended == 2
    assert ended.outcome.launches == 3
    assert 300 <= gang.wait_s <= 310


def test_a_later_job_is_backfilled_only_when_it_ends_in_time():
    """Node for 8: busy until 1000 with 4; the 8-GPU job may have it then."""
    one_node = cluster("limits: {nodes: 1}")
    jobs = ("0 1000 8 1", "400 900 8 1", "401 5000 1 1", "402 700 1 1")
    runs = replay(trace("0 2000 5 1", *jobs[1:]), one_node, EXACT).world.runs

    starts = {run.job.job_id: run.first_started_s for run in runs}
    assert starts["j3"] < starts["j1"] < starts["j2"]


def test_limits_hold_and_what_nothing_can_hold_is_told():
    limited = cluster("limits: {nodes: 2}")
    ended = replay(trace("0 600 1 1", "0 600 1 1", "0 600 1 1", "0 60 9 1"), limited, EXACT)

    outcome = ended.outcome
    assert outcome.most_nodes <= 2
    assert (outcome.jobs_ended, outcome.breaches) == (3, 0)
    ((reason, count),) = outcome.unmet
    assert count == 1
    assert "9" in reason


def test_nodes_over_a_limit_are_seen_in_the_figures():
    asked = trace("0 600 1 1", "0 600 4 1")
    limited = cluster(more="limits: {nodes: 1}\n")
    pool = cluster("limits: {nodes: 1}")

    assert replay(asked, limited, EXACT, "parallelcluster").outcome.breaches == 1
    assert replay(trace("0 600 8 1", "0 600 8 1"), pool, EXACT, "asg").outcome.breaches == 2


@pytest.mark.parametrize("policy", ["parallelcluster", "karpenter"])
@pytest.mark.parametrize("limit", ["nodes: 1", "gpus: 4"])
def test_other_autoscalers_keep_the_limits_of_pools_that_they_know(policy: str, limit: str):
    """MaxCount of a queue, `spec.limits` of a NodePool: the second job waits for the first."""
    ended = replay(
        trace("0 600 4 1", "0 600 4 1"), cluster(f"limits: {{{limit}}}"), EXACT, policy
    ).outcome

    assert ended.breaches == 0
    assert (ended.most_nodes, ended.jobs) == (1, 2)


def test_no_node_waits_for_the_rest_of_a_job_that_maxcount_has_no_room_for():
    pool = cluster("limits: {nodes: 2}")
    ended = replay(trace("0 600 4 1", "0 600 4 2"), pool, EXACT, "parallelcluster")

    first_s, second_s = sorted(each.launched_s for each in ended.world.gone)
    assert ended.outcome.jobs_ended == 2
    assert second_s - first_s >= 600


def test_an_interruption_costs_the_work_since_the_last_checkpoint():
    spot = "hazards_per_hour: {g5.xlarge: 0.1, g5.12xlarge: 0.1, g5.48xlarge: 0.1}\n"
    jobs = trace(*(f"{n * 600} 7200 1 1" for n in range(60)))
    lost = replay(jobs, cluster(market="spot", more=spot), EXACT).outcome
    saved = replay(jobs, cluster("checkpoint_s: 600", "spot", spot), EXACT).outcome

    assert lost.jobs_ended == saved.jobs_ended == 60
    assert saved.interruptions > 5
    assert 0 < saved.gpu_hours_lost <= saved.interruptions * 600 / 3600
    assert saved.gpu_hours_lost < lost.gpu_hours_lost
    assert saved.gpu_hours_used == pytest.approx(120 + saved.gpu_hours_lost)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_runs_every_job(policy):
    outcome = replay(read_trace(drawn(200)), cluster(), Setting(), policy).outcome

    assert (outcome.jobs_ended, outcome.unmet) == (200, ())
    assert outcome.multiple >= 1
    assert outcome.gpu_hours_used >= sum(
        job.duration_s * job.gpus_total / 3600 for job in read_trace(drawn(200)).jobs
    ) * (1 - 1e-9)


def test_the_models_idle_as_long_as_their_documents_say():
    """One job; what is paid after it tells how long its node was kept."""
    after_s = {}
    for policy in ("tidegate", "karpenter", "parallelcluster"):
        ended = replay(trace("0 3600 1 1"), cluster(), EXACT, policy)
        (machine,) = ended.world.gone
        assert machine.ended_s is not None
        after_s[policy] = machine.ended_s - ended.world.runs[0].ended_s

    assert after_s["tidegate"] == pytest.approx(120 + RELEASE_S, abs=3)
    assert after_s["karpenter"] == pytest.approx(60 + RELEASE_S, abs=31)
    assert after_s["parallelcluster"] == pytest.approx(600 + RELEASE_S, abs=3)


def test_static_fleets_are_the_peak_and_the_95_percentile():
    busy = trace(*["0 100 8 1"] * 4, *(f"{100 * n} 100 8 1" for n in range(1, 100)))

    assert replay(busy, cluster(), EXACT, "static-peak").outcome.most_nodes == 4
    assert replay(busy, cluster(), EXACT, "static-p95").outcome.most_nodes == 1


def run_command(tmp_path, *arguments: str, hash_seed: str = "0") -> tuple[bytes, bytes]:
    (tmp_path / "lab.yaml").write_text(FILE.replace("MARKET", "on-demand").replace("EXTRA", ""))
    (tmp_path / "jobs.csv").write_text(drawn(60))
    json_file = tmp_path / f"{hash_seed}.json"
    command = ["-m", "tidegate.cli.main", "replay", str(tmp_path / "jobs.csv")]
    options = ["--cluster", str(tmp_path / "lab.yaml"), "--figures", str(json_file), *arguments]
    done = subprocess.run(
        [sys.executable, *command, *options],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
    )
    return done.stdout, json_file.read_bytes()


def test_the_command_says_the_same_to_the_byte_in_every_process(tmp_path):
    both = ("--policy", "tidegate", "--policy", "karpenter")
    first = run_command(tmp_path, *both, hash_seed="1")
    again = run_command(tmp_path, *both, hash_seed="2")
    other = run_command(tmp_path, *both, "--seed", "5", hash_seed="3")

    assert first == again
    assert first != other
    told = json.loads(first[1])
    assert [each["policy"] for each in told] == ["tidegate", "karpenter"]
    assert f"{told[0]['cost_usd']:,.2f}" in first[0].decode()
    assert " %)" in first[0].decode()


def test_the_command_tells_programs_what_its_file_of_figures_has(tmp_path):
    told, figures = run_command(tmp_path, "-o", "yaml")

    assert yaml.safe_load(told) == json.loads(figures)


def test_the_command_names_what_it_cannot_read(tmp_path):
    (tmp_path / "lab.yaml").write_text(FILE.replace("MARKET", "on-demand").replace("EXTRA", ""))
    history = tmp_path / "jobs.csv"
    history.write_text(f"{drawn(3)}broken\n")
    command = ["replay", str(history), "--cluster", str(tmp_path / "lab.yaml")]
    refused = CliRunner().invoke(app, command)
    lenient = CliRunner().invoke(app, [*command, "--lenient"])
    strange = CliRunner().invoke(app, [*command, "--lenient", "--policy", "magic"])

    assert refused.exit_code == 1
    assert f"{history}: line 5: 1 fields instead of 6" in refused.output
    assert lenient.exit_code == 0
    assert "1 broken line skipped" in lenient.output
    assert strange.exit_code == 2


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.csv", None, "there is no such file"),
        ("jobs.csv", b"job_id\n\xff", "not UTF-8 text (line 2)"),
        ("jobs.csv.gz", b"plain", "not a whole gzip file: "),
        ("jobs.csv.gz", gzip.compress(b"x" * 99, mtime=0)[:-9], "not a whole gzip file: "),
        (
            "jobs.csv.gz",
            gzip.compress(b"x" * 99, mtime=0)[:10] + b"\xff" * 9,
            "not a whole gzip file: ",
        ),
    ],
)
def test_a_history_that_cannot_be_read_is_one_sentence(tmp_path, name, content, said):
    (tmp_path / "lab.yaml").write_text(FILE.replace("MARKET", "on-demand").replace("EXTRA", ""))
    history = tmp_path / name
    if content is not None:
        history.write_bytes(content)

    told = CliRunner().invoke(app, ["replay", str(history), "--cluster", f"{tmp_path}/lab.yaml"])

    assert told.exit_code == 1
    assert told.output.startswith(f"{history}: {said}")
    assert len(told.output.splitlines()) == 1


@pytest.mark.parametrize("option", ["--figures", "--report"])
@pytest.mark.parametrize("place", ["none/figures", "."])
def test_what_cannot_be_written_is_told_before_anything_is_played(tmp_path, option, place):
    told = CliRunner().invoke(
        app, ["replay", "none.csv", "--cluster", "none.yaml", option, str(tmp_path / place)]
    )

    assert told.exit_code == 2
    assert "directory" in told.output
    assert ("mkdir -p" in told.output) is (place != ".")
    assert "none.yaml" not in told.output


def test_a_gate_that_fails_ends_the_command_with_3(tmp_path):
    (tmp_path / "lab.yaml").write_text(FILE.replace("MARKET", "on-demand").replace("EXTRA", ""))
    (tmp_path / "jobs.csv").write_text(drawn(10))
    command = ["replay", str(tmp_path / "jobs.csv"), "--cluster", str(tmp_path / "lab.yaml")]
    failed = CliRunner().invoke(app, [*command, "--fail-if", "multiple_of_bound > 1"])
    passed = CliRunner().invoke(app, [*command, "--fail-if", "multiple_of_bound < 1"])
    strange = CliRunner().invoke(app, [*command, "--fail-if", "cost"])

    assert [failed.exit_code, passed.exit_code, strange.exit_code] == [3, 0, 1]
    assert "multiple_of_bound > 1" in failed.output


def test_a_budget_that_is_spent_lets_jobs_wait_for_the_next_day():
    asked = trace("0 3600 1 1", "7200 600 1 1")
    limited = cluster(more="budget: {usd_per_day: 0.5}\n")

    ended = replay(asked, limited, EXACT)
    model = replay(asked, limited, EXACT, "parallelcluster")

    first, second = ended.world.runs
    assert first.wait_s < 400
    assert 86400 < second.first_started_s - EPOCH_S < 86400 + 600
    assert (ended.outcome.jobs_ended, ended.outcome.breaches) == (2, 0)
    assert model.outcome.breaches == 1


@pytest.mark.parametrize("whose", ["account", "user"])
@pytest.mark.parametrize(("second", "is_late"), [("ann", True), ("bob", False)])
def test_a_budget_of_an_account_or_a_user_binds_nobody_else(whose, second, is_late):
    jobs = f"job_id,submit_s,duration_s,gpus,nodes,partition,{whose}\n"
    jobs += f"first,0,3600,1,1,gpu,ann\nsecond,7200,600,1,1,gpu,{second}\n"
    limited = cluster(more=f"budget_by_{whose}: {{ann: {{usd_per_day: 0.5}}}}\n")

    ended = replay(read_trace(jobs), limited, EXACT)

    assert (ended.world.runs[1].wait_s > 3600) is is_late
    assert (ended.outcome.jobs_ended, ended.outcome.breaches) == (2, 0)
