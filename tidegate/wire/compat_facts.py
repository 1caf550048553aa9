"""Facts on GPUs, drivers and images, from `tidegate/data/compat.yaml`.

Every fact there names its source and how sure it is. What was only heard of (`unverified`) warns
and never refuses.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from tidegate.core.model.frozen import frozen
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.own_table import own_table

_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)*")

# What `image: install` brings: the long-term branch that all our GPUs know.
INSTALLED_BRANCH = "580"
# The default image of nodes; cdk/images.py looks it up.
DEFAULT_IMAGE = "dlami-base-oss-ubuntu24.04"


@frozen
class Finding:
    """What speaks against a pool. `rule`: of `compat_rules.py`."""

    rule: str
    is_error: bool
    place: str
    text: str
    source: str

    def __str__(self) -> str:
        kind = "error" if self.is_error else "warning"
        return f"{self.place}: {kind} {self.rule}: {self.text} (source: {self.source})"


@frozen
class NodeFacts:
    """What a node of an instance type must have. `min_driver`: "" where no source says.

    `efa_interfaces`: as many as use all of its bandwidth, over `network_cards` cards; `efa_cards`:
    on these, where it is not each card from the second on.
    """

    has_nvswitch: bool = False
    min_driver: str = ""
    efa_interfaces: int = 0
    network_cards: int = 1
    efa_cards: tuple[int, ...] = ()


@cache
def load_compat() -> Mapping[str, Any]:
    """The whole file; read once per process."""
    loaded: Mapping[str, Any] = own_table("compat.yaml")
    return loaded


def facts_of(instance_type: str) -> NodeFacts:
    """For launches and the health gate; of types without GPUs of NVIDIA's their EFA alone."""
    row = load_compat()["instance_types"].get(instance_type)
    if row is None:
        known = load_catalogue().get(instance_type)
        if known is None or not known.instance_type.is_efa:
            return NodeFacts()
        cards = load_compat()["more_efa"].get(instance_type, 1)
        return NodeFacts(efa_interfaces=cards, network_cards=cards)
    gpu = load_compat()["gpus"][row["gpu"]]
    minimum = gpu.get("min_driver", {})
    is_sure = minimum.get("conf") != "unverified"
    return NodeFacts(
        has_nvswitch=bool(gpu["fabric_manager"]) and row["count"] > 1,
        min_driver=str(minimum.get("value", "")) if is_sure else "",
        efa_interfaces=row["max_efa"],
        network_cards=row["cards"],
        efa_cards=tuple(row.get("efa_cards", ())),
    )


def mig_facts(instance_type: str) -> tuple[int, Mapping[str, int]]:
    """The compute slices of each GPU of a type, and how many instances of each profile it holds."""
    row = load_compat()["instance_types"].get(instance_type)
    mig = load_compat()["gpus"][row["gpu"]].get("mig") if row else None
    return (int(mig["max"]), mig["profiles"]) if mig else (0, {})


def mig_instances(instance_type: str, profile: str) -> int:
    """Into how many instances of a profile each GPU of a type is cut; 0: none that we know."""
    return int(mig_facts(instance_type)[1].get(profile, 0))


def is_sure(fact: Mapping[str, Any]) -> bool:
    return fact["conf"] in ("seen", "derived")


def is_older(version: str, minimum: object) -> bool:
    """A branch alone stands for its newest driver; letters behind the numbers count nothing."""
    have, need = _numbers(version), _numbers(str(minimum))
    known = min(len(have), len(need))
    return have[:known] < need[:known]


def _numbers(version: str) -> list[int]:
    """2.7.0 of libfabric's `2.7.0amzn2.0`, 1.21.1 of `1.21.1-aws`."""
    found = _NUMBERS.match(version)
    return [int(each) for each in found.group().split(".")] if found else []


def sources(ids: list[str]) -> str:
    """The sources' own titles."""
    known = load_compat()["sources"]
    return "; ".join(known[each] for each in ids) or "none"
