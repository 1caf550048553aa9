"""How far boots have come, in `tidegate nodes`."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tests.core.test_idle_check import RUNS, world
from tidegate.cli.nodes import MAX_ASKED, with_stages
from tidegate.cli.nodes import screen as nodes_screen
from tidegate.cli.status_screen import screen as status_screen
from tidegate.core.explain.node_report import NodeReport
from tidegate.core.explain.overview import overview
from tidegate.core.model.errors import NotAuthorized
from tidegate.core.model.snapshot import Snapshot
from tidegate.wire.console import last_stage

SAID = """\
[    4.1] tidegate 2026-11-21T19:38:03.100Z stage identity apply 0.041 s, try 1
tidegate 2026-11-21T19:38:04.100Z stage munge apply 0.4 s, try 1
"""


def report_of(name: str, stage: str = "booting") -> NodeReport:
    return NodeReport(name, "t4", "g4dn.xlarge/us-east-1a/spot", stage, 30, 0.01, (), "", "")


@pytest.mark.parametrize(
    ("console", "stage"),
    [
        (SAID, "munge done"),
        (SAID + "tidegate 2026-11-21T19:38:05.1Z stage gpu failed (exit 9): x", "gpu failed"),
        ("tidegate stage bundle failed: x", "bundle failed"),
        (SAID + "tidegate 2026-11-21T19:38:05.1Z stage gp", "munge done"),
        ("[ 4.2] EXT4-fs mounted", ""),
        ("", ""),
    ],
)
def test_the_last_stage_is_that_of_the_newest_line(console, stage):
    assert last_stage(console) == stage


def test_a_node_that_boots_shows_how_far_it_has_come():
    found = with_stages([report_of("i-1"), report_of("i-2", "IDLE")], {"i-1": SAID}.__getitem__)

    assert [each.stage for each in found] == ["booting, munge done", "IDLE"]


def test_who_may_not_read_consoles_is_told_the_rest_and_asks_once():
    asked = []

    def refuse(name: str) -> str:
        asked.append(name)
        raise NotAuthorized("no ec2:GetConsoleOutput")

    assert [each.stage for each in with_stages([report_of("i-1"), report_of("i-2")], refuse)] == [
        "booting",
        "booting",
    ]
    assert asked == ["i-1"]


def test_not_more_nodes_are_asked_than_a_look_may_cost():
    found = list(with_stages([report_of(f"i-{n}") for n in range(MAX_ASKED + 2)], lambda _: SAID))

    assert [each.stage for each in found].count("booting") == 2


def shown(what: object, width: int = 240) -> str:
    console = Console(width=width, file=StringIO())
    console.print(what)
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue()


@pytest.mark.parametrize("width", [None, 30])
def test_when_each_node_was_checked_is_shown_where_there_is_a_check(width):
    plain = report_of("i-1")
    tested = replace(plain, checked="2.0 h ago")

    assert "2.0 h ago" in shown(nodes_screen([tested, plain], width))
    assert "checked" not in shown(nodes_screen([plain], width))


def status_of(seen: Snapshot) -> object:
    return status_screen(overview(seen, None), is_wrapped=False)


def test_status_shows_the_gpu_hours_of_the_checks():
    said = "checks of idle nodes: 0.25 of 1 GPU-hours today; 1 of 1 nodes are due, now on i-1"
    assert said in shown(status_of(world(state=RUNS)))
    assert "checks of idle" not in shown(status_of(world(check=None)))


def test_status_shows_stopped_nodes_and_what_their_disks_cost():
    found = overview(world(check=None), None)
    (of, *others) = found.pools
    stood = replace(found, pools=(replace(of, stopped=2, stopped_usd_per_hour=0.022), *others))

    said = f"stopped in pool {of.name}, to be started again: 2 nodes, disks 0.022 USD/h"
    assert said in shown(status_screen(stood, is_wrapped=False))
    assert "stopped in pool" not in shown(status_screen(found, is_wrapped=False))
