"""Which GPUs, drivers and images go together, from `tidegate/data/compat.yaml`.

Every fact there names its source and how sure it is. What was only heard of (`unverified`) warns
and never refuses.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from tidegate.core.pool import Pool
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.config import ClusterFile

# What `image: install` brings: the long-term branch that all our GPUs know.
INSTALLED_BRANCH = "580"
# The default image of nodes; cdk/images.py looks it up.
DEFAULT_IMAGE = "dlami-base-oss-ubuntu24.04"


@dataclass(frozen=True, slots=True)
class Finding:
    """What speaks against a pool. `rule`: of compat.yaml's list `reject`."""

    rule: str
    is_error: bool
    place: str
    text: str
    source: str

    def __str__(self) -> str:
        kind = "error" if self.is_error else "warning"
        return f"{self.place}: {kind} {self.rule}: {self.text} (source: {self.source})"


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a node of an instance type must have. `min_driver`: "" where no source says.

    `efa_interfaces`: the most it can have, over `network_cards` cards.
    """

    has_nvswitch: bool = False
    min_driver: str = ""
    efa_interfaces: int = 0
    network_cards: int = 1


@cache
def load_compat() -> Mapping[str, Any]:
    """The whole file; read once per process."""
    text = (files("tidegate") / "data" / "compat.yaml").read_text(encoding="utf-8")
    loaded: Mapping[str, Any] = yaml.safe_load(text)
    return loaded


def facts_of(instance_type: str) -> NodeFacts:
    """For launches and the health gate; little for types that the file does not know."""
    row = load_compat()["instance_types"].get(instance_type)
    if row is None:
        known = load_catalogue().get(instance_type)
        return NodeFacts(efa_interfaces=int(known is not None and known.instance_type.is_efa))
    gpu = load_compat()["gpus"][row["gpu"]]
    minimum = gpu.get("min_driver", {})
    is_sure = minimum.get("conf") != "unverified"
    return NodeFacts(
        has_nvswitch=bool(gpu["fabric_manager"]) and row["count"] > 1,
        min_driver=str(minimum.get("value", "")) if is_sure else "",
        efa_interfaces=row["max_efa"],
        network_cards=row["cards"],
    )


def findings(file: ClusterFile) -> tuple[Finding, ...]:
    """Everything that speaks against the file's pools on its image, errors first."""
    driver = _driver(file)
    pools = file.cluster.pools
    found = [each for pool in pools for each in _of_pool(pool, driver, file)]
    found += [each for pool in pools if pool.name in file.efa for each in _efa(pool, file)]
    if driver:
        found += _end_of_life(driver)
    return tuple(sorted(dict.fromkeys(found), key=lambda each: not each.is_error))


def _driver(file: ClusterFile) -> str:
    """The NVIDIA driver of the nodes' image; "" for an image of one's own."""
    if file.image_id:
        return ""
    if file.installs_driver:
        return INSTALLED_BRANCH
    images = load_compat()["pairs"]["images"]
    return str(next(each["driver"] for each in images if each["image"] == DEFAULT_IMAGE))


def _of_pool(pool: Pool, driver: str, file: ClusterFile) -> Iterator[Finding]:
    types, gpus = load_compat()["instance_types"], load_compat()["gpus"]
    for instance_type in pool.instance_types:
        row = types.get(instance_type.name)
        if row is None:
            continue
        place = f"pools.{pool.name}: {instance_type.name}"
        gpu = gpus[row["gpu"]]
        if driver:
            yield from _driver_too_old(place, row["gpu"], gpu, driver)
            yield from _branch_refused(place, row["gpu"], gpu, driver)
        if file.installs_driver:
            yield from _module_flavour(place, row["gpu"], gpu)
        if row["count"] != instance_type.gpus:
            text = f"{instance_type.gpus} GPUs in the catalogue, {row['count']} in the facts"
            yield Finding("R13", False, place, text, _sources(["moto521"]))


