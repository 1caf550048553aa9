"""When drawn jobs must have ended; read without the planner."""

import re

ASKED = re.compile(r"tidegate:deadline=(\d+)")


def due_by_s(comment: str) -> float | None:
    """Epoch seconds; None: at any time."""
    found = ASKED.search(comment)
    return float(found[1]) if found else None
