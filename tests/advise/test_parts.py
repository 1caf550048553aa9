"""A part of a GPU is advised where it would do, played at its slowest, with what it keeps apart."""

from dataclasses import replace
from functools import cache

import pytest

from bench.sacct_history import DAY_S, ran, text, tres
from tests.advise.test_classes import GIB, job, runs, used
from tidegate.cli.advice_table import table
from tidegate.cli.advised import lines
from tidegate.sim.advise.classes import Asks, Proposal, Silent, key_of, proposal
from tidegate.sim.advise.fitting import parts_for
from tidegate.sim.advise.parts import Part
from tidegate.sim.advise.proof import Advised, Studied
from tidegate.sim.advise.usage import Used, read_usage
from tidegate.sim.replay.trace import read_trace
from tidegate.sim.replay.world import Setting
from tidegate.wire.config import parse_cluster

CLUSTER = """
name: lab
region: us-east-1
image: ami-0123456789abcdef0
slurm: {version: "24.11"}
partitions: {gpu: {pools: [whole, parts], default: true}}
pools:
  whole: {instance_types: [TYPE], zones: [us-east-1a], capacity_types: [on-demand]}
  parts:
    {instance_types: [PARTS], zones: [us-east-1a], capacity_types: [on-demand], gpu: {CUT}}
prices_usd_per_hour:
  {p5.4xlarge: {on-demand: 4.0}, p5.48xlarge: {on-demand: 32.0}, g6.xlarge: {on-demand: 0.8},
   g6.12xlarge: {on-demand: 4.6}}
"""
MIG = "mig_profiles: [1g.10gb, 2g.20gb, 3g.40gb]"


@cache
def fleet(cut=MIG, of="p5.48xlarge", parts="p5.4xlarge"):
    said = CLUSTER.replace("TYPE", of).replace("PARTS", parts).replace("CUT", cut)
    return parse_cluster(said, "lab").cluster


def history(did=0.04, held_gib=3.0, *, limit="04:00:00", later=None, gib=8, cpus=2):
    """Four jobs of an hour at the same time, twice a day; `later`: what the second half does."""
    rows = []
    for number in range(80):
        is_late = later is not None and number >= 40
        rows += ran(
            str(1 + number),
            number // 4 * DAY_S / 2,
            gpus=1,
            cpus=cpus,
            memory_gib=gib,
            limit=limit,
            used=tres(
                memory_gib=0.9 * gib,
                cpus=0.9 * cpus,
                gpus=later if is_late else did,
                gpu_gib=held_gib,
            ),
        )
    return rows


def advised(rows, of=None) -> Advised:
    told = text(rows)
    trace = read_trace(told)
    studied = read_usage(told, trace, sums_gpus=True)
    setting = Setting(boot_s=30.0, heartbeat_s=3600.0)
    return Studied(studied, trace, of or fleet(), setting).advised()


@cache
def usual():
    return advised(history())


def test_who_uses_little_of_a_gpu_is_told_which_instance_would_do():
    (one,) = usual().advice

    assert one.proposal.options == "--gres=gpu:h100_1g.10gb:1"
    assert [each.code for each in one.proposal.findings] == [Asks.PART]
    # A node of eight for an hour, or a small one as long as it may take: 5 % of the time, at an
    # eighth of the speed.
    assert one.proposal.lasts == pytest.approx(0.95 + 8 * 0.05)
    idle_s = 30 + 127
    before, after = 8 * (3600 + idle_s), 3600 * one.proposal.lasts + idle_s
    assert one.saving.share == pytest.approx(1 - after / before, abs=0.01)
    assert "the GPU keeps apart from others'" in " ".join(lines(usual()))


def test_of_shards_it_is_said_that_nothing_keeps_them_apart():
    (one,) = advised(
        history(gib=3, cpus=1), fleet("shards_per_gpu: 4", "g6.12xlarge", "g6.xlarge")
    ).advice

    assert one.proposal.options == "--gres=shard:l4:1"
    assert "nothing keeps its memory or faults apart" in one.proposal.findings[0].sentence


