"""Which versions of driver, CUDA, fabric manager and EFA's software go together."""

from collections.abc import Iterator, Mapping
from typing import Any

from tidegate.core.model.frozen import frozen
from tidegate.wire.compat_facts import (
    DEFAULT_IMAGE,
    INSTALLED_BRANCH,
    Finding,
    is_older,
    is_sure,
    load_compat,
    sources,
)
from tidegate.wire.config import ClusterFile
from tidegate.wire.node_models import SoftwareModel


@frozen
class Card:
    """A kind of GPU in a pool. `place`: pool and instance type. `mig`: the profiles asked for."""

    place: str
    name: str
    facts: Mapping[str, Any]
    has_nvswitch: bool
    mig: tuple[str, ...] = ()


def software_of(file: ClusterFile, pool: str) -> SoftwareModel:
    """What nodes and jobs have: AWS's image by its release notes, an own one by the file."""
    if file.image_of(pool):
        return file.software
    if file.installs_driver:
        known = {"driver": INSTALLED_BRANCH, "kernel_module": "open", "os": file.os}
    else:
        images = load_compat()["pairs"]["images"]
        row = next(each for each in images if each["image"] == DEFAULT_IMAGE)
        known = {name: str(row[name]) for name in ("driver", "efa_installer", "aws_ofi_nccl")}
    return file.software.model_copy(update=known)


def card_rules(card: Card, has: SoftwareModel) -> Iterator[Finding]:
    """What speaks against this software on this GPU."""
    if has.driver:
        yield from _driver_too_old(card, has.driver)
        yield from _branch_refused(card, has.driver)
    if has.kernel_module:
        yield from _module_flavour(card, has.kernel_module)
    if card.mig:
        yield from _mig(card, has.driver)
    if has.cuda:
        yield from _cuda_of_card(card, has.cuda)
    if card.has_nvswitch and has.driver and has.fabric_manager not in (None, has.driver):
        text = f"fabric manager {has.fabric_manager}, driver {has.driver}: must be the same"
        told = sources(load_compat()["pairs"]["fabric_manager_equals_driver"]["src"])
        yield Finding("R04", True, f"{card.place}: software.fabric_manager", text, told)


def software_rules(has: SoftwareModel) -> Iterator[Finding]:
    """What speaks against versions beside each other, whatever the GPU."""
    if has.driver:
        yield from _end_of_life(has.driver)
        if has.cuda:
            yield from _cuda_of_driver(has.cuda, has.driver)
    yield from _plugin(has)
    yield from _dropped_os(has)
    yield from _old_shell(has)


def _driver_too_old(card: Card, driver: str) -> Iterator[Finding]:
    fact = card.facts.get("min_driver")
    if fact and is_older(driver, fact["value"]):
        text = f"{card.name} needs driver {fact['value']}, the image has {driver}"
        yield Finding("R01", is_sure(fact), card.place, text, sources(fact["src"]))


def _branch_refused(card: Card, driver: str) -> Iterator[Finding]:
    """A branch that has dropped the GPU, or that a source says does not take it."""
    branch = int(driver.split(".")[0])
    last, refused = card.facts.get("last_driver_branch"), card.facts.get("reject_driver_branch")
    if last and branch > int(last["value"]):
        text = f"{card.name} is dropped after driver branch {last['value']}, the image has {driver}"
        yield Finding("R06", is_sure(last), card.place, text, sources(last["src"]))
    elif refused and branch in refused["value"]:
        text = f"driver branch {branch} refuses {card.name}, the image has {driver}"
        yield Finding("R06", is_sure(refused), card.place, text, sources(refused["src"]))


def _module_flavour(card: Card, flavour: str) -> Iterator[Finding]:
    """Volta and older have no open kernel modules, Blackwell has no others."""
    fact = card.facts["kernel_module"]
    if fact["value"] == flavour:
        return
    is_impossible = card.facts["arch"] == "volta" or fact.get("required", False)
    is_error = is_impossible and is_sure(fact)
    text = f"{card.name} wants the {fact['value']} kernel module, the image has the {flavour} one"
    yield Finding("R05", is_error, card.place, text, sources(fact["src"]))


def _mig(card: Card, driver: str | None) -> Iterator[Finding]:
    facts, least = card.facts.get("mig"), card.facts.get("mig_min_driver")
    if not facts:
        text = f"{card.name} cannot be partitioned (MIG)"
        yield Finding("R02", True, card.place, text, sources(["migsup"]))
        return
    known = ", ".join(facts["profiles"]) or "no profile that we know"
    for profile in card.mig:
        if profile not in facts["profiles"]:
            text = f"{card.name} has no MIG profile {profile}; it has {known}"
            yield Finding("R02", is_sure(facts), card.place, text, sources(facts["src"]))
    if driver and least and is_older(driver, least["value"]):
        text = f"MIG on {card.name} needs driver {least['value']}, the image has {driver}"
        yield Finding("R02", is_sure(least), card.place, text, sources(least["src"]))


