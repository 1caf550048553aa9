"""Which instance types a pool has: by name, by pattern (`g5.*`), by requirements.

Requirements are Karpenter's: a key, an operator, values; all of them must hold.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from typing import Self

from pydantic import Field, model_validator

from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ultraservers import ULTRASERVERS
from tidegate.wire.catalogue import BARE_METAL, USUAL_ARCH, load_catalogue
from tidegate.wire.problems import and_, did_you_mean, shown
from tidegate.wire.section import Section

_PATTERN = re.compile(r"[a-z0-9.*?-]*[*?][a-z0-9.*?-]*")
_MAX_SHOWN = 3
_BURSTABLE = re.compile(r"t[0-9]")
MIB_PER_GIB = 1024
_ULTRASERVER = re.compile(r"p6e-gb[0-9]+\.[0-9]*xlarge|u-[a-z0-9-]+x[0-9]+")


class Key(StrEnum):
    """What a requirement may look at. Memory and NVMe in GiB, GPU memory of one GPU."""

    GPU_MODEL = "gpu_model"
    GPUS = "gpus"
    GPU_MEMORY_GIB = "gpu_memory_gib"
    FAMILY = "family"
    GENERATION = "generation"
    VCPUS = "vcpus"
    MEMORY_GIB = "memory_gib"
    ARCH = "arch"
    LOCAL_NVME_GIB = "local_nvme_gib"
    EFA = "efa"


class Operator(StrEnum):
    """Karpenter's words."""

    IN = "In"
    NOT_IN = "NotIn"
    GT = "Gt"
    LT = "Lt"
    EXISTS = "Exists"


_NUMBERS: Mapping[Key, Callable[[InstanceType], float]] = {
    Key.GPUS: lambda each: each.gpus,
    Key.GPU_MEMORY_GIB: lambda each: each.gpu_memory_mib / MIB_PER_GIB,
    Key.GENERATION: lambda each: each.generation,
    Key.VCPUS: lambda each: each.vcpus,
    Key.MEMORY_GIB: lambda each: each.memory_mib / MIB_PER_GIB,
    Key.LOCAL_NVME_GIB: lambda each: each.local_nvme_gib,
}
_WORDS: Mapping[Key, Callable[[InstanceType], str]] = {
    Key.GPU_MODEL: lambda each: each.gpu_type,
    Key.FAMILY: lambda each: each.family,
    Key.ARCH: lambda each: each.arch,
    Key.EFA: lambda each: "true" if each.is_efa else "",
}


class Requirement(Section):
    """One condition on the instance types of a pool."""

    key: Key = Field(description="what to look at, like gpu_model")
    operator: Operator = Field(description="In, NotIn, Gt, Lt or Exists")
    values: tuple[str, ...] = Field(default=(), description="what to compare with")

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        if self.operator is Operator.EXISTS:
            if self.values:
                raise ValueError("Exists takes no values")
        elif not self.values:
            raise ValueError(f"{self.operator} needs values")
        if self.operator in (Operator.GT, Operator.LT) and self.key not in _NUMBERS:
            raise ValueError(f"{self.key} is no number: {self.operator} cannot compare it")
        if self.operator in (Operator.GT, Operator.LT) and len(self.values) > 1:
            raise ValueError(f"{self.operator} takes one value, has {len(self.values)}")
        for value in self.values:
            self._check(value)
        return self

    def _check(self, value: str) -> None:
        if self.key in _NUMBERS:
            if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,3})?", value):
                raise ValueError(f"{self.key} is a number, {shown(value)} is none")
            return
        known = {"true"} if self.key is Key.EFA else _known(self.key)
        if value not in known:
            hint = did_you_mean(value, known)
            raise ValueError(f"no instance type has {self.key} {shown(value)}{hint}")

    def holds(self, each: InstanceType) -> bool:
        if self.key in _NUMBERS:
            return self._compares(_NUMBERS[self.key](each))
        word = _WORDS[self.key](each)
        match self.operator:
            case Operator.IN:
                return word in self.values
            case Operator.NOT_IN:
                return word not in self.values
            case _:
                return bool(word)

    def _compares(self, number: float) -> bool:
        values = [float(value) for value in self.values]
        match self.operator:
            case Operator.IN:
                return number in values
            case Operator.NOT_IN:
                return number not in values
            case Operator.GT:
                return number > values[0]
            case Operator.LT:
                return number < values[0]
            case Operator.EXISTS:
                return number > 0

    def __str__(self) -> str:
        return " ".join((self.key, self.operator, *self.values))


@frozen
class Selection:
    """The instance types of a pool, and why others that were meant are not among them."""

    instance_types: tuple[InstanceType, ...]
    left_out: tuple[str, ...] = ()


def is_pattern(value: str) -> bool:
    return _PATTERN.fullmatch(value) is not None


def in_ultraservers(value: str) -> str:
    """Why an UltraServer, or a type of which only that is known, is no node of ours; "": it is
    neither.
    """
    for each in ULTRASERVERS:
        if each.name == value:
            its = each.instance_type
            return f"{value} is an UltraServer: name the type of its instances, {its}"
    if not _ULTRASERVER.fullmatch(value):
        return ""
    known = and_(list(dict.fromkeys(each.instance_type for each in ULTRASERVERS)))
    return f"{value} is of an UltraServer that Tidegate does not know: it knows {known}"


