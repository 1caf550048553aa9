"""What a class of jobs could ask: never less than was seen, nothing of what is not known."""

from dataclasses import replace

import pytest

from bench.sacct_history import DAY_S
from tidegate.sim.advise.classes import (
    Asks,
    Proposal,
    Silent,
    classes,
    floors,
    key_of,
    proposal,
    stem,
)
from tidegate.sim.advise.usage import Ran, Used
from tidegate.sim.replay.trace import TraceJob

GIB = 1024
T4_MIB = 16384


def job(number=0, **changes):
    made = TraceJob(
        job_id=str(number),
        submit_s=number * DAY_S / 6,
        duration_s=3600.0,
        nodes=1,
        gpus=8,
        gpus_total=8,
        partition="gpu",
        cpus=32,
        memory_mib=128 * GIB,
        time_limit_s=24 * 3600.0,
    )
    return replace(made, **changes)


def used(memory_gib=20.0, cpus=4.0, gpus=1.5, gpu_gib=10.0):
    return Used(memory_gib * GIB, cpus, gpus, gpu_gib * GIB)


def runs(count=24, use=None, user="ada", name="train-1", state="COMPLETED", **changes):
    shown = use or used()
    return [Ran(job(n, **changes), user, name, state, shown) for n in range(count)]


def proposed(members, floor_mib=0, gpu_memory_mib=T4_MIB, margin=0.25):
    return proposal(key_of(members[0]), members, floor_mib, gpu_memory_mib, margin)


def asks(found):
    assert isinstance(found, Proposal)
    return {each.code for each in found.findings}


def test_what_was_used_at_most_and_a_margin_is_what_is_asked():
    found = proposed(runs())

    assert (found.gpus, found.cpus, found.memory_mib) == (2, 5, 25 * GIB)
    assert found.time_limit_s == 4500
    assert found.options == "--gres=gpu:2 --mem=25G --time=1:15:00"
    assert asks(found) == set(Asks) - {Asks.PART}
    said = " ".join(each.sentence for each in found.findings)
    assert "asks 8 GPUs" in said
    assert "in 24 runs: 2 would do" in said


def test_one_run_that_used_more_counts_also_if_it_failed():
    members = runs()
    members[3] = replace(members[3], used=used(memory_gib=90, gpus=6.1), state="FAILED")
    members[4] = replace(members[4], state="CANCELLED", job=job(4, duration_s=50_000))

    found = proposed(members)

    assert (found.gpus, found.memory_mib) == (8, 128 * GIB)
    assert found.time_limit_s == 62_700
    assert asks(found) == {Asks.CPUS, Asks.TIME}


def test_memory_that_a_run_had_and_ran_out_of_is_never_advised():
    # The class asked 40 GiB once and ran out of it, whatever was seen since.
    few = runs(3, state="OUT_OF_MEMORY", memory_mib=40 * GIB)
    low = floors([*few, *runs()])

    found = proposed(runs(), low[key_of(runs(1)[0]).family])

    assert low == {("ada", "train-#", "gpu"): 40 * GIB}
    assert found.memory_mib == 50 * GIB
    assert Asks.MEMORY not in asks(proposed(runs(), 128 * GIB))


def test_a_class_that_met_its_time_limit_keeps_it():
    members = runs()
    members[3] = replace(members[3], state="TIMEOUT")

    assert Asks.TIME not in asks(proposed(members))


def test_a_limit_that_slurm_has_not_is_not_advised_on():
    assert Asks.TIME not in asks(proposed(runs(time_limit_s=None)))


