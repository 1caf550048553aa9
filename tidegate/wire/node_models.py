"""What a pool wants of its nodes beside the hardware: settings that the boot applies."""

from typing import Literal

from pydantic import Field

from tidegate.wire.section import PositiveCount, Section

type ComputeMode = Literal["default", "exclusive-process", "prohibited"]


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