def check_instance_type(value: str) -> str:
    """An exact name or a pattern that names at least one usable type; ValueError else."""
    catalogue = load_catalogue()
    if value in catalogue:
        return value
    if not is_pattern(value):
        if why := in_ultraservers(value):
            raise ValueError(why)
        near = did_you_mean(value, catalogue)
        raise ValueError(f"{shown(value)} is not a known instance type{near}")
    matched = [name for name in catalogue if fnmatchcase(name, value)]
    if not matched:
        raise ValueError(f"{value} matches no known instance type{_near_pattern(value)}")
    if all(_is_metal_unsaid(value, name) for name in matched):
        raise ValueError(f"{value} matches nothing usable: {_metal(matched)}")
    if all(catalogue[name].only_by_name for name in matched):
        raise ValueError(f"{value} matches nothing usable: {catalogue[matched[0]].only_by_name}")
    return value


def select(names: Sequence[str], requirements: Sequence[Requirement]) -> Selection:
    """The types that any of `names` means (all types without names) and all requirements keep.

    In the order of `names`; those of one pattern from small to large. A pattern means types of
    the usual architecture, where there are any and no requirement is about it. Requirements alone
    mean no burstable types, which are cheap only while they idle, unless one names their family.
    Bare metal, which boots so much longer, is meant by names and by patterns that say metal.
    """
    catalogue = load_catalogue()
    is_family_said = any(each.key is Key.FAMILY for each in requirements)
    is_arch_said = any(each.key is Key.ARCH for each in requirements)
    kept: dict[str, str] = {}
    metal: list[str] = []
    for entry in names or ("*",):
        found = {
            name: "" if name == entry else catalogue[name].only_by_name
            for name in _meant(entry)
            if names or is_family_said or not _BURSTABLE.match(name)
            if all(each.holds(catalogue[name].instance_type) for each in requirements)
        }
        metal += [name for name in found if _is_metal_unsaid(entry, name)]
        found = {name: why for name, why in found.items() if not _is_metal_unsaid(entry, name)}
        if not is_arch_said and is_pattern(entry):
            found |= _of_another_arch(found)
        kept |= {name: why for name, why in found.items() if not why or name not in kept}
    meant = tuple(catalogue[name].instance_type for name, why in kept.items() if not why)
    left_out = tuple(filter(None, kept.values()))
    metal = [name for name in dict.fromkeys(metal) if name not in kept]
    # Who asks by requirements is told of it only where nothing else has them all.
    return Selection(
        meant, (*left_out, _metal(metal)) if metal and (names or not meant) else left_out
    )


def _is_metal_unsaid(entry: str, name: str) -> bool:
    return load_catalogue()[name].is_bare_metal and BARE_METAL not in entry


def _metal(names: Sequence[str]) -> str:
    one = "it" if len(names) == 1 else "them"
    return f"{_first(names)}, bare metal that boots for up to 20 minutes: a pool has {one} by name"


def _of_another_arch(found: Mapping[str, str]) -> dict[str, str]:
    """Why types that are not of the usual architecture are left out, beside some that are."""
    archs = {
        name: load_catalogue()[name].instance_type.arch for name, why in found.items() if not why
    }
    if USUAL_ARCH not in archs.values():
        return {}
    return {
        name: f"{name}, which is {arch}: name it in a pool of its own, or `arch In {arch}`"
        for name, arch in archs.items()
        if arch != USUAL_ARCH
    }


def why_nothing(names: Sequence[str], requirements: Sequence[Requirement]) -> str:
    """What keeps a selection empty: requirements without which something would remain."""
    if left_out := select(names, requirements).left_out:
        return f"only unusable instance types are left: {_first(left_out)}"
    telling = []
    for index, one in enumerate(requirements):
        others = [*requirements[:index], *requirements[index + 1 :]]
        if found := select(names, others).instance_types:
            nearest = _first([each.name for each in found])
            telling.append(f"without `{one}` {len(found)} would remain ({nearest})")
    hint = "; ".join(telling) or "no single one of them is to blame"
    return f"no instance type meets all requirements: {hint}"


def _meant(entry: str) -> Iterable[str]:
    catalogue = load_catalogue()
    if entry in catalogue:
        return (entry,)
    return sorted((name for name in catalogue if fnmatchcase(name, entry)), key=_size)


def _size(name: str) -> tuple[int, int, int, str]:
    each = load_catalogue()[name].instance_type
    return (each.gpus, each.vcpus, each.memory_mib, name)


def _near_pattern(pattern: str) -> str:
    """`; did you mean g5.*?`: the same pattern for a family that exists."""
    _, dot, size = pattern.partition(".")
    return did_you_mean(pattern, [f"{each}{dot}{size}" for each in _known(Key.FAMILY)])


def _first(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _MAX_SHOWN} more" if len(texts) > _MAX_SHOWN else ""
    return ", ".join(texts[:_MAX_SHOWN]) + more


@cache
def _known(key: Key) -> tuple[str, ...]:
    """Every value that a key has in the catalogue."""
    found = {_WORDS[key](row.instance_type) for row in load_catalogue().values()}
    return tuple(sorted(found - {""}))