@pytest.mark.parametrize(
    ("members", "why"),
    [
        (runs(19), Silent.FEW_RUNS),
        (runs(24, submit_s=0.0), Silent.FEW_RUNS),
        (runs(24, duration_s=30.0), Silent.FEW_RUNS),
        (runs(24, duration_s=0.0), Silent.FEW_RUNS),
        (runs(24, state="FAILED"), Silent.FEW_RUNS),
        (runs(24, user=""), Silent.NOBODY),
        (runs(24, use=Used(), time_limit_s=4000.0), Silent.NO_USAGE),
        (runs(24, use=used(120, 31, 7.8, 110), time_limit_s=4000.0), Silent.FITS),
    ],
)
def test_of_what_is_not_known_nothing_is_said(members, why):
    assert proposed(members) is why


def test_a_size_that_is_known_of_too_few_runs_stays():
    members = runs(24)
    blind = [replace(run, used=replace(run.used, gpus=None)) for run in members[:5]]

    assert proposed([*blind, *members[5:]]).gpus == 8


def test_gpu_memory_has_to_fit_into_fewer_gpus():
    assert proposed(runs(use=used(gpus=0.5, gpu_gib=60))).gpus == 5
    assert proposed(runs(use=used(gpus=0.5, gpu_gib=60)), gpu_memory_mib=0).gpus == 8


def test_jobs_that_never_used_their_gpu_need_none():
    found = proposed(runs(gpus=1, gpus_total=1, use=used(gpus=0.0, gpu_gib=0)))

    assert found.gpus == 0
    assert found.options.startswith("--gres=none")


def test_of_several_nodes_only_the_time_is_advised_on():
    assert asks(proposed(runs(nodes=2))) == {Asks.TIME}


def test_jobs_that_ask_otherwise_are_another_class_and_numbers_make_none():
    found = classes([*runs(2), *runs(1, cpus=16), *runs(1, name="train-2")])

    assert sorted(map(len, found.values())) == [1, 3]
    assert stem("exp_2026-03-01_lr0.1") == stem("exp_2025-11-30_lr0.03") == "exp_#-#-#_lr#.#"


def test_a_changed_job_keeps_a_limit_that_is_shorter_than_the_advice():
    found = proposed(runs())

    assert found.change(job(time_limit_s=600.0)).time_limit_s == 600
    assert found.change(job()).gpus_total == 2


@pytest.mark.parametrize(
    ("run", "fits"),
    [
        (runs(1)[0], True),
        (runs(1, use=Used())[0], True),
        (runs(1, use=used(memory_gib=26))[0], False),
        (runs(1, use=used(gpus=2.1))[0], False),
        (runs(1, use=used(cpus=5.5))[0], False),
        (runs(1, duration_s=4501.0)[0], False),
        (runs(1, state="OUT_OF_MEMORY")[0], False),
    ],
)
def test_a_later_run_that_needs_more_than_was_advised_is_seen(run, fits):
    assert proposed(runs()).holds(run) is fits


def test_gpus_that_never_did_anything_are_not_asked_for_and_nothing_is_added():
    members = runs(use=replace(used(gpus=None, gpu_gib=0), gpus_touched=2, gpu_memory_mib=None))
    members[3] = replace(members[3], used=replace(members[3].used, gpus_touched=3))

    found = proposed(members)

    assert isinstance(found, Proposal)
    assert found.gpus == 3
    assert (
        "asks 8 GPUs, used at most 3 of them in 24 runs: 3 would do" in found.findings[0].sentence
    )
    assert "--gres=gpu:3" in found.options
    assert found.holds(members[0])
    beyond = replace(members[0], used=replace(members[0].used, gpus_touched=4))
    assert not found.holds(beyond)


def test_what_slurm_saw_beside_it_counts_where_it_is_more():
    members = runs(use=replace(used(gpus=3.5), gpus_touched=2))
    assert proposed(members).gpus == 4
    busy = runs(use=replace(used(gpus=1.0), gpus_touched=8))
    assert Asks.GPUS not in asks(proposed(busy))


def test_no_gpu_at_all():
    found = proposed(runs(use=replace(used(gpus=None), gpus_touched=0)))
    assert (found.gpus, "--gres=none" in found.options) == (0, True)
