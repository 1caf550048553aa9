"""A plan in words that a user understands."""

from typing import assert_never

from tidegate.core.model.ledger import Launch
from tidegate.core.model.plan import (
    Action,
    Adopt,
    Learn,
    Mark,
    Plan,
    Reprice,
    Rest,
    Resume,
    Send,
    Stop,
    Terminate,
    Watch,
)


def sentence(action: Action) -> str:
    """One action as one sentence, with its reason."""
    match action:
        case Launch():
            return f"launch {action.reason}"
        case Resume():
            return f"finish launch {action.launch_id}: {action.reason}"
        case Send():
            return f"{action.order.kind} {', '.join(action.order.names)}: {action.reason}"
        case Terminate():
            return f"terminate {', '.join(action.instance_ids)}: {action.reason}"
        case Stop():
            return f"stop {', '.join(action.instance_ids)}: {action.reason}"
        case Mark():
            return f"note {action.instance_id} as {action.phase.name.lower()}: {action.reason}"
        case Reprice():
            return f"count what {action.instance_id} has cost: {action.reason}"
        case Adopt():
            return f"adopt {action.record.instance_id}: {action.reason}"
        case Rest():
            of = f" of pool {action.pool}" if action.pool else ""
            return f"rest {action.offering}{of}: {action.reason}"
        case Watch():
            return f"watch {action.reason}"
        case Learn():
            return f"remember {action.reason}"
        case _:
            assert_never(action)


def describe(plan: Plan) -> str:
    """The whole plan, a line each; the same text in dry run, log and tests."""
    lines = [*plan.notes, *(sentence(action) for action in plan.actions)]
    lines.extend(f"job {each.job_id} is served: {each.reason}" for each in plan.served)
    lines.extend(f"job {each.job_id} waits: {each.reason}" for each in plan.unmet)
    return "\n".join(lines) if lines else "nothing to do"
