"""`tidegate validate --live`: images that are there, and for the machines that boot from them."""

from typing import Any

from tests.cli.region import ARM_IMAGE, LARGE_IMAGE, Region, names, region
from tests.contracts.conftest import cloud

__all__ = ["cloud", "names", "region"]


def test_an_image_for_other_processors_is_refused(region: Region):
    assert region.told({"image": ARM_IMAGE}) == [
        f"image {ARM_IMAGE} is for arm64, what boots from it is x86_64",
        f"image {ARM_IMAGE} is pending, not available",
    ]


def test_a_head_of_arm_processors_takes_an_image_of_them(region: Region):
    arm = {"instance_type": "m7g.large"}
    compiled = (
        "pools.t4: nodes are x86_64, and {} arm64: programs that are compiled there do not run"
    )

    def told(changes: dict[str, Any]) -> list[str]:
        return sorted(line.partition(" on these nodes")[0] for line in region.told(changes))

    assert told({"head": {**arm, "image": ARM_IMAGE}}) == [
        f"head.image {ARM_IMAGE} is pending, not available",
        compiled.format("the head"),
    ]
    assert told({"head": {"image": ARM_IMAGE}}) == [
        f"head.image {ARM_IMAGE} is for arm64, what boots from it is x86_64",
        f"head.image {ARM_IMAGE} is pending, not available",
    ]
    assert told({"head": arm}) == [compiled.format("the head")]
    assert told({"login": arm}) == [compiled.format("login nodes")]


def test_the_image_of_a_pool_is_asked_for_as_the_cluster_s_is(region: Region):
    assert region.told({"pools.t4.image": ARM_IMAGE}) == [
        f"pools.t4.image {ARM_IMAGE} is for arm64, what boots from it is x86_64",
        f"pools.t4.image {ARM_IMAGE} is pending, not available",
    ]
    (told,) = region.told({"pools.t4.image": LARGE_IMAGE})
    assert told.startswith("pools.t4.root_gib 100 GiB, the root volume of")
    region.root_device, own = "/dev/xvda", {"pools.t4.image": LARGE_IMAGE, "pools.t4.root_gib": 120}
    (told,) = region.told(own)
    assert told.startswith(
        f"pools.t4.image {LARGE_IMAGE} calls its root disk /dev/xvda, and /dev/s"
    )
    assert not region.told({**own, "software.os": "al2023"})