def _cuda_of_card(card: Card, cuda: str) -> Iterator[Finding]:
    place = f"{card.place}: software.cuda"
    first, last = card.facts.get("first_cuda"), card.facts.get("last_cuda_major")
    if first and is_older(cuda, first["value"]):
        text = f"{card.name} needs CUDA {first['value']}, jobs have {cuda}"
        yield Finding("R03", is_sure(first), place, text, sources(first["src"]))
    if last and int(cuda.split(".")[0]) > int(last["value"]):
        text = f"CUDA {last['value']} is the last one for {card.name}, jobs have {cuda}"
        yield Finding("R03", is_sure(last), place, text, sources(last["src"]))


def _cuda_of_driver(cuda: str, driver: str) -> Iterator[Finding]:
    """Any driver of a CUDA major runs all of its minors; a newer major needs a newer branch."""
    major, branch = int(cuda.split(".")[0]), int(driver.split(".")[0])
    rows = [each for each in load_compat()["cuda"] if each["major"] == major]
    for each in rows:
        if is_older(driver, each["min_driver"]):
            text = f"CUDA {cuda} needs driver {each['min_driver']}, the image has {driver}"
            yield Finding("R03", is_sure(each), "software.cuda", text, sources(each["src"]))
            return
    for each in load_compat()["driver_branches"]:
        if each["branch"] == branch and major > each["cuda_major"]:
            text = f"driver branch {branch} runs CUDA up to {each['cuda_major']}, jobs have {cuda}"
            yield Finding("R03", is_sure(each), "software.cuda", text, sources(each["src"]))


def _end_of_life(driver: str) -> Iterator[Finding]:
    as_of = str(load_compat()["as_of"])
    for each in load_compat()["driver_branches"]:
        is_ours = str(each["branch"]) == driver.split(".")[0]
        if is_ours and each["eol"] and str(each["eol"]) < as_of:
            text = f"driver branch {each['branch']} ended {each['eol']}"
            yield Finding("R11", False, "image", text, sources(each["src"]))


def _plugin(has: SoftwareModel) -> Iterator[Finding]:
    """NCCL's plugin for EFA with EFA's installer, its libfabric and NCCL itself."""
    place = "software.aws_ofi_nccl"
    for each in load_compat()["pairs"]["aws_ofi_nccl"]:
        if not has.aws_ofi_nccl or str(each["version"]).removesuffix("-aws") != has.aws_ofi_nccl:
            continue
        told = sources(each["src"])
        broken = str(each.get("broken_with_efa_installer", "")).removeprefix(">=")
        if broken and has.efa_installer and not is_older(has.efa_installer, broken):
            text = (
                f"{has.aws_ofi_nccl} crashes with EFA's installer {broken} and later, the image"
                f" has {has.efa_installer}; {each['fixed_in']} mends it"
            )
            yield Finding("R08", is_sure(each), place, text, told)
        least = str(each.get("nccl_min", ""))
        if least and has.nccl and is_older(has.nccl, least):
            text = f"{has.aws_ofi_nccl} needs NCCL {least}, jobs have {has.nccl}"
            yield Finding("R08", is_sure(each), place, text, told)
        least = str(each.get("libfabric_min_aws") or each.get("libfabric_min", ""))
        fabric = has.libfabric or _libfabric(has.efa_installer)
        if least and fabric and is_older(fabric, least):
            text = f"{has.aws_ofi_nccl} needs libfabric {least}, the image has {fabric}"
            yield Finding("R08", is_sure(each), place, text, told)


def _libfabric(installer: str | None) -> str:
    """What this version of EFA's installer brings; "" when no source says."""
    rows = load_compat()["pairs"]["efa_installer"]
    found = (str(each.get("libfabric", "")) for each in rows if each["efa_installer"] == installer)
    return next(found, "")


def _dropped_os(has: SoftwareModel) -> Iterator[Finding]:
    for each in load_compat()["pairs"]["efa_installer"]:
        if has.efa_installer and has.os in each.get("drops", ()):
            if is_older(has.efa_installer, each["efa_installer"]):
                continue
            text = f"EFA's installer {each['efa_installer']} and later has none for {has.os}"
            yield Finding("R10", is_sure(each), "software.os", text, sources(each["src"]))


def _old_shell(has: SoftwareModel) -> Iterator[Finding]:
    """Source: bash's CHANGES, 5.1, `wait -p`, which userdata/boot.sh needs."""
    if bash := {"ubuntu20.04": "5.0", "al2": "4.2"}.get(has.os or ""):
        text = f"{has.os} has bash {bash}, and a node's boot needs 5.1"
        yield Finding("R22", True, "software.os", text, "bash's CHANGES, 5.1")
