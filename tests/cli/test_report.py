"""`tidegate report`: the figures of a week beside those of the week before, and the page."""

import re
import shutil
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest

from tests.cli.a_week import DAY_S, NOW_S, ODD, idle_of, two_weeks
from tests.cli.conftest import Town
from tests.cli.test_cost_by import bought_node, line
from tests.replay.test_report_browser import browse, pixels
from tidegate.core.explain.drawn import COLOURS
from tidegate.core.explain.figures import Figures, figures
from tidegate.core.explain.report_page import WORDS, as_html
from tidegate.core.model.gpu_use import GpuTime
from tidegate.core.offers.allocation import TimeUse
from tidegate.core.offers.spend import day_of
from tidegate.wire.catalogue import load_catalogue

TYPES = {name: row.instance_type for name, row in load_catalogue().items()}


@pytest.fixture(scope="module")
def weeks() -> tuple[Figures, Figures]:
    """This one, and the one before."""
    bills, runs = two_weeks()
    idle, middle_s = idle_of(bills), NOW_S - 7 * DAY_S
    spans = (middle_s, NOW_S), (NOW_S - 14 * DAY_S, middle_s)
    now, before = (figures(bills, runs, TYPES, *span, idle) for span in spans)
    return now, before


@pytest.fixture(scope="module")
def page(weeks: tuple[Figures, Figures], tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("report") / "week.html"
    found.write_text(as_html("dev", *weeks))
    return found


def test_both_weeks_are_the_bill(weeks: tuple[Figures, Figures]) -> None:
    bills, _ = two_weeks()
    billed = sum((each.until_s - each.since_s) / 3600 * each.usd_per_hour for each in bills)

    now, before = weeks
    assert now.total_usd + before.total_usd == pytest.approx(billed)
    assert all(each.usd[use] > 0 for each in weeks for use in TimeUse)
    assert now.used is not None
    assert 0.1 < now.used < 1


def test_waits_are_those_of_runs_that_began_in_the_span(weeks: tuple[Figures, Figures]) -> None:
    now, _ = weeks
    began = [run for run in two_weeks()[1] if NOW_S - 7 * DAY_S <= run.started_at_s < NOW_S]
    waits = sorted(run.wait_s or 0.0 for run in began)

    whole = now.waits[""]
    assert whole.runs == len(waits) == now.waits["a10g"].runs + now.waits["t4"].runs
    assert whole.mean_s == pytest.approx(sum(waits) / len(waits))
    assert waits[int(0.94 * len(waits))] <= whole.p95_s <= waits[int(0.96 * len(waits))]


def cells(page: str, name: str) -> list[str]:
    """The row that begins with this cell."""
    found = re.search(rf"<tr><td>{re.escape(name)}</td>(.*?)</tr>", page)
    assert found, name
    return re.findall(r"<td>(.*?)</td>", found[1])


def test_the_page_says_what_the_figures_are(weeks: tuple[Figures, Figures], page: Path) -> None:
    text, (now, before) = page.read_text(), weeks

    change = f"{now.total_usd / before.total_usd - 1:+.0%}"
    assert cells(text, "USD") == [f"{now.total_usd:,.2f}", f"{before.total_usd:,.2f}", change]
    (dearest, *_), pools = now.rows("account"), now.rows("pool")
    assert cells(text, dearest.name)[0] == f"{dearest.total_usd:,.2f}"
    for row in pools:
        assert (
            [f"{row.usd.get(use, 0.0):,.2f}" for use in WORDS]
            == re.findall(
                r"<td>([\d,.]+)</td>",
                re.search(
                    rf"<th>drained or sick</th>.*?<td>{row.name}</td>(.*?)</tr>", text, re.DOTALL
                )[1],  # type: ignore[index]
            )[1 : 1 + len(WORDS)]
        )
    assert "6 others" in text


def test_gpus_that_idled_are_told_apart_from_those_that_nobody_saw() -> None:
    bills, runs = two_weeks()
    ada = next(run for run in reversed(runs) if run.user == "ada")
    day = day_of(ada.started_at_s).name
    told = replace(ada, gpu_times=(GpuTime(ada.nodes[0], day, 120.0, 240.0),))
    runs[runs.index(ada)] = told

    now = figures(bills, runs, TYPES, ada.started_at_s, ada.ended_at_s)
    shown = as_html("dev", now, figures([], [], TYPES, 0.0, 1.0))

    assert now.idle_gpu_hours == pytest.approx(1 / 30)
    assert now.seen_gpu_hours == pytest.approx(1 / 15)
    assert cells(shown, "of them idle in jobs")[0] == "0.03"
    owners = {row.name: row for row in now.rows("user")}
    assert owners["ada"].idle_gpu_hours == pytest.approx(1 / 30)
    other = next(name for name in owners if name not in ("", "ada"))
    assert cells(shown, other)[3] == "-"


def test_what_users_name_their_jobs_is_text(weeks: tuple[Figures, Figures], page: Path) -> None:
    assert any(share.run and share.run.name == ODD for each in weeks for share in each.shares)
    dear = Figures(
        weeks[0].since_s,
        weeks[0].until_s,
        tuple(s for each in weeks for s in each.shares if s.run and s.run.name == ODD),
        {},
    )

    shown = as_html("<dev>", dear, weeks[1])
    assert escape(ODD, quote=False) in shown
    for text in (shown, page.read_text()):
        assert "<script" not in text
        assert "http" not in text


def test_every_use_has_a_colour_of_its_own() -> None:
    assert len(set(COLOURS[: len(WORDS)])) == len(WORDS) == len(TimeUse)


def test_what_is_known_to_be_lost_is_told_beside_the_goodput(
    weeks: tuple[Figures, Figures], page: Path
) -> None:
    now, _ = weeks
    lost = sum(each.gpu_hours for each in now.shares if each.use is TimeUse.LOST)
    jobs = sum(each.gpu_hours for each in now.shares if each.use is TimeUse.JOB)

    text = page.read_text()
    assert lost > 0
    assert cells(text, "of them lost with requeued runs")[0] == f"{lost:,.2f}"
    assert cells(text, "GPU goodput, of those paid for")[0] == f"{jobs / now.gpu_hours:.0%}"


def test_a_span_in_which_nothing_was_bought_is_a_page_too() -> None:
    nothing = figures([], [], TYPES, NOW_S - DAY_S, NOW_S)

    shown = as_html("dev", nothing, nothing)
    assert cells(shown, "USD") == ["0.00", "0.00", ""]
    assert cells(shown, "GPU goodput, of those paid for") == ["-", "-", ""]
    assert nothing.used is None


def test_a_browser_draws_it_on_a_desk_and_on_a_phone(page: Path) -> None:
    if shutil.which("chromium") is None:
        pytest.skip("Debian's package chromium is not installed (scripts/setup.sh adds it)")
    for width in (1000, 400):
        picture = page.parent / f"{width}.png"
        shown = browse(page, f"--window-size={width},1200", f"--screenshot={picture}")
        assert "CONSOLE" not in shown.stderr
        _, _, colours = pixels(picture)
        for colour in ("1f6f8b", "7d5ba6"):  # jobs, and what is unused beside them
            assert colours.get(colour, 0) > 100, (width, colour)


def test_the_command_writes_the_page_of_a_living_cluster(counted: Town, tmp_path: Path) -> None:
    node = bought_node(counted)
    (tmp_path / "runs").write_text(line(node.instance_id, node.launched_at_s - 5))
    out = tmp_path / "week.html"

    result = counted.ask("report", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert "USD since 7d" in result.output
    assert len(cells(out.read_text(), "ada")) == 5
    assert counted.ask("report", "--out", "-").output.startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--out", "/nowhere/week.html"), "there is no directory"),
        (("--out", "-", "--since", "soon"), "neither a span like 7d nor a day"),
        ((), "--out"),
    ],
)
def test_what_cannot_be_written_is_refused(counted: Town, words, says) -> None:
    result = counted.ask("report", *words)

    assert result.exit_code in (1, 2)
    assert says in result.output


def test_without_accounting_the_remedy_is_told(town: Town) -> None:
    result = town.ask("report", "--out", "-")

    assert result.exit_code == 1
    assert "add accounting: true to slurm" in result.output
