"""What to write instead of a value that cannot be read: the remedy beside a refusal."""

import re
from collections.abc import Mapping
from typing import Any

UNITS = {"_s": "seconds", "_gib": "GiB", "_mib": "MiB", "_days": "days"}

_SPAN = re.compile(r"(\d+(?:\.\d+)?) ?(s|sec|m|min|h|hours?|d|days?)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
# Slurm's `days-hours:minutes:seconds`, and `hours:minutes:seconds`.
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d)")
_NUMBER = re.compile(r"[^\d.-]*(-?\d+(?:\.\d+)?)\D*")
_LISTED = re.compile(r"[\w.:/*-]+(?:[, ]+[\w.:/*-]+)*")


# Names of other tools, and where that is said here.
ELSEWHERE = {
    **dict.fromkeys(
        ("ami", "ami_id", "image_id", "custom_ami"),
        "an image of yours is `image`, of a pool or at the top of the file",
    ),
    **dict.fromkeys(
        ("fsx", "fsx_lustre", "lustre"), "FSx for Lustre is `lustre`, at the top of the file"
    ),
    "existing": "a file system that is there already is in `file_systems`, or as"
    " `existing.file_system` the shared one",
    "pools": "pools of nodes are `pools`, at the top of the file; several kinds of login nodes are"
    " `login.kinds`",
    **dict.fromkeys(
        ("ssh_key", "key_name", "key_pair"),
        "there are no key pairs: `tidegate user add` takes keys",
    ),
}


def elsewhere(name: str) -> str:
    """`; an image of yours is ...`, or ""."""
    told = ELSEWHERE.get(name.lower().replace("-", "_"), "")
    return f"; {told}" if told else ""


def unit(name: str) -> str:
    """` of seconds` for `idle_s`; "" where the name tells none."""
    if name.startswith(("usd_", "price")):
        return " of USD"
    return next((f" of {word}" for end, word in UNITS.items() if name.endswith(end)), "")


def instead(wanted: Mapping[str, Any], name: str, value: object) -> str:
    """`; write 300`, or "" where nobody can know what was meant."""
    if not isinstance(value, str):
        return ""
    kind = wanted.get("type")
    if kind == "array" and _LISTED.fullmatch(value):
        return f"; write [{', '.join(re.split(r'[, ]+', value))}]"
    if kind in ("integer", "number") and (number := _number(name, value)):
        return f"; write {number}"
    return ""


def _number(name: str, value: str) -> str:
    if name.endswith("_s"):
        seconds = _seconds(value.strip().lower())
        return "" if seconds is None else f"{seconds:g}"
    found = _NUMBER.fullmatch(value)
    return found[1] if found and found[1] != value and "%" not in value else ""


def _seconds(text: str) -> float | None:
    if found := _SPAN.fullmatch(text):
        return float(found[1]) * _SECONDS[found[2][0]]
    if found := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
        return float(days * 86400 + hours * 3600 + minutes * 60 + seconds)
    return None
