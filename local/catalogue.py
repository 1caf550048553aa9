"""Writes the catalogue of instance types: `python -m local.catalogue`.

The figures are those of EC2 DescribeInstanceTypes, as moto ships them; asking moto instead of
AWS makes the file reproducible without an account. Types that moto does not know are added
from AWS's own pages. To refresh it: `uv lock --upgrade-package moto`, this command, then
`python -m local.offerings` and `python -m local.list_prices`.

CPU types are there from c4, m4, r4 and t2 on, bare metal too, which has no hypervisor. Accelerators
that Slurm's GRES are not set up for (FPGA, media) are left out, and Apple's machines.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
from moto import mock_aws

CATALOGUE = Path(__file__).parent.parent / "tidegate" / "data" / "instance_types.csv"
COLUMNS = (
    *("name", "kind", "arch", "vcpus", "memory_mib", "gpus", "gpu_type"),
    *("gpu_memory_mib", "local_nvme_gib", "efa", "threads_per_core"),
)
# The last families before Nitro that are still sold in numbers.
XEN_FAMILIES = frozenset({"c4", "m4", "r4", "t2"})
UNKNOWN_ACCELERATORS = ("FpgaInfo", "MediaAcceleratorInfo", "InferenceAcceleratorInfo")
# Of these moto does not always say that they have accelerators.
ACCELERATED = ("dl", "inf", "trn", "vt")
# Source: the pages of EC2's accelerated computing instances; moto knows only p3dn of them. They do
# not say: the NVMe of p6e-gb200 (EKS user guide, "UltraServers"), whose GPUs nvidia-smi calls
# GB200; the devices of trn2u, which are those of trn2 (AWS Neuron, "Amazon EC2 Trn2 Architecture").
ADDED = (
    ("p3.16xlarge", "gpu", "x86_64", 64, 499712, 8, "v100", 16384, 0, "", 2),
    ("p3.2xlarge", "gpu", "x86_64", 8, 62464, 1, "v100", 16384, 0, "", 2),
    ("p3.8xlarge", "gpu", "x86_64", 32, 249856, 4, "v100", 16384, 0, "", 2),
    ("p6e-gb200.36xlarge", "gpu", "arm64", 144, 983040, 4, "gb200", 189440, 20954, "efa", 1),
    ("trn2u.48xlarge", "neuron", "x86_64", 192, 2097152, 16, "trainium2", 524288, 7078, "efa", 2),
)
GB_PER_GIB = 1e9 / 2**30


@mock_aws
def describe_instance_types() -> list[Mapping[str, Any]]:
    """Every instance type that moto's EC2 knows, in EC2's own shape."""
    ec2 = boto3.client(
        "ec2", region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none"
    )
    pages = ec2.get_paginator("describe_instance_types").paginate()
    return [dict(described) for page in pages for described in page["InstanceTypes"]]


def kind(described: Mapping[str, Any]) -> str:
    """`gpu`, `fractional-gpu`, `neuron`, `cpu`, or "" for a type of no use here."""
    if "GpuInfo" in described:
        return "gpu" if devices(described) else "fractional-gpu"
    if "NeuronInfo" in described:
        return "neuron"
    return "cpu" if _computes(described) else ""


def _computes(described: Mapping[str, Any]) -> bool:
    family = described["InstanceType"].split(".")[0]
    return (
        (described.get("Hypervisor") == "nitro" or described["BareMetal"] or family in XEN_FAMILIES)
        and not any(each in described for each in UNKNOWN_ACCELERATORS)
        and not family.startswith(ACCELERATED)
        and arch(described) in ("arm64", "x86_64")
    )


def arch(described: Mapping[str, Any]) -> str:
    """The newest of its architectures: t2 also takes 32 bits."""
    architectures: list[str] = described["ProcessorInfo"]["SupportedArchitectures"]
    return architectures[-1]


def _accelerators(described: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    gpus: list[Mapping[str, Any]] = described.get("GpuInfo", {}).get("Gpus", [])
    neurons: list[Mapping[str, Any]] = described.get("NeuronInfo", {}).get("NeuronDevices", [])
    return [*gpus, *neurons]


def devices(described: Mapping[str, Any]) -> int:
    """Whole GPUs or Neuron devices; EC2 counts 0 for a type that has a slice of a GPU."""
    return sum(each["Count"] for each in _accelerators(described))


def gpu_type(described: Mapping[str, Any]) -> str:
    """The model as a GRES type: `A10G` is a10g, `RTX PRO 4500` is rtx_pro_4500."""
    models = {each["Name"] for each in _accelerators(described)}
    assert len(models) <= 1, f"{described['InstanceType']} mixes models: {models}"
    return "".join(models).lower().replace(" ", "_")


def memory_of_one_mib(described: Mapping[str, Any]) -> int:
    """The memory of one GPU or Neuron device, of a slice where there is only that."""
    return max((each["MemoryInfo"]["SizeInMiB"] for each in _accelerators(described)), default=0)


def rows() -> Iterator[tuple[str | int, ...]]:
    for described in describe_instance_types():
        if found := kind(described):
            nvme_gb = described.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0)
            yield (
                described["InstanceType"],
                found,
                arch(described),
                described["VCpuInfo"]["DefaultVCpus"],
                described["MemoryInfo"]["SizeInMiB"],
                devices(described),
                gpu_type(described),
                memory_of_one_mib(described),
                int(nvme_gb * GB_PER_GIB),
                "efa" if described["NetworkInfo"]["EfaSupported"] else "",
                described["VCpuInfo"]["DefaultThreadsPerCore"],
            )
    yield from ADDED


def catalogue_csv() -> str:
    """The whole file, sorted by name."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(sorted(rows()))
    return text.getvalue()


if __name__ == "__main__":
    CATALOGUE.parent.mkdir(exist_ok=True)
    CATALOGUE.write_text(catalogue_csv())
    print(f"{CATALOGUE.name}: {len(CATALOGUE.read_text().splitlines()) - 1} instance types")
