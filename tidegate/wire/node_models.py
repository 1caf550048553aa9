"""What a pool wants of its nodes beside the hardware, and what their image holds."""

from typing import Annotated, Literal

from pydantic import Field

from tidegate.wire.section import PositiveCount, Section

type ComputeMode = Literal["default", "exclusive-process", "prohibited"]
type KernelModule = Literal["open", "proprietary"]
type ImageOs = Literal["ubuntu24.04", "ubuntu22.04", "ubuntu20.04", "al2023", "al2"]

# The words of `image`, and how the id of an image of one's own begins.
DLAMI = "dlami"
INSTALL = "install"
OWN_IMAGE = "ami-"

Version = Annotated[
    str,
    Field(
        pattern=r"^[0-9]+(\.[0-9]+)*([.-]?[a-z0-9]+)*$",
        json_schema_extra={"x-expected": "a version like 580.105.08, in quotes"},
    ),
]


class GpuModel(Section):
    """Settings of a pool's NVIDIA GPUs; what is left out stays as the card has it."""

    power_limit_w: PositiveCount | None = Field(
        default=None, description="watts that one GPU may draw; the card refuses what it cannot"
    )
    clock_mhz: PositiveCount | None = Field(
        default=None, description="MHz at which a GPU's cores are held"
    )
    compute_mode: ComputeMode | None = Field(
        default=None, description="how many processes share a GPU, in nvidia-smi's words"
    )


class SoftwareModel(Section):
    """What is in an image of your own, and what jobs bring; checked against known facts."""

    os: ImageOs | None = Field(default=None, description="the image's system")
    driver: Version | None = Field(default=None, description="NVIDIA's driver, like 580.105.08")
    kernel_module: KernelModule | None = Field(
        default=None, description="the flavour of the driver's kernel modules"
    )
    fabric_manager: Version | None = Field(
        default=None, description="NVIDIA's fabric manager, for machines with NVSwitch"
    )
    efa_installer: Version | None = Field(default=None, description="EFA's installer, like 1.50.0")
    aws_ofi_nccl: Version | None = Field(
        default=None, description="NCCL's plugin for EFA, like 1.21.1"
    )
    cuda: Version | None = Field(
        default=None, description="the CUDA toolkit that jobs are built with, like 13.0"
    )
    nccl: Version | None = Field(default=None, description="the NCCL that jobs bring")
