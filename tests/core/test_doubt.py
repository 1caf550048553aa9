"""Launches of which nobody knows yet whether EC2 was asked for them."""

from dataclasses import replace

from tests.core.reading import launches
from tests.make import NOW_S, cluster, job, placement, snapshot
from tidegate.core.model.ledger import LaunchRecord
from tidegate.core.model.plan import Resume
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request


def test_a_launch_that_another_planner_is_about_to_finish_is_left_to_it_for_as_long() -> None:
    found = launches(plan(snapshot([job()])))[0]
    request = fleet_request(found, "test", placement(cluster()))
    taken = LaunchRecord(found, NOW_S - 600, request, taken_at_s=NOW_S - 40)
    left = replace(taken, taken_at_s=NOW_S - 60)

    assert plan(snapshot([job()], launches=[taken])).actions == ()
    assert [type(a) for a in plan(snapshot([job()], launches=[left])).actions] == [Resume]
