"""Where instance types are sold, as far as data tell."""

from typing import Any

import pytest
import yaml

from local.offerings import OFFERINGS, offerings_csv
from tests.wire.cluster_files import good
from tidegate.wire.config import parse_cluster
from tidegate.wire.offerings import problems


def told(changes: dict[str, Any]) -> list[str]:
    file = parse_cluster(yaml.safe_dump(good(changes)), "test.yaml")
    return list(map(str, problems(file)))


def moved(region: str, *types: str) -> dict[str, Any]:
    zones = [f"{region}a", f"{region}b"]
    return {
        "region": region,
        "pools.t4.zones": zones,
        "pools.t4.instance_types": list(types),
        "prices_usd_per_hour": {name: {"on-demand": 1, "spot": 0.5} for name in types},
    }


def test_the_file_is_what_its_generator_makes():
    assert offerings_csv() == OFFERINGS.read_text(), "run `python -m local.offerings`"


def test_what_a_region_sells_is_no_problem():
    assert told({}) == []
    assert told(moved("eu-central-1", "g4dn.xlarge")) == []


def test_where_ultraservers_are_sold_only_ec2_can_say():
    """To accounts that it has let in: the data are the answers that another account had."""
    for region in ("us-east-2", "us-west-2"):
        changes = moved(region, "trn2u.48xlarge") | {"pools.t4.capacity_types": ["capacity-block"]}
        assert told(changes) == []


def test_types_that_a_region_does_not_sell_are_told_with_their_place():
    assert told(moved("eu-central-2", "p5.48xlarge")) == [
        "pools.t4.instance_types: p5.48xlarge is not offered in eu-central-2"
    ]


def test_more_zones_than_sell_any_type_are_told():
    zones = [f"us-east-1{letter}" for letter in "abcdef"]
    prices = {name: {"on-demand": 60, "spot": 30} for name in ("p5en.48xlarge",)}
    changes = {
        "pools.t4.instance_types": ["p5en.48xlarge"],
        "pools.t4.zones": zones,
        "pools.t4.limits": {},
        "limits": {},
        "prices_usd_per_hour": prices,
    }

    (line,) = told(changes)

    assert line.startswith("pools.t4.zones: 6 zones, but its instance types are offered in at most")


@pytest.mark.parametrize(
    ("region", "types"), [("cn-north-1", ("g5.xlarge",)), ("us-east-1", ("p3.2xlarge",))]
)
def test_what_the_data_do_not_know_is_not_judged(region: str, types: tuple[str, ...]):
    assert told(moved(region, *types)) == []
