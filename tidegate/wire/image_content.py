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


def dcgm(file: ClusterFile, arch: str) -> str:
    """What is wanted of DCGM where a pool of this architecture has GPUs of NVIDIA's, in the words
    of the stage dcgm: its exporter, its tests, and those of Volta, of another CUDA.
    """
    every = (each for pool in file.cluster.pools for each in pool.instance_types)
    types = [each for each in every if each.gpus and each.gres == "gpu" and each.arch == arch]
    gpus = {each.gpu_type for each in types}
    has_tests = bool(gpus) and file.images is not None and file.images.dcgm_tests
    asked = {
        "exporter": file.monitoring.prometheus and bool(gpus),
        "tests": has_tests,
        "volta": has_tests and "v100" in gpus,
    }
    return " ".join(name for name, is_asked in asked.items() if is_asked)
