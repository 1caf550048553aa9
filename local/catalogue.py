"""Writes the catalogue of instance types: `python -m local.catalogue`.

The figures are those of EC2 DescribeInstanceTypes, as moto ships them; asking moto instead of
AWS makes the file reproducible without an account.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
from moto import mock_aws

CATALOGUE = Path(__file__).parent.parent / "tidegate" / "data" / "instance_types.csv"
COLUMNS = ("name", "kind", "arch", "vcpus", "memory_mib", "gpus", "gpu_type")


@mock_aws
def describe_instance_types() -> list[Mapping[str, Any]]:
    """Every instance type that moto's EC2 knows, in EC2's own shape."""
    ec2 = boto3.client(
        "ec2", region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none"
    )
    pages = ec2.get_paginator("describe_instance_types").paginate()
    return [dict(described) for page in pages for described in page["InstanceTypes"]]


def kind(described: Mapping[str, Any]) -> str:
    """`gpu`, `fractional-gpu`, `neuron`, or "" for a type without any of them."""
    if "GpuInfo" in described:
        return "gpu" if gpus(described) else "fractional-gpu"
    return "neuron" if "NeuronInfo" in described else ""


def gpus(described: Mapping[str, Any]) -> int:
    """Whole GPUs; EC2 counts 0 for a type that has a slice of one."""
    return sum(gpu["Count"] for gpu in described.get("GpuInfo", {}).get("Gpus", ()))


def gpu_type(described: Mapping[str, Any]) -> str:
    """The model as a GRES type: `A10G` is a10g, `RTX PRO 4500` is rtx_pro_4500."""
    models = {gpu["Name"] for gpu in described.get("GpuInfo", {}).get("Gpus", ())}
    assert len(models) <= 1, f"{described['InstanceType']} mixes GPU models: {models}"
    return "".join(models).lower().replace(" ", "_")


def rows() -> Iterator[tuple[str | int, ...]]:
    for described in sorted(describe_instance_types(), key=lambda each: each["InstanceType"]):
        if found := kind(described):
            yield (
                described["InstanceType"],
                found,
                described["ProcessorInfo"]["SupportedArchitectures"][0],
                described["VCpuInfo"]["DefaultVCpus"],
                described["MemoryInfo"]["SizeInMiB"],
                gpus(described),
                gpu_type(described),
            )


def catalogue_csv() -> str:
    """The whole file, sorted by name."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows())
    return text.getvalue()


if __name__ == "__main__":
    CATALOGUE.parent.mkdir(exist_ok=True)
    CATALOGUE.write_text(catalogue_csv())
    print(f"{CATALOGUE.name}: {len(CATALOGUE.read_text().splitlines()) - 1} instance types")
