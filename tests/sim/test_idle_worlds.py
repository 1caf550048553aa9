"""Drawn worlds of idle GPUs: there are some, jobs end in them by the rule, and a check sees it."""

from collections import Counter
from dataclasses import replace

import pytest

from tidegate.core.model.gpu_use import IdleAction
from tidegate.sim.draw import draw
from tidegate.sim.options import Windows, WorldOptions
from tidegate.sim.story import Story

# Whose jobs are cancelled for their GPUs.
SEED = 98


def drawn(seed: int) -> WorldOptions:
    options = draw(seed)
    assert options.cluster.idle_gpus
    return options


def commands(options: WorldOptions) -> tuple[Counter[str], str]:
    """What Slurm was told, and which check broke."""
    story, seen = Story(options), Counter[str]()
    story.world.slurm.on_command.append(lambda verb, names: seen.update([verb]))
    ended = story.play()
    return seen, ended.broken.check if ended.broken else ""


def test_some_worlds_have_a_rule_and_jobs_that_last_long_enough() -> None:
    found = [options for seed in range(300) if (options := draw(seed)).cluster.idle_gpus]

    assert 8 <= len(found) <= 30
    rules = {
        options.cluster.idle_gpus.rule.action for options in found if options.cluster.idle_gpus
    }
    assert rules == set(IdleAction)
    assert any(each.submit.duration_s > 1500 for each in found[0].arrivals)


def test_a_day_of_such_a_world_is_long_enough_for_its_jobs() -> None:
    """A stop that requeues them would have them begin anew for ever."""
    found = [options for seed in range(1600, 1700) if (options := draw(seed)).cluster.idle_gpus]
    days = [(o.calendar, o.arrivals) for o in found if isinstance(o.calendar, Windows)]

    assert days
    for calendar, arrivals in days:
        longest_s = max(each.submit.duration_s for each in arrivals)
        assert longest_s > 1500
        assert calendar.up_s > longest_s + 600


def test_a_job_that_idles_is_told_and_then_cancelled() -> None:
    seen, broken = commands(drawn(SEED))

    assert not broken
    assert seen["tell"] >= seen["scancel"] >= 1


@pytest.mark.parametrize(("after_s", "warning_s"), [(3000.0, 0.0), (0.0, 3000.0)])
def test_one_that_ends_sooner_than_the_rule_says_is_seen(after_s: float, warning_s: float) -> None:
    """The planner has one rule, the check believes another."""
    options = drawn(SEED)
    policy = options.cluster.idle_gpus
    assert policy
    story = Story(options)
    rule = replace(policy.rule, after_s=after_s, warning_s=warning_s)
    stricter = replace(policy, rule=rule)
    story.world.cluster = replace(options.cluster, idle_gpus=stricter)

    ended = story.play()
    assert ended.broken
    assert ended.broken.check == "IdleJobsEndByTheRule"
