"""Reservations written into the text of a cluster file: nothing else in it changes."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import yaml

from tidegate.core.model.cluster import Reservation
from tidegate.core.model.errors import BadConfig
from tidegate.wire.finite import parse_json
from tidegate.wire.yaml_file import parse_yaml

type Edit = tuple[int, str]  # where in the text, and what is put there


def with_reservations(
    text: str, reservations: Iterable[Reservation], pools: Collection[str]
) -> str | None:
    """The text with the reservations, and their market first in what these pools buy.

    None: it cannot be said where they would go, as with anchors or tags; then a person adds
    `lines`.
    """
    made: str | None = text
    for each in reservations:
        made = _with_reservation(made, each, pools) if made is not None else None
    return made


def _with_reservation(text: str, reservation: Reservation, pools: Collection[str]) -> str | None:
    expected = meant(text, [reservation], pools)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode), "parse_yaml takes nothing else"
    edits = [*_reservation(root, text, reservation)]
    for pool in pools:
        edits += _market(root, pool, str(reservation.market))
    made = text
    for at, what in sorted(set(edits), reverse=True):
        made = made[:at] + what + made[at:]
    try:
        after, repeated = parse_yaml(made, "the file")
        is_right = not repeated and after == expected
    except (BadConfig, ValueError):  # ValueError: an alias within what it names
        return None
    return made if is_right else None


def meant(text: str, reservations: Sequence[Reservation], pools: Collection[str]) -> dict[str, Any]:
    """What the file says once the reservations are in it, whoever writes them there."""
    before, _ = parse_yaml(text, "the file")
    # As text, so that what an alias shares is changed in one place and not in both.
    made: Any = parse_json(json.dumps(before))
    made["reservations"] = [*(made.get("reservations") or []), *map(_values, reservations)]
    for market in dict.fromkeys(str(each.market) for each in reservations):
        for pool in pools:
            types = made["pools"][pool]["capacity_types"]
            if market not in types:
                made["pools"][pool]["capacity_types"] = [market, *types]
    return dict(made)


def lines(reservations: Sequence[Reservation], pools: Collection[str]) -> Iterator[str]:
    """What to add by hand."""
    yield "reservations:"
    yield from (f"  - {_entry(each)}" for each in reservations)
    for market in dict.fromkeys(each.market for each in reservations):
        yield from (f"# and in pools.{pool}.capacity_types, first: {market}" for pool in pools)


def _values(reservation: Reservation) -> dict[str, str]:
    assert reservation.ends_at_s is not None, "a block ends"
    return {
        "id": reservation.id,
        "kind": str(reservation.market),
        "instance_type": reservation.instance_type,
        "zone": reservation.zone,
        "count": str(reservation.count),
        "starts_at": _instant(reservation.starts_at_s),
        "ends_at": _instant(reservation.ends_at_s),
    }


def _instant(at_s: float) -> str:
    """ISO 8601, whose colons YAML reads as text within quotes."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _entry(reservation: Reservation) -> str:
    told = (
        f'{key}: "{value}"' if ":" in value else f"{key}: {value}"
        for key, value in _values(reservation).items()
    )
    return "{" + ", ".join(told) + "}"


def _reservation(root: yaml.MappingNode, text: str, of: Reservation) -> Iterator[Edit]:
    found = _child(root, "reservations")
    entry = _entry(of)
    if not isinstance(found, yaml.SequenceNode):
        gap = "" if text.endswith("\n") else "\n"
        yield len(text), f"{gap}\nreservations:\n  - {entry}\n"
    elif found.flow_style:
        yield found.end_mark.index - 1, f", {entry}" if found.value else entry
    else:
        at = text.find("\n", _last(found).end_mark.index)
        dash = " " * found.start_mark.column
        yield (len(text), f"\n{dash}- {entry}\n") if at < 0 else (at + 1, f"{dash}- {entry}\n")


def _market(root: yaml.MappingNode, pool: str, market: str) -> Iterator[Edit]:
    types = _child(_child(_child(root, "pools"), pool), "capacity_types")
    if not isinstance(types, yaml.SequenceNode) or not types.value:
        return
    if market in {each.value for each in types.value}:
        return
    if types.flow_style:
        yield types.start_mark.index + 1, f"{market}, "
    else:
        yield types.start_mark.index, f"- {market}\n{' ' * types.start_mark.column}"


def _child(node: yaml.Node | None, name: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((child for key, child in node.value if key.value == name), None)


def _last(node: yaml.Node) -> yaml.Node:
    """The last text within it: its own end is where the next thing begins."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return node
