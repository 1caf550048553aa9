"""Containers of pyxis, as the boot is told of them."""

from dataclasses import dataclass

from userdata.patterns import CONTAINERS, check, check_positive


@dataclass(frozen=True, slots=True)
class Containers:
    """`plugin`: "pyxis", or "". `unused_days`, `max_gib`: of the images that nodes share, see
    node/tidegate-import.sh; 0 where each node imports for itself.
    """

    plugin: str = ""
    unused_days: int = 0
    max_gib: int = 0

    def __post_init__(self) -> None:
        check("containers", self.plugin, CONTAINERS)
        if self.max_gib:
            check_positive("unused_days, max_gib", self.unused_days, self.max_gib)

    @property
    def settings(self) -> dict[str, str]:
        cache = {"CONTAINER_CACHE": f"{self.unused_days} {self.max_gib}"} if self.max_gib else {}
        return {"CONTAINERS": self.plugin, **cache}


NO_CONTAINERS = Containers()
