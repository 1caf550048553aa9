"""What a pool wants of its nodes beside the hardware, and what their image holds."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from tidegate.core.model.devices import MPS
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.mig import SLICES, Profile, profile
from tidegate.wire import names
from tidegate.wire.compat_facts import mig_facts, mig_instances
from tidegate.wire.section import Section

type ComputeMode = Literal["default", "exclusive-process", "prohibited"]
type KernelModule = Literal["open", "proprietary"]
Containers = Annotated[
    Literal["pyxis"] | None,
    Field(
        description="pyxis: containers by srun --container-image; with images, which bakes it for"
        " nodes, or with an image of your own that holds enroot and pyxis"
    ),
]
type Users = Literal["sssd"]
type ImageOs = Literal["ubuntu24.04", "ubuntu22.04", "ubuntu20.04", "al2023", "al2"]

# The words of `image`, and how the id of an image of one's own begins.
DLAMI = "dlami"
OWN_IMAGE = "ami-"
# The systems of the images that are not one's own.
OS_OF_IMAGE: dict[str, ImageOs] = {
    DLAMI: "ubuntu24.04",
    "install": "ubuntu24.04",
    "install-ubuntu22.04": "ubuntu22.04",
    "install-al2023": "al2023",
}
HEAD_OS: ImageOs = "ubuntu24.04"  # of the image that is not one's own: the agent needs Python 3.12

MigProfile = Annotated[
    str,
    Field(
        pattern=r"^[1-7]g\.[0-9]{1,3}gb([+-][a-z]+(\.all)?)?$",
        json_schema_extra={"x-expected": "a MIG profile like 1g.10gb"},
    ),
]
PlainMigProfile = Annotated[
    str,
    Field(
        pattern=r"^[1-7]g\.[0-9]{1,3}gb$",
        json_schema_extra={"x-expected": "a plain MIG profile like 1g.10gb (none with + or -)"},
    ),
]
Version = Annotated[
    str,
    Field(
        pattern=r"^[0-9]+(\.[0-9]+)*([.-]?[a-z0-9]+)*$",
        json_schema_extra={"x-expected": "a version like 580.105.08, in quotes"},
    ),
]


class GpuModel(Section):
    """Settings of a pool's NVIDIA GPUs; what is left out stays as the card has it."""

    power_limit_w: Annotated[int, Field(ge=50, le=3000)] | None = Field(
        default=None, description="watts that one GPU may draw; the card refuses what it cannot"
    )
    clock_mhz: Annotated[int, Field(ge=100, le=5000)] | None = Field(
        default=None, description="MHz at which a GPU's cores are held"
    )
    mig: MigProfile | None = Field(
        default=None,
        description="every GPU is cut into as many instances of this MIG profile as it holds,"
        " like 1g.10gb; each is a device of GRES type like a100_1g.10gb",
    )
    mig_profiles: Annotated[tuple[PlainMigProfile, ...], AfterValidator(names.no_repeats)] = Field(
        default=(),
        description="MIG profiles that jobs may ask for; the GPUs of each node are cut into these"
        " as the jobs need that wait when it is bought, also differently. A node without such jobs"
        " has the first",
    )
    shards_per_gpu: Annotated[int, Field(ge=2, le=64)] | None = Field(
        default=None,
        description="into so many shards Slurm counts each GPU (--gres=shard:2); jobs share its"
        " memory, and nothing keeps them from each other's",
    )
    mps_per_gpu: Annotated[int, Field(ge=2, le=1000)] | None = Field(
        default=None,
        description="what Slurm counts of MPS on each GPU, usually 100: a job with --gres=mps:25"
        " then shares a GPU and may use a quarter of its multiprocessors. Nothing keeps its memory"
        " from others",
    )
    mps: bool = Field(
        default=False,
        description="a Multi-Process Service (MPS) for each job, so that its programs share GPUs",
    )
    compute_mode: ComputeMode | None = Field(
        default=None, description="how many processes share a GPU, in nvidia-smi's words"
    )

    @model_validator(mode="after")
    def _shares_one_way(self) -> Self:
        ways = ("mig", "mig_profiles", "shards_per_gpu", "mps_per_gpu", "mps")
        if len(asked := [way for way in ways if getattr(self, way)]) > 1:
            raise ValueError(f"{' and '.join(asked)}: choose one")
        if self.shared_by and self.compute_mode not in (None, "default"):
            jobs = "two jobs" if self.shards_per_gpu else "jobs of two users"
            raise ValueError(
                f"compute_mode {self.compute_mode} and {self.shared_by}: choose one, since only"
                f" compute_mode default lets {jobs} on a GPU"
            )
        return self

    @property
    def wanted_profiles(self) -> tuple[str, ...]:
        """Every MIG profile that nodes may have."""
        return (self.mig,) if self.mig else self.mig_profiles

    @property
    def shared_by(self) -> str:
        """The key that has Slurm count parts of a GPU, "" for none."""
        keys = ("shards_per_gpu", "mps_per_gpu")
        return next((key for key in keys if getattr(self, key)), "")

    @property
    def has_mps(self) -> bool:
        """Nodes start daemons of MPS."""
        return bool(self.mps or self.mps_per_gpu)

    def cut(self, instance_type: InstanceType) -> InstanceType:
        """The type as Slurm sees it: with MIG, an instance of a GPU is a device.

        A profile that the GPU does not have leaves it whole; rule R02 refuses it.
        """
        if self.mig_profiles:
            return replace(instance_type, profiles=_profiles(instance_type, self.mig_profiles))
        if self.shards_per_gpu:
            return replace(instance_type, shards_per_gpu=self.shards_per_gpu)
        if self.mps_per_gpu:
            return replace(instance_type, shards_per_gpu=self.mps_per_gpu, shared_gres=MPS)
        count = mig_instances(instance_type.name, self.mig) if self.mig else 0
        if not count or not self.mig:
            return instance_type
        return replace(
            instance_type,
            gpus=instance_type.gpus * count,
            gpu_type=mig_type(instance_type.gpu_type, self.mig),
            cut_into=_cut_into(instance_type, self.mig, count),
        )


def _cut_into(of: InstanceType, name: str, most: int) -> Profile:
    """Of one with media extensions nobody knows where it may stand: as large a part as can be."""
    slices, _ = mig_facts(of.name)
    gpu_type = mig_type(of.gpu_type, name)
    found = profile(name, gpu_type, most=most, slices=slices)
    return found or Profile(name, gpu_type, SLICES // most, tuple(range(most)))


def _profiles(instance_type: InstanceType, wanted: Iterable[str]) -> tuple[Profile, ...]:
    """Those of the profiles that the GPUs of the type have."""
    slices, known = mig_facts(instance_type.name)
    found = (
        profile(name, mig_type(instance_type.gpu_type, name), most=known[name], slices=slices)
        for name in wanted
        if name in known
    )
    return tuple(each for each in found if each)


def mig_type(gpu_type: str, profile: str) -> str:
    """The GRES type of a MIG instance.

    As Slurm's AutoDetect names it: a type that begins with a digit would be read as a count.
    """
    return f"{gpu_type}_{profile.replace('+', '.')}"


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
    libfabric: Version | None = Field(
        default=None, description="where it is not that of EFA's installer"
    )
    aws_ofi_nccl: Version | None = Field(
        default=None, description="NCCL's plugin for EFA, like 1.21.1"
    )
    cuda: Version | None = Field(
        default=None, description="the CUDA toolkit that jobs are built with, like 13.0"
    )
    nccl: Version | None = Field(default=None, description="the NCCL that jobs bring")
