"""What every `Reports` promises: run on the simulated one and on the adapter against moto."""

import gzip
import time
from collections.abc import Callable

import pytest

from local.cloud import LocalCloud
from local.cloud_resources import CloudNames
from tidegate.adapters.reports import S3Reports
from tidegate.core.model.errors import SlurmUnavailable
from tidegate.core.model.idle_use import IdleSpan, IdleUse
from tidegate.core.offers.allocation import Accounted, Run
from tidegate.ports import Reports
from tidegate.sim.clock import SimClock
from tidegate.sim.reports import SimReports

LINE = "7|ada|vision|gpu|COMPLETED|2026-11-16T00:00:00|2026-11-16T00:01:00|Unknown|gres/gpu=2|i-1"
RUN = Run("7", "ada", "vision", "gpu", "train", ("i-1",), 1794787260.0, 1794787300.0, 2.0, 0.0, 0.0)
SPAN = IdleSpan("i-1", 1794787200.0, 1794787260.0, IdleUse.KEPT)
TOLD = "%2026-11-16|i-1|1794787200|1794787260|kept"

type Bench = tuple[Reports, Callable[[str], None]]


@pytest.fixture(params=["sim", "moto"])
def bench(request: pytest.FixtureRequest) -> Bench:
    if request.param == "sim":
        sim = SimReports(SimClock(time.time()))
        return sim, lambda period: sim.hand_in(period, Accounted((RUN,), (SPAN,)))
    cloud: LocalCloud = request.getfixturevalue("cloud")
    real = on_s3(cloud, request.getfixturevalue("names"))
    data = gzip.compress(f"{LINE}|1001|train\n{TOLD}\n".encode())
    return real, lambda period: real.hand_in(period, data)


def on_s3(cloud: LocalCloud, names: CloudNames, region: str = "us-east-1") -> S3Reports:
    return S3Reports(cloud.client("s3"), names.bucket, names.cluster, region)


def test_there_is_nothing_before_the_first_time(bench: Bench) -> None:
    reports, _ = bench

    assert reports.handed_in() == {}
    assert reports.pages() == {}


def test_who_ran_is_what_was_handed_in_last(bench: Bench) -> None:
    reports, hand_in = bench
    hand_in("2026-W47")
    hand_in("2026-W47")

    ((period, at_s),) = reports.handed_in().items()
    assert period == "2026-W47"
    assert abs(at_s - time.time()) < 60
    found = reports.accounted("2026-W47", 1794787300.0)
    (run,) = found.runs
    assert found.idle == (SPAN,)
    assert (run.user, run.nodes, run.ended_at_s, run.gpus) == ("ada", ("i-1",), 1794787300.0, 2.0)


def test_a_page_is_written_once_and_is_noted_as_told(bench: Bench) -> None:
    reports, _ = bench

    assert reports.put("2026-W47", "the first")
    assert not reports.put("2026-W47", "another")
    assert reports.put("2026-W48", "the next")
    reports.note_told("2026-W47")

    assert reports.pages() == {"2026-W47": True, "2026-W48": False}


def test_a_browser_takes_it_for_a_page(cloud: LocalCloud, names: CloudNames) -> None:
    on_s3(cloud, names).put("2026-W47", "<p>Grüße</p>")

    key = f"reports/{names.cluster}/2026-W47.html"
    found = cloud.client("s3").get_object(Bucket=names.bucket, Key=key)
    assert found["ContentType"] == "text/html; charset=utf-8"
    assert found["Body"].read().decode() == "<p>Grüße</p>"


def test_what_is_no_export_is_said(cloud: LocalCloud, names: CloudNames) -> None:
    reports = on_s3(cloud, names)
    reports.hand_in("2026-W47", b"half")

    with pytest.raises(SlurmUnavailable, match="cut off"):
        reports.accounted("2026-W47", 0.0)


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("eu-west-1", "eu-west-1.console.aws.amazon.com"),
        ("cn-north-1", "console.amazonaws.cn"),
        ("us-gov-west-1", "console.amazonaws-us-gov.com"),
    ],
)
def test_people_are_led_to_the_page(
    cloud: LocalCloud, names: CloudNames, region: str, host: str
) -> None:
    where = on_s3(cloud, names, region).where("2026-W47")

    key = f"reports/{names.cluster}/2026-W47.html"
    assert f"s3://{names.bucket}/{key}" in where
    assert f"https://{host}/s3/object/{names.bucket}?region={region}&prefix=reports%2F" in where
