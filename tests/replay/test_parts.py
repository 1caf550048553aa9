"""Histories whose jobs asked for parts of GPUs: MIG instances, shards, mps."""

import pytest
from typer.testing import CliRunner

from tests.replay.test_replay import EXACT
from tests.wire.cluster_files import BESIDE
from tidegate.cli.main import app
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.errors import BadConfig
from tidegate.sim.replay.frontier import frontier
from tidegate.sim.replay.outcome import PARTS
from tidegate.sim.replay.run import Replayed, replay
from tidegate.sim.replay.trace import BadTrace, Trace, read_trace
from tidegate.wire.config import parse_cluster

FILE = """
name: lab
region: us-east-1
image: ami-0123456789abcdef0
slurm: {version: "24.11"}
partitions: {gpu: {pools: [gpu], default: true}}
pools:
  gpu:
    instance_types: [TYPE]
    zones: [us-east-1a]
    capacity_types: [on-demand]
    gpu: {CUT}
prices_usd_per_hour: {TYPE: {on-demand: 8.0}}
"""
MIXED = "mig_profiles: [1g.5gb, 2g.10gb, 3g.20gb]"
COLUMNS = "job_id,submit_s,duration_s,gpus,nodes,partition,gpu_type,gres"
LARGE, SMALL = "1 1 gpu a100_3g.20gb gpu", "1 1 gpu a100_1g.5gb gpu"
# Of a type with one GPU, of which a job leaves nothing for other profiles.
ONE = ("mig_profiles: [1g.10gb, 2g.20gb, 3g.40gb]", "p5.4xlarge")
LARGE_OF_ONE, SMALL_OF_ONE = "1 1 gpu 3g.40gb gpu", "1 1 gpu 1g.10gb gpu"


def cluster(cut: str = MIXED, of: str = "p4d.24xlarge", more: str = "") -> Cluster:
    text = FILE.replace("TYPE", of).replace("CUT", cut)
    return parse_cluster(text + more, "lab").cluster


def trace(*jobs: str) -> Trace:
    """Jobs as `submit_s duration_s gpus nodes partition gpu_type gres`, `-` for nothing."""
    rows = (
        f"j{n},{job.replace(' ', ',').replace('-', '').replace('_.', '-')}"
        for n, job in enumerate(jobs)
    )
    return read_trace("\n".join((COLUMNS, *rows)))


def played(*jobs: str, on: Cluster | None = None) -> Replayed:
    return replay(trace(*jobs), on or cluster(), EXACT)


def starts(ended: Replayed) -> list[float]:
    first_s = ended.world.runs[0].ready_s
    return [run.first_started_s - first_s for run in ended.world.runs]


def test_a_node_is_cut_for_those_that_wait_and_their_parts_are_counted():
    ended = played(*(f"0 3600 {LARGE}",) * 4, *(f"0 3600 {SMALL}",) * 9)
    outcome = ended.outcome

    (node,) = ended.world.gone
    assert node.layout == "4=1g.5gb:4/3g.20gb:1 2=3g.20gb:2 1=1g.5gb:1/2g.10gb:3 1=1g.5gb:7"
    assert outcome.jobs_ended == 13
    # Eight GPUs are paid for, of which four halves and nine eighths are used.
    hours = (300 + 3600 + 120 + 5) / 3600
    assert outcome.gpu_hours_billed == pytest.approx(8 * hours, rel=0.01)
    assert outcome.gpu_hours_used == pytest.approx(4 / 2 + 9 / 8)
    assert outcome.bound_usd == pytest.approx((8.0 + BESIDE) / 8 * (4 / 2 + 9 / 8))
    assert outcome.idle_share == pytest.approx(1 - (2 + 9 / 8) / outcome.gpu_hours_billed)
    assert [(label, each.jobs) for label, each in outcome.waits_by_size] == [(PARTS, 13)]


def test_instances_of_another_profile_are_of_no_use_to_a_job():
    """The first node has small ones alone: who asks for a large one waits for a boot."""
    small, large = SMALL_OF_ONE, LARGE_OF_ONE
    ended = played(f"0 7200 {small}", f"1000 600 {small}", f"1000 600 {large}", on=cluster(*ONE))

    first_s, small_s, large_s = starts(ended)
    assert small_s == 1000
    assert first_s == pytest.approx(300, abs=10)
    assert large_s == pytest.approx(1300, abs=10)
    assert [node.layout for node in ended.world.gone] == ["1=3g.40gb:2", "1=1g.10gb:7"]


