"""The instance types that Tidegate knows, from `tidegate/data/instance_types.csv`."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from tidegate.core.ec2 import InstanceType


class Kind(StrEnum):
    """What an instance type computes with."""

    GPU = "gpu"
    FRACTIONAL_GPU = "fractional-gpu"
    NEURON = "neuron"


@dataclass(frozen=True, slots=True)
class CatalogueRow:
    """One line of the catalogue.

    Source: EC2 DescribeInstanceTypes; `python -m local.catalogue` writes it. `gpus` is 0 and
    means nothing for fractional and Neuron types; `gpu_type` is "" for Neuron.
    """

    name: str
    kind: Kind
    arch: str
    vcpus: int
    memory_mib: int
    gpus: int
    gpu_type: str

    @property
    def instance_type(self) -> InstanceType:
        return InstanceType(
            name=self.name,
            vcpus=self.vcpus,
            memory_mib=self.memory_mib,
            gpus=self.gpus,
            gpu_type=self.gpu_type,
        )


def _row(line: Mapping[str, str]) -> CatalogueRow:
    return CatalogueRow(
        name=line["name"],
        kind=Kind(line["kind"]),
        arch=line["arch"],
        vcpus=int(line["vcpus"]),
        memory_mib=int(line["memory_mib"]),
        gpus=int(line["gpus"]),
        gpu_type=line["gpu_type"],
    )


@cache
def load_catalogue() -> Mapping[str, CatalogueRow]:
    """Instance type name -> its row; read once per process."""
    text = (files("tidegate") / "data" / "instance_types.csv").read_text(encoding="utf-8")
    rows = map(_row, csv.DictReader(text.splitlines()))
    return MappingProxyType({row.name: row for row in rows})
