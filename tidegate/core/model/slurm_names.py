"""Names and words that may become arguments of Slurm's commands.

Slurm itself reads more out of a list of nodes than names: `ALL`, `localhost`, hostlists like
`i-[0-9]` and the name of a NodeSet (nodespec_to_hostlist in slurmctld, 22.05 to 26.05).
"""

import math
import re
from collections.abc import Iterator

from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.site_check import is_check

_INSTANCE_ID = re.compile(r"i-[0-9a-f]{8,17}", re.ASCII)

_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
_JOB = re.compile(r"[0-9]{1,10}(_[0-9]{1,10})?", re.ASCII)
_FEATURES = re.compile(r"[A-Za-z0-9_.:+-]{1,100}(&[A-Za-z0-9_.:+-]{1,100}){0,20}", re.ASCII)
_SIGNAL = re.compile(r"([BS]:)?(SIG)?(HUP|INT|QUIT|KILL|USR1|USR2|TERM|CONT|STOP|TSTP|XCPU|URG)")
# What these orders name are jobs; the others name nodes.
ABOUT_JOBS = frozenset(
    {
        *(OrderKind.REQUEUE, OrderKind.HOLD, OrderKind.SIGNAL, OrderKind.CANCEL),
        *(OrderKind.TELL, OrderKind.COMMENT, OrderKind.CONSTRAIN),
    }
)

# Slurm reads them in any case.
_SLURMS_OWN = frozenset({"all", "default", "localhost"})


def is_instance_id(name: str) -> bool:
    """Whether this can be the name of a node that Tidegate launched."""
    return _INSTANCE_ID.fullmatch(name) is not None


def is_node_name(name: str) -> bool:
    """Whether this can be the name of one node, whoever's it is."""
    return _NODE.fullmatch(name) is not None and name.lower() not in _SLURMS_OWN


def is_job_id(job_id: str) -> bool:
    """Whether this is `7` or `7_3`."""
    return _JOB.fullmatch(job_id) is not None


def is_constraint(text: str) -> bool:
    """Whether these are features of which nodes must have all, and nothing else."""
    return _FEATURES.fullmatch(text) is not None


def is_signal(name: str) -> bool:
    """Whether scancel knows this signal by name; "B:" before it: for the script, "S:": steps."""
    return _SIGNAL.fullmatch(name) is not None


def faults(order: Order) -> Iterator[str]:
    """Why the head must not touch this order at all.

    Orders are about jobs, and about nodes that Tidegate launched: they are named after their
    instances, and static ones, which are left alone, are not.
    """
    for name in order.names if order.kind in ABOUT_JOBS else ():
        if not is_job_id(name):
            yield f"{name[:80]!r} is no job id"
    for name in (*(() if order.kind in ABOUT_JOBS else order.names), *order.on_nodes):
        if not is_instance_id(name):
            yield f"{name[:80]!r} is no instance id"
    if order.kind is OrderKind.CONSTRAIN and not is_constraint(order.text):
        yield f"{order.text[:80]!r} is no feature"
    if order.kind is OrderKind.CHECK and not is_check(order.text):
        yield f"{order.text[:80]!r} is no name of a check"
    if "\0" in order.text:
        yield "its text holds a NUL"
    if not math.isfinite(order.not_after_s):
        yield "its time is no finite number"
