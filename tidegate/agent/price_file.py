"""The planner's prices as a file, which `userdata/head/job_submit.lua` reads at each submission.

Worth less than all else that the agent does: what cannot be written is said once and left.
"""

import logging
from dataclasses import dataclass
from pathlib import Path

from tidegate.core.explain.verdicts import Verdicts
from tidegate.core.offers.price_list import ListedPrice

# In the agent's state folder, /var/lib/tidegate.
NAME = "prices"
# Bounds what a file in the bucket can make of a submission: 2,000 lines take slurmctld 2 ms.
ROWS_MAX = 2_000

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class PriceFile:
    """Kept as new as the newest verdicts. `folder` None: there is none."""

    folder: Path | None
    _written: tuple[int, tuple[ListedPrice, ...]] = (0, ())
    _has_trouble: bool = False

    def write(self, found: Verdicts) -> None:
        """Replace it where it says something new, or is an hour old. Raises nothing."""
        news = int(found.at_s // 3600), found.prices[:ROWS_MAX]
        if self.folder is None or not found.prices or news == self._written:
            return
        path = self.folder / NAME
        try:
            new = path.with_suffix(".new")
            new.write_text(text_of(int(found.at_s), news[1]))
            new.replace(path)
            self._written, self._has_trouble = news, False
        except OSError as error:
            if not self._has_trouble:
                logger.warning("Prices for submissions cannot be written: %s", error)
            self._has_trouble = True


def text_of(at_s: int, prices: tuple[ListedPrice, ...]) -> str:
    """When they were asked for (epoch seconds), then one a line; `-` is no GPU type. Behind the
    price of GPUs that are shared stand the GRES and how many of it each GPU gives.
    """
    lines = [f"at {at_s}"]
    for each in prices:
        kind = each.gpu_type or "-"
        size = f"{each.gpus} {kind} {each.cpus} {each.memory_mib}"
        shares = f" {each.shared_gres} {each.shards_per_gpu}" if each.shards_per_gpu else ""
        lines.append(
            f"{each.partition} {each.instance_type} {size} {each.usd_per_hour:.6g}{shares}"
        )
    return "".join(f"{line}\n" for line in lines)
