"""Advice is replayed before it is said, and a half that was not learnt from tells how it holds."""

from functools import cache

import pytest

from bench.sacct_history import DAY_S, MONDAY_S, ran, text, tres
from tidegate.cli.advice_table import table
from tidegate.sim.advise.classes import ClassKey, Proposal, Silent
from tidegate.sim.advise.fitting import on_its_gpus
from tidegate.sim.advise.moved import MOVED_S, moved
from tidegate.sim.advise.proof import PLAYS, Studied
from tidegate.sim.advise.saving import (
    NORMAL_95,
    SPREAD_OF_ONE,
    Work,
    foretold,
    mean_saving,
    saving_of,
)
from tidegate.sim.advise.usage import parted, read_usage
from tidegate.sim.replay.trace import read_trace
from tidegate.sim.replay.world import Setting
from tidegate.wire.config import parse_cluster

SMALL, LARGE, OTHER = "g5.xlarge", "g5.8xlarge", "g4dn.xlarge"

CLUSTER = """
name: bench
region: us-east-1
partitions: {{gpu: {{pools: [gpu], default: true}}}}
pools:
  gpu: {{instance_types: [{}], zones: [us-east-1a], capacity_types: [on-demand]}}
prices_usd_per_hour:
  g5.xlarge: {{on-demand: 1.00}}
  g5.8xlarge: {{on-demand: 2.50}}
  g4dn.xlarge: {{on-demand: 0.50}}
  inf2.xlarge: {{on-demand: 0.80}}
  inf2.24xlarge: {{on-demand: 6.50}}
"""


@cache
def fleet(*types):
    return parse_cluster(CLUSTER.format(", ".join(types)), "bench").cluster


def history(days=10, *, used_gib=5.0, later_gib=None, asked_gib=64.0, user="ada", first=1):
    """Four jobs of an hour a day, far apart; `later_gib`: what those of the second half use."""
    rows = []
    for number in range(4 * days):
        is_late = later_gib is not None and number >= 2 * days
        memory = later_gib if is_late else used_gib
        rows += ran(
            str(first + number),
            number * DAY_S / 4,
            cpus=4,
            memory_gib=asked_gib,
            limit="01:20:00",
            user=user,
            used=tres(memory_gib=memory, cpus=3.0),
        )
    return rows


@cache
def usual():
    return advised(history())


def advised(rows, of=None, **options):
    lines = text(rows)
    trace = read_trace(lines)
    runs = read_usage(lines, trace, sums_gpus=True)
    setting = Setting(boot_s=30.0, heartbeat_s=3600.0)
    return Studied(runs, trace, of or fleet(SMALL, LARGE), setting, **options).advised()


def test_memory_that_nobody_used_brought_jobs_to_a_dearer_type():
    found = usual()

    (one,) = found.advice
    # 40 jobs of an hour, a boot and two minutes idle: at 2.50 USD an hour, or at 1.00.
    assert found.usd == pytest.approx(40 * 2.5 * (3600 + 30 + 127) / 3600, rel=0.01)
    assert one.saving.usd == pytest.approx(0.6 * found.usd, rel=0.01)
    assert one.saving.low_usd <= one.saving.usd <= one.saving.high_usd
    assert one.types == (LARGE, SMALL)
    assert one.proposal.options == "--mem=7G"
    assert found.together == one.saving


def test_what_the_first_half_foretells_is_what_the_second_one_saves():
    held_out = usual().held_out

    assert held_out.predicted.usd == pytest.approx(held_out.replayed_usd, rel=0.01)
    assert abs(held_out.error) < 0.01
    assert (held_out.first_days, held_out.second_days, held_out.misfits) == (5, 5, 0)


def test_what_the_second_half_does_not_bear_out_is_not_said():
    # 5 GiB teach 7, which the later jobs of 11 do not fit; all days together would teach 14.
    found = advised(history(later_gib=11.0))

    assert found.held_out.misfits == 20
    assert found.held_out.replayed_usd < 0
    assert (found.advice, found.together) == ((), None)
    assert "saved nothing in the second one" in found.unknown


