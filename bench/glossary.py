"""The glossary of the code's own words, from the docstrings of the classes that bear them.

    python -m bench.glossary > docs/glossary.md      (`make screens` does it)

The fields of a class are told there too; here stands what the word means, the first sentence.
"""

import inspect
import re
from importlib import import_module

ROOMS = {
    "model": (
        "The words of the ledger, of orders and of plans",
        "ec2:Offering ec2:Market ec2:Template ec2:Refusal ec2:Cure resting:Resting ledger:Launch "
        "ledger:NodeRecord ledger:Phase ledger:Cordon ledger:Charge ledger:Stretch "
        "ledger:InterruptionLoss pool_history:PoolHistory finding:Finding finding:StoppedCheck "
        "digest:Digest rollout:Rollout rollout:Step rollout:Tally site_check:SiteCheck "
        "site_check:Checked site_check:CheckJob idle_check:IdleChecks idle_check:AskedCheck "
        "idle_check:CheckedNode idle_check:PairChecks idle_check:TriedPair idle_check:SickNode "
        "ended:EndedJob snapshot:Snapshot "
        "snapshot:Epoch events:Look orders:Order calendar:Wanted budgets:Budget stuck:Stuck "
        "plan:Plan plan:Served plan:Unmet plan:Learn plan:Mark plan:Adopt plan:Rest plan:Reprice "
        "plan:Watch why:Why why:WhyNot cluster:Pool cluster:Limits",
    ),
    "demand": ("What jobs need", "demand:Need where:Places where:Where accounting:Caps"),
    "offers": (
        "What is for sale",
        "catalogue:Catalogue offers:OfferGroup offers:OfferGroups offers:Option places:SickPlace "
        "reservations:ReservedCapacity limits:Load limits:Usage",
    ),
    "interruption": (
        "What AWS takes back",
        "policy:Reclaim policy:Dead policy:Lift save:InterruptionNotice",
    ),
    "fleet": (
        "What there is",
        "members:Member judge:Judged judge:Use drains:Hand holds:Hold templates:Roll "
        "allowance:Allowance",
    ),
    "buy": (
        "What a plan buys",
        "bins:Bin fillers:Item groups:Group groups:Slot blueprint:Blueprint "
        "pending_launch:PendingLaunch launches:LaunchBuilder purchase:Purchase steering:Steering",
    ),
    "passes": (
        "The passes of the planner",
        "room:Room queue:Queue queue:Gang queue:Part departures:Departures",
    ),
    "explain": (
        "What people are told",
        "verdicts:Verdict node_report:NodeReport node_report:Prospect",
    ),
}

HEAD = """\
# Glossary
One word for one thing. *Job, partition, node, GRES, feature, constraint, hostlist, requeue, drain,
reservation, licence, association, QOS* mean what they mean in Slurm; *instance, instance type,
availability zone, launch template, fleet, override, spot interruption, rebalance recommendation,
Capacity Block* what they mean in EC2; *pool, weight, limits, disruption budget, consolidation,
drift, do-not-disrupt* what they mean in Karpenter, whose NodePool is our pool. *Cordon* is
kubectl's word.

| word | meaning |
|---|---|
| look | one turn of the control loop: observe, plan, apply; events only ask for one |
| gang | the nodes of one job that has to start on all of them at once |
| gate | its nodes join drained, and are opened together when all are there |
| poke | make slurmctld run a scheduling pass now |
| hint | a node's weight, by which Slurm prefers the node that will live longer |
| closed node | drained by us while jobs are about for which a much cheaper node is sold |
| futile | a launch for a job that could have started on nodes that are there, and does not |

Below are the words of `tidegate/core`, by room; made from the docstrings (`make screens`).
"""


def meaning(name: str) -> str:
    """The first sentence of a docstring, on one line."""
    module, _, of = name.partition(":")
    text = inspect.getdoc(getattr(import_module(module), of))
    assert text, f"{name} has no docstring"
    first = re.split(r"(?<=[.])\s", " ".join(text.split("\n\n")[0].split()), maxsplit=1)[0]
    return first.rstrip(".;:").replace("|", "\\|")


def rows(room: str, names: str) -> list[str]:
    found = []
    for name in sorted(names.split(), key=lambda each: each.partition(":")[2]):
        module, _, of = name.partition(":")
        said = meaning(f"tidegate.core.{room}.{name}")
        found.append(f"| `{of}` | {said} | `{room}/{module}.py` |")
    return found


def text() -> str:
    parts = [HEAD]
    for room, (title, names) in ROOMS.items():
        table = ["| word | meaning | where |", "|---|---|---|", *rows(room, names)]
        parts.append("\n".join([f"## {title}", *table]) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(text(), end="")
