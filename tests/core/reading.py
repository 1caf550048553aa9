"""Questions that tests ask of a plan."""

from tidegate.core.model.ledger import Launch
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.plan import Plan, Send, Terminate


def launches(made: Plan) -> list[Launch]:
    return [action for action in made.actions if isinstance(action, Launch)]


def orders(made: Plan, kind: OrderKind) -> list[Order]:
    sent = [action.order for action in made.actions if isinstance(action, Send)]
    return [order for order in sent if order.kind is kind]


def ended(made: Plan) -> list[str]:
    ends = [action for action in made.actions if isinstance(action, Terminate)]
    return [name for action in ends for name in action.instance_ids]


def why(made: Plan, job_id: str = "1") -> str:
    return next(each.reason for each in made.unmet if each.job_id == job_id)
