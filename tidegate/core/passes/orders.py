"""Orders as passes give them, and how a plan numbers them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypedDict, Unpack

from tidegate.core.model.drain_reason import DrainReason
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.plan import Action, Send
from tidegate.core.model.snapshot import Snapshot

# In whatever state, as long as it is not DOWN. A drain with a guard does not outlive its node, and
# a delete with one says that the node's machine lives.
ANY_STATE = ("IDLE", "MIXED", "ALLOCATED")

_NOT_NUMBERED = ""


class Guard(TypedDict, total=False):
    """What has to hold as the head carries an order out: see `Order`."""

    only_if: tuple[str, ...]
    on_nodes: tuple[str, ...]
    despite: str
    restarts: int | None


def order(
    kind: OrderKind,
    names: tuple[str, ...],
    text: str | DrainReason,
    *,
    why: str = "",
    is_budgeted: bool = False,
    opens_for: str = "",
    **guard: Unpack[Guard],
) -> Send:
    """An order without its number. `why`: the reason for people, if `text` is no drain reason."""
    said = why or (text.sentence if isinstance(text, DrainReason) else text)
    given = Order(_NOT_NUMBERED, kind, names, not_after_s=0.0, text=str(text), **guard)
    return Send(given, said, is_budgeted, opens_for)


def numbered(actions: Iterable[Action], snapshot: Snapshot) -> Iterator[Action]:
    """The actions of a plan; its orders get their numbers, in turn, and the time until they count.

    Orders about what AWS takes back are numbered by their notice: they are in many plans.
    """
    not_after_s = snapshot.now_s + snapshot.cluster.timings.order_ttl_s
    number = 0
    for each in actions:
        if isinstance(each, Send) and each.order.order_id == _NOT_NUMBERED:
            order_id = f"{snapshot.epoch}-o{number}"
            own = replace(each.order, order_id=order_id, not_after_s=not_after_s)
            yield replace(each, order=own)
            number += 1
        else:
            yield each