@pytest.mark.parametrize(
    ("did", "held_gib", "request_"),
    [
        (0.04, 3.0, "gpu:h100_1g.10gb:1"),
        (0.04, 9.0, "gpu:h100_2g.20gb:1"),  # a quarter more does not go into 9.5 GiB
        (0.12, 3.0, "gpu:h100_2g.20gb:1"),  # nor into an eighth of its memory's speed
        (0.30, 3.0, "gpu:h100_3g.40gb:1"),
    ],
)
def test_the_part_holds_what_was_used_at_most_and_a_margin(did, held_gib, request_):
    found = asked(did, held_gib)

    assert isinstance(found, Proposal)
    assert found.part is not None
    assert found.part.request == request_


def asked(did, held_gib, of=None, limit_s=24 * 3600.0):
    one = {"gpus": 1, "gpus_total": 1, "cpus": 4, "memory_mib": 24 * GIB, "time_limit_s": limit_s}
    members = runs(use=used(gpus=did, gpu_gib=held_gib), **one)
    parts = parts_for(members[0].job, of or fleet())
    return proposal(key_of(members[0]), members, 0, 80 * GIB, parts=parts)


@pytest.mark.parametrize(("did", "held_gib"), [(0.4, 3.0), (0.04, 35.0)])
def test_who_needs_more_than_the_largest_part_keeps_a_whole_gpu(did, held_gib):
    found = asked(did, held_gib)

    assert isinstance(found, Proposal)
    assert found.part is None


def test_a_part_on_which_a_run_could_meet_its_time_limit_is_not_advised():
    """Eight times as slow for a twentieth of the time: 1.35 hours."""
    kept = asked(0.04, 3.0, limit_s=1.30 * 3600)
    long = asked(0.04, 3.0, limit_s=1.36 * 3600)

    assert isinstance(long, Proposal)
    assert long.part is not None
    assert long.part.gpu_type == "h100_1g.10gb"
    assert not isinstance(kept, Proposal) or kept.part is None or kept.part.share > 1 / 8


def test_a_part_of_another_gpu_is_not_advised():
    assert parts_for(job(gpus=1, gpus_total=1, cpus=4, memory_mib=GIB), fleet()) != ()
    other = fleet(MIG, "g6.12xlarge")
    assert parts_for(job(gpus=1, gpus_total=1, cpus=2, memory_mib=GIB), other) == ()


@pytest.mark.parametrize("gpus", [0, 2])
def test_only_who_has_one_gpu_is_offered_a_part_of_it(gpus):
    assert parts_for(job(gpus=gpus, gpus_total=gpus, cpus=4, memory_mib=GIB), fleet()) == ()


def test_where_nobody_has_that_gpu_in_parts_this_is_said():
    found = advised(
        history(limit="01:20:00"), fleet("compute_mode: default", "p5.48xlarge", "p5.48xlarge")
    )

    assert found.silent == ((Silent.NO_PARTS, 1, 80),)


def test_what_jobs_with_parts_use_is_not_taken_for_whole_gpus():
    tres_ = "cpu=2,gres/shard=3,mem=8G,node=1"
    rows = [
        each.replace("gres/gpu=1", "gres/shard=3").replace("cpu=2,mem", tres_[:5] + ",mem")
        for each in history()
    ]
    told = text(rows)
    trace = read_trace(told)

    assert {(each.gres, each.gpus) for each in trace.jobs} == {("shard", 3)}
    assert {each.used.gpus for each in read_usage(told, trace, sums_gpus=True)} == {None}


def test_a_later_run_that_used_more_does_not_fit():
    part = Part("gpu", "h100_1g.10gb", 1, 1 / 8, 9000.0, 0.5, is_apart=True)
    found = asked(0.04, 3.0)
    assert isinstance(found, Proposal)
    one = replace(found, part=part)
    (run,) = runs(count=1, use=used(gpus=0.04, gpu_gib=3.0))

    assert one.holds(run)
    for more in (Used(gpus=0.2), Used(gpu_memory_mib=9001.0)):
        assert not one.holds(replace(run, used=more))
    assert not one.holds(replace(run, job=replace(run.job, duration_s=20 * 3600.0)))


def test_a_second_half_that_does_more_teaches_that_nothing_is_saved():
    found = advised(history(later=0.9))

    assert found.advice == ()


def test_no_job_follows_by_itself_to_a_part_of_a_gpu():
    made = table(usual().advice, (), (), starts_at_s=None, now_s=0.0, max_age_days=60)

    assert made.rows == ()
