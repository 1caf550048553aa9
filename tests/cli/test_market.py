"""`market`: a history at the prices of other regions, from files and from AWS."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from local.cloud import LocalCloud
from tests.replay.test_replay import FILE
from tidegate.cli.main import app
from tidegate.cli.market.elsewhere import moved
from tidegate.cli.market.told import Told
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.errors import NotAuthorized, Throttled
from tidegate.core.model.market import Quote
from tidegate.wire.config import parse_cluster

HISTORY = (
    "job_id,submit_s,duration_s,gpus,nodes,partition\nj0,0,36000,4,1,gpu\nj1,0,36000,1,1,gpu\n"
)
AWAY = "eu-west-1"


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A cluster on spot and on demand, and files of a region that has no g5.48xlarge."""
    text = FILE.replace("MARKET", "spot, on-demand").replace("EXTRA", "")
    (tmp_path / "lab.yaml").write_text(text)
    (tmp_path / "jobs.csv").write_text(HISTORY)
    away = tmp_path / "prices" / AWAY
    away.mkdir(parents=True)
    (away / "on_demand.csv").write_text(
        "instance_type,usd_per_hour\ng5.xlarge,1.2\ng5.12xlarge,6\n"
    )
    (away / "spot_prices.csv").write_text(
        "instance_type,zone,spot\ng5.xlarge,eu-west-1b,0.2\ng5.12xlarge,eu-west-1b,1.0\n"
    )
    (away / "hazards.csv").write_text(
        "instance_type,zone,hazard_per_hour\ng5.xlarge,*,0\ng5.12xlarge,*,0\n"
    )
    own = tmp_path / "prices" / "us-east-1"
    own.mkdir()
    (own / "hazards.csv").write_text((away / "hazards.csv").read_text())
    (tmp_path / "prices" / "data_transfer.csv").write_text(
        f"from,to,usd_per_gb\nus-east-1,{AWAY},0.02\n"
    )
    return tmp_path


def ask(lab: Path, *words: str, regions: str = AWAY, obj: Any = None) -> Result:
    given = ["market", str(lab / "jobs.csv"), "--cluster", str(lab / "lab.yaml")]
    return CliRunner().invoke(app, [*given, "--regions", regions, *words], obj=obj)


def from_files(lab: Path, *words: str, regions: str = AWAY) -> Any:
    done = ask(lab, "--market", str(lab / "prices"), "-o", "json", *words, regions=regions)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["regions"]


def test_the_same_jobs_cost_what_the_prices_there_say(lab: Path) -> None:
    own, away = from_files(lab, "--data-gb", "500")

    assert own["is_own"]
    assert away["zones"] == [["gpu", ["eu-west-1b"]]]
    assert away["unsold"] == ["g5.48xlarge"]
    # Spot at 0.2 + 1.0 instead of 0.4 + 2.0, and a disk of about 0.01.
    assert away["played"]["usd"] / own["played"]["usd"] == pytest.approx(0.5, abs=0.02)
    assert own["played"]["jobs_ended"] == away["played"]["jobs_ended"] == 2
    assert (away["usd_per_gb"], away["move_usd"]) == (0.02, 10.0)


def test_what_a_zone_does_not_sell_is_not_bought_there() -> None:
    """Neither spot without a price, nor a type in a zone that lacks it."""
    of = parse_cluster(
        FILE.replace("MARKET", "spot, on-demand").replace("EXTRA", ""), "lab"
    ).cluster
    zones = {"g5.xlarge": frozenset({"eu-west-1b"}), "g5.12xlarge": frozenset({"eu-west-1b"})}
    told = Told(AWAY, {"g5.xlarge": 1.2, "g5.12xlarge": 6.0}, zones=zones)
    told.spot = (Quote("g5.xlarge", 0.2, "eu-west-1b"),)

    there = moved(of, told, {("g5.xlarge", Market.SPOT): 0.01})

    no_spot = Offering("g5.12xlarge", "eu-west-1b", Market.SPOT)
    assert {offering: steps.at(0.0) for offering, steps in there.absent.items()} == {no_spot: 0.0}
    assert there.cluster.prices[replace(no_spot, instance_type="g5.xlarge")] == 0.21
    less = moved(replace(of, discount=0.1), told, {("g5.xlarge", Market.SPOT): 0.01})
    assert less.cluster.prices[replace(no_spot, instance_type="g5.xlarge")] == 0.19