def test_what_is_paid_for_and_cut_otherwise_goes_when_it_has_idled():
    block = """
reservations:
  - {id: cr-0123456789abcdef0, kind: capacity-block, instance_type: p5.4xlarge, zone: us-east-1a,
     count: 1, starts_at: "2023-11-13T00:00:00Z", ends_at: "2023-11-15T00:00:00Z"}
"""
    text = FILE.replace("TYPE", ONE[1]).replace("CUT", ONE[0])
    prepaid = parse_cluster(text.replace("[on-demand]", "[capacity-block]") + block, "lab").cluster

    ended = played(f"0 600 {SMALL_OF_ONE}", f"2000 600 {LARGE_OF_ONE}", on=prepaid)

    assert ended.outcome.jobs_ended == 2
    assert [node.layout for node in ended.world.gone] == ["1=1g.10gb:7", "1=3g.40gb:2"]
    assert starts(ended)[1] > 2000 + 300


def test_an_instance_is_backfilled_only_if_nobody_who_waits_before_is_put_off():
    """Of fifteen large ones thirteen are in use until 1300, and then all are waited for."""
    large = "1 gpu a100_3g.20gb gpu"
    ended = played(
        f"0 1000 13 {large}", f"0 900 {SMALL}", f"0 900 {SMALL}",
        f"500 600 15 {large}", f"600 9000 1 {large}", f"600 400 1 {large}", f"600 9000 {SMALL}",
        on=cluster(more="limits: {nodes: 1}\n"),
    )  # fmt: skip

    (node,) = ended.world.gone
    assert node.layout == "7=3g.20gb:2 1=1g.5gb:4/3g.20gb:1"
    assert starts(ended)[3:] == pytest.approx([1300, 1900, 600, 600], abs=10)


def test_a_gpu_of_which_a_shard_is_in_use_is_given_to_nobody_whole():
    shared = cluster("shards_per_gpu: 4", "g6.12xlarge", "limits: {nodes: 1}\n")
    shard = "3 1 gpu - shard"
    ended = played(
        f"0 3600 {shard}", f"0 1800 {shard}", "0 3600 2 1 gpu l4 gpu", "1 60 1 1 gpu l4 gpu",
        f"2 60 {shard}", "2 60 1 1 gpu - shard", on=shared,
    )  # fmt: skip

    first = starts(ended)
    assert [each < 400 for each in first] == [True, True, True, False, False, True]
    # The GPU of the second is free again after half an hour.
    assert first[3:5] == pytest.approx([300 + 1800, 300 + 1800 + 60], abs=90)
    used = 3 / 4 + 3 / 4 / 2 + 2 + (1 + 3 / 4 + 1 / 4) / 60
    assert ended.outcome.gpu_hours_used == pytest.approx(used)


def test_of_gpus_that_are_cut_alike_whole_ones_are_paid_for():
    ended = played(*(f"0 3600 {SMALL}",) * 14, on=cluster("mig: 1g.5gb"))

    assert ended.outcome.launches == 1
    assert ended.outcome.gpu_hours_billed == pytest.approx(8 * 4025 / 3600, rel=0.01)
    assert ended.outcome.gpu_hours_used == pytest.approx(14 / 8)


@pytest.mark.parametrize("said", ["1g.5gb", "a100_1g.5gb", "nvidia_a100_sxm4_40gb_1g.5gb"])
@pytest.mark.parametrize("cut", [MIXED, "mig: 1g.5gb"])
def test_other_clusters_call_the_same_instances_by_other_names(cut, said):
    assert played(f"0 60 1 1 gpu {said} gpu", on=cluster(cut)).outcome.jobs_ended == 1


WHERE = "no pool of partition gpu can hold it: "
CUT_AS_ASKED = (
    "the GPUs of p4d.24xlarge are cut as jobs ask (MIG), which must name one of"
    " a100_1g.5gb, a100_2g.10gb, a100_3g.20gb"
)
L4 = ("shards_per_gpu: 4", "g6.12xlarge")


