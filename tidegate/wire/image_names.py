"""Where AWS and Canonical say what their newest images are."""

from tidegate.wire.node_models import HEAD_OS

# Sources: Canonical, "Find Ubuntu images with SSM" (on gp2 until 22.04); AWS Deep Learning AMIs,
# release notes of the base image with the NVIDIA driver for Ubuntu 24.04; Amazon Linux 2023 user
# guide, "AL2023 on Amazon EC2".
DLAMI = "/aws/service/deeplearning/ami/{}/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
_UBUNTU = "/aws/service/canonical/ubuntu/server/{}/stable/current/{{}}/hvm/ebs-{}/ami-id"
PLAIN = {
    "ubuntu24.04": _UBUNTU.format("24.04", "gp3"),
    "ubuntu22.04": _UBUNTU.format("22.04", "gp2"),
    "al2023": "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{}",
}
# What a parameter of ours says until an image was baked. Parameter Store takes no empty one.
NOT_BAKED = "none"
UBUNTUS_WORDS = {"x86_64": "amd64"}
UBUNTUS_ROOT = "/dev/sda1"
_ROOT_DEVICES = {"al2023": "/dev/xvda", "al2": "/dev/xvda"}


def parent_image(arch: str, os: str = HEAD_OS, *, installs_driver: bool = True) -> str:
    """The SSM parameter with the id of an image; `arch` in EC2's word."""
    if not installs_driver:
        return DLAMI.format(arch)
    return PLAIN[os].format(arch if os == "al2023" else UBUNTUS_WORDS.get(arch, arch))


def baked_image(cluster: str, arch: str) -> str:
    """The SSM parameter with the id of the image that was baked last, or `NOT_BAKED`.

    Image Builder may write below /imagebuilder/ alone, by its service-linked role. Source: AWS
    managed policy reference, AWSServiceRoleForImageBuilder.
    """
    return f"/imagebuilder/tidegate/{cluster}/{arch}"


def pipeline_name(cluster: str, arch: str) -> str:
    """Of pipeline, recipe and component. In ARNs Image Builder writes - for _."""
    return f"tidegate-{cluster}-{arch.replace('_', '-')}"


def root_device(os: str) -> str:
    """What an image of this system calls its root disk; Ubuntu's name for one that is unknown."""
    return _ROOT_DEVICES.get(os, UBUNTUS_ROOT)
