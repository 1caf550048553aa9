"""Every text that a file holds, with its place: for rules that look at all of them."""

from collections.abc import Iterator

from tidegate.wire.problems import Place


def texts_in(data: object) -> Iterator[tuple[Place, str]]:
    """In no order. Each list and section once: YAML's aliases may lead back to themselves."""
    seen: set[int] = set()
    left: list[tuple[Place, object]] = [((), data)]
    while left:
        place, value = left.pop()
        if isinstance(value, dict | list) and id(value) not in seen:
            seen.add(id(value))
            inner = value.items() if isinstance(value, dict) else enumerate(value)
            left += [((*place, key), each) for key, each in inner]
        elif isinstance(value, str):
            yield place, value