def _driver_too_old(
    place: str, name: str, gpu: Mapping[str, Any], driver: str
) -> Iterator[Finding]:
    fact = gpu.get("min_driver")
    if fact and _is_older(driver, fact["value"]):
        text = f"{name} needs driver {fact['value']}, the image has {driver}"
        yield Finding("R01", _is_sure(fact), place, text, _sources(fact["src"]))


def _branch_refused(
    place: str, name: str, gpu: Mapping[str, Any], driver: str
) -> Iterator[Finding]:
    """A branch that has dropped the GPU, or that a source says does not take it."""
    branch = int(driver.split(".")[0])
    last, refused = gpu.get("last_driver_branch"), gpu.get("reject_driver_branch")
    if last and branch > int(last["value"]):
        text = f"{name} is dropped after driver branch {last['value']}, the image has {driver}"
        yield Finding("R06", _is_sure(last), place, text, _sources(last["src"]))
    elif refused and branch in refused["value"]:
        text = f"driver branch {branch} refuses {name}, the image has {driver}"
        yield Finding("R06", _is_sure(refused), place, text, _sources(refused["src"]))


def _module_flavour(place: str, name: str, gpu: Mapping[str, Any]) -> Iterator[Finding]:
    """`image: install` brings the open kernel modules, which Volta and older do not have."""
    fact = gpu["kernel_module"]
    if fact["value"] == "open":
        return
    is_impossible = gpu["arch"] == "volta"
    text = f"{name} wants the proprietary kernel module, image: install brings the open one"
    yield Finding("R05", is_impossible, place, text, _sources(fact["src"]))


def _efa(pool: Pool, file: ClusterFile) -> Iterator[Finding]:
    """A pool's one launch template has the network interfaces of all its types."""
    place = f"pools.{pool.name}.efa"
    facts = {each.name: facts_of(each.name) for each in pool.instance_types}
    layouts = {name: (each.efa_interfaces, each.network_cards) for name, each in facts.items()}
    for name, (interfaces, _) in layouts.items():
        if not interfaces:
            yield Finding("R07", True, place, f"{name} has no EFA", _sources(["moto521"]))
    if len(set(layouts.values())) > 1:
        counts = ", ".join(f"{name} {count}" for name, (count, _) in sorted(layouts.items()))
        text = f"instance types of one pool need as many EFA interfaces each, have {counts}"
        yield Finding("R07", True, place, text, _sources(["moto521"]))
    if file.installs_driver:
        text = "image: install brings no EFA software; take dlami, or an image of your own"
        yield Finding("R18", True, place, text, _sources(["efalog"]))
    network = file.network
    if max(count for count, _ in layouts.values()) > 1 and not (
        network.vpc_id or network.is_private
    ):
        text = (
            "EC2 gives no public address to an instance with several network interfaces, and the"
            " own subnets have no other way out: set network.nat or network.endpoints"
        )
        yield Finding("R17", True, place, text, _sources(["efaguide"]))


def _end_of_life(driver: str) -> Iterator[Finding]:
    as_of = str(load_compat()["as_of"])
    for each in load_compat()["driver_branches"]:
        is_ours = str(each["branch"]) == driver.split(".")[0]
        if is_ours and each["eol"] and str(each["eol"]) < as_of:
            text = f"driver branch {each['branch']} ended {each['eol']}"
            yield Finding("R11", False, "image", text, _sources(each["src"]))


def _is_sure(fact: Mapping[str, Any]) -> bool:
    return fact["conf"] in ("seen", "derived")


def _is_older(version: str, minimum: object) -> bool:
    """A branch alone stands for its newest driver."""
    have, need = version.split("."), str(minimum).split(".")
    known = min(len(have), len(need))
    return [int(each) for each in have[:known]] < [int(each) for each in need[:known]]


def _sources(ids: list[str]) -> str:
    """The sources' own titles."""
    known = load_compat()["sources"]
    return "; ".join(known[each] for each in ids) or "none"
