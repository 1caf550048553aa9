"""The pieces of cluster files in the pages: each is accepted in a file that has the rest."""

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest

from tests.doc_commands import PAGES, ROOT
from tidegate.wire.config import parse_cluster
from tidegate.wire.yaml_file import parse_yaml

# What the pieces take for granted, each in its page's own words around it.
REST: dict[str, Any] = {
    "name": "pages",
    "region": "us-east-1",
    "slurm": {"accounting": True, "settings": {"AccountingStorageEnforce": "associations"}},
    "network": {"vpc": "vpc-0a1b2c3d", "subnets": {"us-east-1a": "subnet-0a1b2c3d"}},
    "waiting": {"usd_per_job_hour": 0},
    "pools": {"a100": {}, "a10g": {}, "t4": {"instance_types": ["g4dn.xlarge"]}},
}
PARTITIONS = ("gpu", "batch", "notebooks", "debug")
POOL = {
    "instance_types": ["g5.xlarge"],
    "zones": ["us-east-1a"],
    "capacity_types": ["on-demand"],
}
CHECK = {"user": "ci", "gpu_hours_per_day": 16, "script": "/shared/check.sh"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A block of YAML, the `number`-th of its page."""

    page: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.number}"


def pieces() -> list[Piece]:
    return [
        Piece(page.name, number, text)
        for page in PAGES
        for number, text in enumerate(
            re.findall(r"^ *```yaml\n(.*?)^ *```", page.read_text(), re.DOTALL | re.MULTILINE),
            start=1,
        )
    ]


def laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], dict) and isinstance(above[key], dict):
            both[key] = laid_over(below[key], above[key])
    return both


def whole(text: str, page: str) -> dict[str, Any]:
    """A cluster file that says this and what it leaves to others."""
    read, _ = parse_yaml(text, page)
    assert isinstance(read, dict)
    said: dict[str, Any] = {str(key): each for key, each in read.items()}
    found = laid_over(REST, said)
    found["pools"] = {
        name: each if "zones" in each else {**POOL, **each} for name, each in found["pools"].items()
    }
    if "partitions" not in said:
        found["partitions"] = {name: {"pools": list(found["pools"])} for name in PARTITIONS}
        found["partitions"]["gpu"]["default"] = True
    else:
        # Pools of one architecture have to be in partitions of their own.
        placed = {pool for each in said["partitions"].values() for pool in each["pools"]}
        rest = [name for name in found["pools"] if name not in placed]
        found["partitions"] = {**said["partitions"], "rest": {"pools": rest}}
    if "idle_check" in said:
        found["idle_check"] = {**CHECK, **said["idle_check"]}
    return found


@pytest.mark.parametrize("piece", pieces(), ids=str)
def test_every_piece_of_a_cluster_file_is_accepted(piece: Piece) -> None:
    text = json.dumps(whole(piece.text, piece.page))

    assert parse_cluster(text, piece.page).cluster.pools


def test_the_pool_that_the_page_adds_fits_the_file_that_it_names() -> None:
    (added,) = (each for each in pieces() if each.page == "pools.md" and "h100" in each.text)
    below, _ = parse_yaml((ROOT / "clusters" / "dev.yaml").read_text(), "dev.yaml")
    above, _ = parse_yaml(added.text, added.page)
    assert isinstance(below, dict)
    assert isinstance(above, dict)

    file = parse_cluster(json.dumps(laid_over(below, above)), added.page)

    assert "h100" in [each.name for each in file.cluster.pools]


def test_the_pages_have_such_pieces() -> None:
    assert len(pieces()) > 20, "they have another form"
