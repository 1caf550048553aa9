"""What people read of stopped nodes, and what they are billed."""

from dataclasses import replace

import pytest

from tests.core.test_stopped_nodes import DISK_USD, keeping, shown, stopped
from tests.make import NOW_S, T4, snapshot
from tidegate.core.explain.lost import gpus, lost_nodes
from tidegate.core.explain.node_report import node_reports
from tidegate.core.offers.allocation import TimeUse, allocated
from tidegate.core.offers.spend import bill, spent


def test_a_stopped_node_is_listed_with_what_its_disk_has_cost() -> None:
    seen = snapshot(of=keeping(), records=[stopped(ago_s=3600.0)], instances=[shown()])

    (report,) = node_reports(seen)

    assert (report.stage, report.age_s, report.usd) == ("stopped", 3600.0, DISK_USD)
    assert report.ends.startswith("started when a job comes for its type; ends at ")


def test_a_stopped_node_is_neither_lost_nor_a_gpu_that_is_paid_for() -> None:
    seen = snapshot(of=keeping(), records=[stopped()], instances=[shown()])

    assert lost_nodes(seen) == ()
    assert gpus(seen).configured == 0


def test_budgets_count_its_disk() -> None:
    known = replace(stopped(ago_s=3600.0), priced_at_s=NOW_S - 3600.0)

    found = spent(snapshot(of=keeping(), records=[known], instances=[shown()]))

    assert {round(usd, 6) for usd in found.values()} == {DISK_USD}


def test_its_disk_is_billed_without_gpu_hours_and_as_nobody_s() -> None:
    known = replace(stopped(ago_s=3600.0), priced_at_s=NOW_S - 3600.0)
    line = bill(known, NOW_S)
    assert line is not None
    assert line.is_stopped

    shares = list(allocated([line], [], {T4.name: T4}, NOW_S - 7200, NOW_S))

    assert {(each.use, each.run, each.gpu_hours) for each in shares} == {(TimeUse.KEPT, None, 0.0)}
    assert sum(each.usd for each in shares) == pytest.approx(DISK_USD)