def test_it_is_told_in_sentences(lab: Path) -> None:
    done = ask(lab, "--market", str(lab / "prices"), "--data-gb", "500")

    told = " ".join(done.output.split())
    assert "us-east-1 (US East (N. Virginia)):" in told
    assert f"{AWAY} (Europe (Ireland)):" in told
    assert "x of its own region" in told
    assert "moving 500 GB there once costs 10.00 USD (0.02 USD per GB)" in told
    assert "not sold there: g5.48xlarge" in told
    assert "a cluster is in one region" in told


def test_what_is_paid_for_in_advance_stays_where_it_is(lab: Path) -> None:
    file = lab / "lab.yaml"
    text = file.read_text().replace("[spot, on-demand]", "[reserved]")
    file.write_text(
        f"{text}\nreservations: [{{id: cr-0a1b2c3d, kind: reserved, instance_type: g5.12xlarge,"
        ' zone: us-east-1a, count: 2, starts_at: "2020-01-01T00:00:00Z"}]\n'
    )

    own, away = from_files(lab)

    assert own["played"]["usd"] < 1, "its disks at most"
    assert away["played"]["usd"] > 70, "bought on demand"
    assert away["not_possible"] == [
        "pool gpu: what is reserved is paid for in the own region alone"
    ]


def test_a_region_of_which_nothing_is_known_is_not_played(lab: Path) -> None:
    _, away, far = from_files(lab, regions=f"{AWAY},ap-south-1")

    assert away["played"]
    assert far["played"] is None
    assert "on_demand.csv is not there" in far["not_possible"][0]
    (lab / "prices" / AWAY / "on_demand.csv").write_text(
        "instance_type,usd_per_hour\np5.48xlarge,9"
    )
    _, none = from_files(lab)
    assert none["not_possible"] == [f"no instance type of the cluster is sold in {AWAY}"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("on_demand.csv", "instance_type,usd\ng5.xlarge,1", "the columns usd_per_hour are missing"),
        (
            "on_demand.csv",
            "instance_type,usd_per_hour\ng5.xlarge,dear",
            "must be a number of at least 0, is dear",
        ),
        ("on_demand.csv", "instance_type,usd_per_hour\ng5.xlarge", "line 2: must have 2 fields"),
        ("spot_price_history.json", "[", "spot_price_history.json"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_with_its_place(
    lab: Path, name: str, text: str, words: str
) -> None:
    (lab / "prices" / AWAY / name).write_text(text)

    done = ask(lab, "--market", str(lab / "prices"))

    assert done.exit_code == 1
    assert words in " ".join(done.output.split())


@pytest.mark.parametrize("regions", ["", " , ", "eu-west-9"])
def test_regions_that_cannot_be_meant_are_refused(lab: Path, regions: str) -> None:
    assert ask(lab, regions=regions).exit_code == 2


class World:
    """AWS as the local cloud has it, in every region, and what that lacks.

    `closed`: regions that are not enabled; `trouble`: what a region's EC2 says instead.
    """

    def __init__(self, cloud: LocalCloud) -> None:
        self.cloud, self.closed, self.asked = cloud, set[str](), list[tuple[str, str]]()
        self.trouble: dict[str, Exception] = {}
        self.quotas, self.zones = 8.0, {"g5.xlarge": "b", "g5.12xlarge": "b"}
        self.transfer = [
            '{"terms": {"OnDemand": {"a": {"priceDimensions": {"b": {"unit": "GB", '
            '"pricePerUnit": {"USD": "0.02"}}}}}}}'
        ]

    def __call__(self, service: str, region: str) -> Any:
        self.asked.append((service, region))
        return Client(self, service, region)


class Client:
    """One service in one region."""

    def __init__(self, world: World, service: str, region: str) -> None:
        self.world, self.service, self.region = world, service, region

    def describe_regions(self, *, AllRegions: bool) -> Any:  # noqa: N803
        assert AllRegions
        names = ("us-east-1", AWAY, "me-south-1")
        states = dict.fromkeys(self.world.closed, "not-opted-in")
        found = [{"RegionName": n, "OptInStatus": states.get(n, "opted-in")} for n in names]
        return {"Regions": found}

    def get_products(self, *, ServiceCode: str, Filters: Any) -> Any:  # noqa: N803
        if ServiceCode == "AWSDataTransfer":
            asked = {each["Field"]: each["Value"] for each in Filters}
            assert asked == {
                "transferType": "InterRegion Outbound",
                "fromRegionCode": "us-east-1",
                "toRegionCode": AWAY,
            }
            return {"PriceList": self.world.transfer}
        pricing = self.world.cloud.client("pricing")
        return pricing.get_products(ServiceCode=ServiceCode, Filters=Filters)

    def get_paginator(self, operation: str) -> "Pages":
        return Pages(self, operation)


class Pages:
    def __init__(self, of: Client, operation: str) -> None:
        self.of, self.operation = of, operation

    def paginate(self, **_: Any) -> Iterator[Any]:
        world, region = self.of.world, self.of.region
        if region in world.trouble and self.of.service == "ec2":
            raise world.trouble[region]
        if self.operation == "describe_instance_type_offerings":
            pairs = world.zones.items()
            found = [{"InstanceType": n, "Location": f"{region}{z}"} for n, z in pairs]
            yield {"InstanceTypeOfferings": found}
        elif self.operation == "describe_spot_price_history":
            yield {"SpotPriceHistory": []}
        else:
            yield {
                "Quotas": [
                    {"QuotaName": "Running On-Demand G and VT instances", "Value": world.quotas}
                ]
            }


@pytest.fixture
def world(cloud: LocalCloud) -> World:
    cloud.prices.on_demand |= {"g5.xlarge": "1.5", "g5.12xlarge": "7.0"}
    return World(cloud)


def test_aws_is_asked_in_each_region_with_the_rights_of_who_asks(lab: Path, world: World) -> None:
    done = ask(lab, "--data-gb", "100", "-o", "json", obj=world)

    assert done.exit_code == 0, done.output
    own, away = json.loads(done.stdout)["regions"]
    assert away["played"]["usd"] > own["played"]["usd"], "on demand alone: no spot there"
    assert away["move_usd"] == 2.0
    (quota,) = away["quotas"]
    assert quota == {
        "name": "Running On-Demand G and VT instances",
        "used_vcpus": 52,
        "allowed_vcpus": 8.0,
    }
    said = " ".join(ask(lab, obj=world).output.split())
    assert "allows 8 vCPUs and the play used 52: ask AWS for more first" in said


def test_a_region_that_is_not_enabled_is_not_asked(lab: Path, world: World) -> None:
    world.closed.add("me-south-1")

    done = ask(lab, regions="me-south-1", obj=world)

    assert done.exit_code == 0
    told = " ".join(done.output.split())
    assert "not possible not enabled for the account; enable it: aws account enable-region" in told
    assert ("ec2", "me-south-1") not in world.asked


@pytest.mark.parametrize(
    "error", [Throttled("RequestLimitExceeded"), NotAuthorized("UnauthorizedOperation")]
)
def test_a_region_that_cannot_be_read_is_said_and_hinders_no_other(
    lab: Path, world: World, error: Exception
) -> None:
    world.trouble[AWAY] = error

    done = ask(lab, "-o", "json", obj=world)

    own, away = json.loads(done.stdout)["regions"]
    assert own["played"]
    assert away["played"] is None
    assert away["not_possible"][0].startswith(
        f"its prices cannot be read: {type(error).__name__}: {error}"
    )


def test_where_no_region_can_be_read_it_is_trouble(lab: Path, world: World) -> None:
    world.trouble |= {each: Throttled("RequestLimitExceeded") for each in ("us-east-1", AWAY)}

    done = ask(lab, obj=world)

    assert done.exit_code == 1
    assert done.output.count("its prices cannot be read: Throttled") == 2


def test_a_price_list_that_cannot_be_asked_for_is_said(lab: Path, world: World) -> None:
    done = ask(lab, regions="us-gov-west-1", obj=world)

    assert "its list prices cannot be asked for from here" in " ".join(done.output.split())
