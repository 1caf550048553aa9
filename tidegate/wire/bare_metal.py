"""How long machines without a hypervisor take to start, each time."""

from collections.abc import Mapping
from typing import Any

from tidegate.core.model.cluster import Pool
from tidegate.wire.catalogue import BARE_METAL

_POOL = Pool(name="", instance_types=(), zones=(), markets=())

# It checks its hardware and firmware before the system starts, after a stop too. Canonical's tests
# have met more than 20 minutes (canonical/pycloudlib#192); no page of AWS's was at hand.
BARE_METAL_BOOT_S = 1200.0


def usual_boot_s(data: Mapping[str, Any]) -> float:
    """`boot_s` of a pool that says none, by its types, which are read before."""
    return BARE_METAL_BOOT_S if _has_bare_metal(data) else _POOL.boot_s


def usual_start_s(data: Mapping[str, Any]) -> float:
    return BARE_METAL_BOOT_S if _has_bare_metal(data) else _POOL.start_s


def _has_bare_metal(data: Mapping[str, Any]) -> bool:
    """Only what says metal means it. Types that have problems of their own are not there."""
    return any(BARE_METAL in entry for entry in data.get("instance_types", ()))