def test_jobs_that_would_have_been_ended_are_paid_twice_in_the_check():
    # Of 20 later jobs five need 12 GiB: more than the 7 that the first half teaches.
    grown = history()
    for number in range(25, 30):
        place = 2 * number
        grown[place : place + 2] = ran(
            str(1 + number),
            number * DAY_S / 4,
            cpus=4,
            memory_gib=64,
            limit="01:20:00",
            used=tres(memory_gib=11.0, cpus=3.0),
        )

    held_out = advised(grown).held_out

    assert held_out.misfits == 5
    # 15 save 1.50 USD an hour, 5 cost another hour at 2.50.
    assert held_out.replayed_usd == pytest.approx(15 * 1.5 * 1.044 - 5 * 2.5, rel=0.02)
    assert held_out.error > 0.5


def test_less_that_saves_nothing_is_not_said():
    found = advised(history(), fleet(LARGE))

    assert found.advice == ()
    assert found.together is None
    assert found.silent == ((Silent.UNCERTAIN, 1, 40),)


def test_a_class_that_the_first_half_does_not_know_is_not_said_yet():
    late = history(user="bo", first=100)[40:]

    found = advised([*history(), *late])

    assert [one.proposal.key.user for one in found.advice] == ["ada"]
    assert (Silent.UNPROVED, 1, 20) in found.silent


def test_a_history_of_few_days_says_nothing():
    found = advised(history(4) + history(4, user="bo", first=100))

    assert found.advice == ()
    assert "from 6 on" in found.unknown


def offered(*types, memory_gib=7):
    key = ClassKey("ada", "train", "gpu", 1, 1, "", 4, 64 * 1024, "")
    less = Proposal(key, 20, 5, 1, "", 4, memory_gib * 1024, None, ())
    return on_its_gpus(less, fleet(*types))


def test_a_smaller_request_stays_on_the_gpus_that_it_had():
    # 64 GiB fit an A10G alone; 7 GiB would fit the cheaper, slower T4 too.
    assert offered(SMALL, LARGE, OTHER).gpu_type == "a10g"
    assert offered(SMALL, LARGE, OTHER).options == "--gres=gpu:a10g:1"
    assert offered(SMALL, LARGE).gpu_type == ""
    assert offered(LARGE, "g4dn.8xlarge", "g6.xlarge") is Silent.OTHER_GPUS
    assert offered(LARGE, "g4dn.8xlarge", SMALL).gpu_type == ""


def test_only_the_dearest_are_played_and_the_others_are_counted():
    few = history(5, user="bo", first=100, asked_gib=20)
    both = [*history(), *few]

    found = advised(both, most=1)

    assert [one.proposal.key.user for one in found.advice] == ["ada"]
    assert (Silent.CHEAP, 1, 20) in found.silent


def neuron_history(days=10):
    """Four jobs of an hour a day with six Neuron devices, of which each uses one, as nodes tell."""
    rows = []
    for number in range(4 * days):
        began_s = number * DAY_S / 4
        rows += ran(str(number + 1), began_s, cpus=2, gpus=6, memory_gib=6, used=tres(memory_gib=5))
        told = f"{number + 1}|i-0123456789abcdef0|{MONDAY_S + began_s:.0f}|18000|21600|6|8"
        rows.append(f"%2026-03-02|{told}")
    return [each.replace("gres/gpu=", "gres/neuron=") for each in rows]


def test_neuron_devices_that_nobody_used_brought_jobs_to_a_dearer_type():
    plain, told = parted(text(neuron_history()))
    trace = read_trace(plain)
    runs = read_usage(plain, trace, sums_gpus=True, gpus_told=told)
    of = fleet(OTHER, "inf2.xlarge", "inf2.24xlarge")
    setting = Setting(boot_s=30.0, heartbeat_s=3600.0)

    found = Studied(runs, trace, of, setting).advised()

    (one,) = found.advice
    assert one.types == ("inf2.24xlarge", "inf2.xlarge"), "on no GPU, whatever it costs"
    assert one.proposal.options.startswith("--gres=neuron:1")
    assert "asks 6 neuron devices, used at most 1 of them" in one.proposal.findings[0].sentence
    assert one.saving.usd == pytest.approx(found.usd * (6.5 - 0.8) / 6.5, rel=0.01)
    assert trace.jobs[0].gpus == 6
    made = table(
        found.advice, (), runs, starts_at_s=MONDAY_S, now_s=MONDAY_S + 11 * DAY_S, max_age_days=60
    )
    assert made.rows == (), "what slurmctld runs at a submission would not know it"


