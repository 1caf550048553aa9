"""Where AWS and Canonical say what their newest images are."""

# Sources: Canonical, "Find Ubuntu images with SSM"; AWS Deep Learning AMIs, release notes of
# the base image with the NVIDIA driver for Ubuntu 24.04.
UBUNTU = "/aws/service/canonical/ubuntu/server/24.04/stable/current/{}/hvm/ebs-gp3/ami-id"
DLAMI = "/aws/service/deeplearning/ami/{}/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
UBUNTUS_WORDS = {"x86_64": "amd64"}


def parent_image(arch: str, *, installs_driver: bool) -> str:
    """The SSM parameter with the id of the nodes' image; `arch` in EC2's word."""
    if installs_driver:
        return UBUNTU.format(UBUNTUS_WORDS.get(arch, arch))
    return DLAMI.format(arch)
