"""What nodes need that no stage of a boot brings: their image must have it."""

from collections.abc import Iterator

from tidegate.wire.config import ClusterFile


def needed(file: ClusterFile) -> Iterator[tuple[str, str]]:
    """Programs by name and files by path (a `*` stands for anything), and which setting asks."""
    settings = file.gpu.values()
    if any(each.wanted_profiles for each in settings):
        yield "nvidia-mig-parted", "gpu.mig of a pool"
    if any(each.has_mps for each in settings):
        yield "nvidia-cuda-mps-control", "gpu.mps or gpu.mps_per_gpu of a pool"
    if file.efa:
        yield "/opt/amazon/efa_installed_packages", "efa of a pool"


def has_gpu_metrics(file: ClusterFile, arch: str) -> bool:
    """Whether metrics are wanted, and a pool of this architecture has GPUs of NVIDIA's."""
    types = (each for pool in file.cluster.pools for each in pool.instance_types)
    has_gpus = any(each.gpus and each.gres == "gpu" for each in types if each.arch == arch)
    return file.monitoring.prometheus and has_gpus
