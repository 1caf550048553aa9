"""The bill of all nodes, those that live still with what they have cost until now."""

from tidegate.core.model.ledger import Bill
from tidegate.core.offers.spend import bill, days_between
from tidegate.ports import Clock, Ledger


def bills(ledger: Ledger, clock: Clock, since_s: float) -> tuple[tuple[Bill, ...], float]:
    """What nodes have cost since then, and until when: of those that live until now, which is the
    second value. Lines may begin earlier. Errors: Throttled, NotAuthorized.
    """
    # In this order a node that ends meanwhile is there twice rather than not at all.
    nodes, now_s = ledger.view().nodes, clock.now_s()
    ended = ledger.bills(days_between(since_s, now_s))
    known = {(each.instance_id, each.since_s) for each in ended}
    living = (bill(each, now_s) for each in nodes if each.ended_at_s is None)
    still = [each for each in living if each and (each.instance_id, each.since_s) not in known]
    return (*ended, *still), now_s