@pytest.mark.parametrize(
    ("asked", "on", "why"),
    [
        (
            "1g.10gb gpu", (MIXED, "p4d.24xlarge"),
            f"{CUT_AS_ASKED}: no pool has 1g.10gb; name it in a pool's gpu.mig_profiles"
            " (validate refuses what its GPUs do not have)",
        ),
        (
            "h100_1g.5gb gpu", (MIXED, "p4d.24xlarge"),
            f"{CUT_AS_ASKED}: no pool has 1g.5gb; name it in a pool's gpu.mig_profiles"
            " (validate refuses what its GPUs do not have)",
        ),
        (
            "- gpu", (MIXED, "p4d.24xlarge"),
            f"{CUT_AS_ASKED}: the history has no types: name them in the column gpu_type, or the"
            " likes of gres/gpu:a100_1g.5gb in AccountingStorageTRES for the next one",
        ),
        (
            "- mps", L4,
            "the GPUs of g6.12xlarge are not shared in mps of any type: set gpu.mps_per_gpu of a"
            " pool",
        ),
        ("l40s shard", L4, "the GPUs of g6.12xlarge are not shared in shards of l40s"),
    ],
)  # fmt: skip
def test_parts_that_no_pool_has_are_named_with_what_would_help(asked, on, why):
    assert played(f"0 60 1 1 gpu {asked}", on=cluster(*on)).outcome.unmet == ((WHERE + why, 1),)


def test_more_shards_than_a_gpu_has_never_run():
    outcome = played("0 60 5 1 gpu - shard", on=cluster(*L4)).outcome

    why = f"{WHERE}a GPU of g6.12xlarge has 4 shards, the job asks 5 of one GPU"
    assert outcome.unmet == ((why, 1),)


@pytest.mark.parametrize("on", [(MIXED, "p4d.24xlarge"), L4])
def test_others_are_not_modelled_with_parts_of_gpus(on):
    with pytest.raises(BadConfig, match="karpenter is modelled with whole GPUs, and pool gpu of"):
        replay(trace(f"0 60 {SMALL}"), cluster(*on), EXACT, "karpenter")

    points = frontier(trace(f"0 60 {SMALL}"), cluster(*on), EXACT, lambda *_: None, workers=1)
    assert {point.outcome.policy for point in points} == {"tidegate"}


def test_a_column_of_no_gres_is_a_broken_line():
    with pytest.raises(BadTrace, match="line 2: gres must be gpu, neuron, shard or mps, is 'tpu'"):
        trace("0 60 1 1 gpu - tpu")


SACCT = "JobID|Submit|Start|End|State|Partition|NNodes|ReqTRES"
AT = "2026-01-01T08:00:00|2026-01-01T08:00:00|2026-01-01T09:00:00|COMPLETED|gpu|1"


@pytest.mark.parametrize(
    ("tres", "reason"),
    [
        ("gres/gpu=1,gres/shard=2", "devices in two ways at once, as whole and shared GPUs"),
        (
            "gres/gpu=3,gres/gpu:3g.40gb=2,gres/gpu:4g.40gb=1",
            "MIG instances of several types for one job",
        ),
    ],
)
def test_what_cannot_be_replayed_is_left_out_and_counted(tres, reason):
    rows = (f"{n}|{AT}|cpu=1,mem=1G,node=1,{each}" for n, each in enumerate((tres, "gres/mps=5")))

    found = read_trace("\n".join((SACCT, *rows)))

    assert [(job.gres, job.gpus) for job in found.jobs] == [("mps", 5)]
    assert found.skipped == ((reason, 1),)


def test_the_command_replays_a_history_of_sacct_on_gpus_that_are_cut(tmp_path):
    history, file = tmp_path / "history.txt", tmp_path / "lab.yaml"
    tres = "billing=1,cpu=1,gres/gpu:a100_1g.5gb=1,gres/gpu=1,mem=1G,node=1"
    history.write_text(f"{SACCT}\n7|{AT}|{tres}\n")
    file.write_text(FILE.replace("TYPE", "p4d.24xlarge").replace("CUT", MIXED))

    said = CliRunner().invoke(app, ["replay", str(history), "--cluster", str(file)])

    assert said.exit_code == 0, said.output
    assert "waits of parts of GPUs, s" in said.output
