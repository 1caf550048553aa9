"""The instance types that Tidegate knows, from `tidegate/data/instance_types.csv`."""

import csv
import re
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ultraservers import is_in_ultraserver

# What a pattern or requirements mean where they do not say it: programs are built for it.
USUAL_ARCH = "x86_64"
LIST_PRICE_REGION = "us-east-1"

# How EC2 calls the sizes of bare metal: metal, metal-48xl.
BARE_METAL = "metal"

_GENERATION = re.compile(r"[0-9]+")


class Kind(StrEnum):
    """What an instance type computes with."""

    GPU = "gpu"
    FRACTIONAL_GPU = "fractional-gpu"
    NEURON = "neuron"
    CPU = "cpu"


@frozen
class CatalogueRow:
    """One line of the catalogue.

    Source: EC2 DescribeInstanceTypes; `python -m local.catalogue` writes it. `gpus` counts
    Neuron devices as well. EC2 says 0 GPUs of a type with a fraction of one; its driver shows one
    device with that fraction's memory, and so Slurm has one, of a type of its own: l4-3gb.
    """

    kind: Kind
    instance_type: InstanceType
    threads_per_core: int  #: as EC2 starts it

    @property
    def is_bare_metal(self) -> bool:
        """Whether a node is the whole machine, without a hypervisor (EC2's BareMetal)."""
        return self.instance_type.name.partition(".")[2].startswith(BARE_METAL)

    @property
    def virtual_twin(self) -> str:
        """Of bare metal: the virtual type of its family with as much of all; "": there is none."""
        own = self.instance_type
        return next(
            (
                name
                for name, row in load_catalogue().items()
                if self.is_bare_metal
                and not row.is_bare_metal
                and (each := row.instance_type).family == own.family
                and (each.vcpus, each.memory_mib, each.gpus)
                == (own.vcpus, own.memory_mib, own.gpus)
            ),
            "",
        )

    @property
    def only_by_name(self) -> str:
        """Why no pattern or requirement means this type; "" when one may."""
        each = self.instance_type
        if self.kind is Kind.FRACTIONAL_GPU:
            return f"{each.name} has a fraction of a GPU ({each.gpu_type}): a pool has it by name"
        if is_in_ultraserver(each.name):
            return f"{each.name} is a part of an UltraServer: a pool has it by name"
        return ""


def _row(line: Mapping[str, str]) -> CatalogueRow:
    kind = Kind(line["kind"])
    is_fraction = kind is Kind.FRACTIONAL_GPU
    gpu_memory_mib = int(line["gpu_memory_mib"])
    family = line["name"].split(".")[0]
    found = _GENERATION.search(family)
    return CatalogueRow(
        kind,
        InstanceType(
            name=line["name"],
            vcpus=int(line["vcpus"]),
            memory_mib=int(line["memory_mib"]),
            gpus=1 if is_fraction else int(line["gpus"]),
            gpu_type=_part(line["gpu_type"], gpu_memory_mib) if is_fraction else line["gpu_type"],
            arch=line["arch"],
            family=family,
            generation=int(found.group()) if found else 0,
            gpu_memory_mib=gpu_memory_mib,
            local_nvme_gib=int(line["local_nvme_gib"]),
            is_efa=bool(line["efa"]),
            gres="neuron" if kind is Kind.NEURON else "gpu",
        ),
        threads_per_core=int(line["threads_per_core"]),
    )


def _part(gpu_type: str, memory_mib: int) -> str:
    """The GRES type of a fraction of a GPU, by its memory in AWS's words: 2,861 MiB are 3 GB."""
    return f"{gpu_type}-{memory_mib * 2**20 / 1e9:.0f}gb"


@cache
def load_catalogue() -> Mapping[str, CatalogueRow]:
    """Instance type name -> its row; read once per process."""
    text = (files("tidegate") / "data" / "instance_types.csv").read_text(encoding="utf-8")
    rows = map(_row, csv.DictReader(text.splitlines()))
    return MappingProxyType({row.instance_type.name: row for row in rows})


def arch_of(name: str) -> str:
    """The architecture of a type that is in the catalogue, in EC2's word."""
    return load_catalogue()[name].instance_type.arch


def types_of(cluster: Cluster) -> dict[str, InstanceType]:
    """Every type that nodes may have had, with its GPUs whole, its CPUs as Slurm sees them, and
    into how many shards its GPUs are counted.
    """
    known = {name: row.instance_type for name, row in load_catalogue().items()}
    for each in (of for pool in cluster.pools for of in pool.instance_types):
        known[each.name] = replace(
            known[each.name],
            vcpus_per_cpu=each.vcpus_per_cpu,
            shards_per_gpu=each.shards_per_gpu,
            shared_gres=each.shared_gres,
        )
    return known


@cache
def load_list_prices() -> Mapping[str, float]:
    """Instance type -> on-demand USD per hour in `LIST_PRICE_REGION`, for Linux, without tax.

    Source: AWS's public price list of 2026-07-20; `python -m local.list_prices` takes a newer one.
    """
    text = (files("tidegate") / "data" / "on_demand_us_east_1.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return MappingProxyType({row["name"]: float(row["usd_per_hour"]) for row in rows})
