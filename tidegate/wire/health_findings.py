"""What a node may be found to have (`tidegate/data/findings.txt`), and a site's own word on it."""

import re
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Annotated

from pydantic import AfterValidator

from tidegate.core.model.frozen import frozen
from tidegate.wire.problems import did_you_mean, shown

# The kernel's and the driver's new errors may be named before the table has them.
_ANY_OF = re.compile(r"s?xid [1-9][0-9]{0,5}|neuron [A-Z][A-Z_]{0,99}")
# What others of the gate read, and what says only what the rows above say.
_NO_FINDINGS = ("facts", "kernel")


class OwnAction(StrEnum):
    """What a cluster file may have follow from a finding."""

    IGNORE = "ignore"
    TELL = "tell"
    RESET = "reset"
    REBOOT = "reboot"
    REPLACE = "replace"


@frozen
class FindingRow:
    """One thing that a node may be found to have, as the table's head says of its columns."""

    source: str
    name: str
    action: str
    severity: str
    retest: str
    asked: str
    words: str

    @property
    def key(self) -> str:
        """How people name it: `xid 79`, and `ecc` of a check."""
        return self.name if self.source in ("gpu", "node") else f"{self.source} {self.name}"


@cache
def table() -> tuple[FindingRow, ...]:
    """In its order; several rows of the kernel's words may have one key. Read once per process."""
    text = (files("tidegate") / "data" / "findings.txt").read_text(encoding="utf-8")
    rows = (line.split(maxsplit=6) for line in text.splitlines() if not line.startswith("#"))
    return tuple(FindingRow(*row) for row in rows)


def _known(key: str) -> str:
    """Errors: ValueError, for what no node can find."""
    keys = {row.key: None for row in table() if row.key not in _NO_FINDINGS}
    if key not in keys and not _ANY_OF.fullmatch(key):
        remedy = did_you_mean(key, list(keys)) or "; tidegate findings shows all"
        raise ValueError(f"{shown(key)} is nothing that a node finds{remedy}")
    return key


FindingKey = Annotated[str, AfterValidator(_known)]