def test_a_saving_that_hangs_on_one_day_is_not_sure():
    steady = dict.fromkeys(range(14), 10.0)

    lucky = saving_of(steady, {**steady, 3: 1.0, 5: 14.0})

    assert lucky.usd == pytest.approx(5.0)
    assert not lucky.is_sure
    assert saving_of(steady, dict.fromkeys(steady, 9.0)).is_sure
    assert saving_of({}, {}).usd == 0


def test_of_several_plays_the_mean_counts_and_days_of_all_are_drawn():
    one = dict.fromkeys(range(7), 10.0)

    found = mean_saving([(one, dict.fromkeys(one, 8.0)), (one, dict.fromkeys(one, 6.0))])

    assert found.usd == pytest.approx(21.0)
    assert found.share == pytest.approx(0.3)
    # As many days as one play has, each of which saves 2 or 4.
    assert 14.0 <= found.low_usd < 21.0 < found.high_usd <= 28.0
    alone = mean_saving([(one, dict.fromkeys(one, 8.0))])
    assert (alone.low_usd, alone.high_usd) == pytest.approx((14.0, 14.0))


def test_each_half_is_played_as_it_was_and_with_jobs_that_come_a_little_sooner_or_later():
    held_out = usual().held_out

    assert len(held_out.replays_usd) == PLAYS
    assert held_out.replayed_usd == pytest.approx(sum(held_out.replays_usd) / PLAYS)


def test_what_is_moved_are_the_same_jobs_within_a_minute_in_their_new_order():
    lines = text(history())
    runs = read_usage(lines, read_trace(lines), sums_gpus=True)
    was = {run.job.job_id: run.job.submit_s for run in runs}

    again = moved(runs, 1)

    by_s = [run.job.submit_s - was[run.job.job_id] for run in again]
    assert was.keys() == {run.job.job_id for run in again}
    assert 0 < max(map(abs, by_s)) <= MOVED_S
    assert [run.job.submit_s for run in again] == sorted(run.job.submit_s for run in again)
    assert moved(runs, 0) == list(runs)
    assert moved(runs, 1) == again != moved(runs, 2)


STEADY = [(dict.fromkeys(range(7), 100.0), dict.fromkeys(range(7), 90.0))]


def test_what_a_sure_half_saved_is_foretold_for_as_much_work_as_the_other_has():
    found = foretold(STEADY, Work(taught=50.0, hidden=100.0, jobs=100), cost_usd=2000.0)

    # Every day saved 10: 70 of work worth 50, and so 140 of work worth 100.
    assert found.usd == pytest.approx(140.0)
    assert found.share == pytest.approx(0.07)
    assert found.high_usd - found.low_usd == pytest.approx(2 * NORMAL_95 * SPREAD_OF_ONE * 10.0)


def test_what_few_jobs_save_is_less_sure():
    many, few = (foretold(STEADY, Work(50.0, 100.0, jobs), cost_usd=2000.0) for jobs in (100, 25))

    assert few.high_usd - few.low_usd == pytest.approx(2 * (many.high_usd - many.low_usd))


def test_what_an_unsure_half_saved_is_drawn_towards_what_nodes_cost_that_nobody_shares():
    lucky = dict.fromkeys(range(7), 100.0) | {3: 30.0}

    found = foretold(
        [(STEADY[0][0], lucky)], Work(taught=50.0, hidden=100.0, jobs=100), cost_usd=2000.0
    )

    # It says 140 by one day of seven.
    assert 100.0 < found.usd < 110.0


def test_where_nodes_alone_would_save_nothing_costs_are_the_measure():
    found = foretold(STEADY, Work(taught=0.0, hidden=0.0, jobs=100), cost_usd=350.0)

    assert found.usd == pytest.approx(35.0)
    assert (found.low_usd, found.high_usd) == pytest.approx((35.0, 35.0))
