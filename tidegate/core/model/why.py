"""Why a job gets nothing: one value per obstacle, and the sentence that users read."""

from collections.abc import Sequence
from types import MappingProxyType

from tidegate.core.model.codes import Coded
from tidegate.core.model.frozen import frozen

SENTENCES_MAX = 4

# So many passes of Slurm's scheduler may leave a job beside idle nodes that fit it.
PASSES_MAX = 3


class Why(Coded):
    """What stands in the way."""

    TOO_SMALL = (
        "too-small",
        "no instance type of the pool holds what the job asks of one node",
        "ask less per node, or add a larger type to the pool",
    )
    CONSTRAINT = (
        "constraint",
        "no node of the pool has the features that the job's --constraint asks for",
        "drop or change the constraint, or add the feature under the pool's labels",
    )
    JOB_TIME = (
        "job-time",
        "its time limit is longer than the pool's max_job_time_s, or than the capacity block lasts",
        "ask less time: scontrol update JobId=ID TimeLimit=HH:MM:SS",
    )
    DEADLINE = (
        "deadline",
        "the deadline in its comment cannot be met, or cannot be read",
        "give it a later deadline, or ask less time",
    )
    SPARE_TIME = (
        "spare-time",
        "it has time until its deadline, so spot is waited for rather than bought on demand",
        "take the deadline out of its comment to have it bought now",
    )
    CHEAPER = (
        "cheaper",
        "what EC2 refused is waited for: that is expected to cost less than what is dearer",
        "raise waiting.usd_per_job_hour if waiting costs more than the file says",
    )
    PARTITION = (
        "partition",
        "a limit of its Slurm partition forbids it, which no node changes",
        "submit it to another partition, or change the partition in the cluster file",
    )
    MIN_TYPES = (
        "min-types",
        "fewer instance types fit it than the pool's flexibility.min_types asks for",
        "add types to the pool, or lower flexibility.min_types",
    )
    NO_PRICE = (
        "no-price",
        "the price of what fits is not known, so no limit in money could be kept",
        "add it under prices_usd_per_hour in the cluster file",
    )
    DEAR = (
        "dear",
        "spot costs no less there than on demand now",
        "have the pool buy on demand too (capacity_types)",
    )
    LOSSY = (
        "lossy",
        "interruptions of spot are expected to cost the job more than spot saves",
        "have it write checkpoints and be requeued, or let the pool buy on demand",
    )
    NOT_BEGUN = (
        "not-begun",
        "what fits it is a capacity block or reservation that begins later",
        "wait until it begins, or have the pool buy by the hour too",
    )
    NO_POOL = (
        "no-pool",
        "no pool serves its partition",
        "submit it to a partition that has pools",
    )
    LIMIT = (
        "limit",
        "a limit of pool, cluster or account leaves no room for its nodes",
        "wait for nodes to be released, or raise the limit that the sentence names",
    )
    BUDGET = (
        "budget",
        "a budget of money is spent until its day or month ends",
        "wait for the next day or month, or raise the budget",
    )
    FAILING = (
        "failing",
        "the last nodes of the pool were no good, so it buys no more for a while",
        "see `tidegate node log NODE` of the last one; then `tidegate retry POOL`",
    )
    DOUBTED = (
        "doubted",
        "nodes are held back, since a health check that drained too many may err",
        "mend the check, then `tidegate retry POOL`",
    )
    RESTING = (
        "resting",
        "EC2 refused what fits a moment ago, and it is tried again when its rest is over",
        "wait, or have the pool allow more types, zones or markets",
    )
    BROKEN = (
        "broken",
        "what fits rests because its last nodes did not come up",
        "see `tidegate node log NODE`, mend image, hook or file system, then `tidegate retry POOL`",
    )
    REFUSED = (
        "refused",
        "EC2 refuses what fits, and waiting alone will not change its answer",
        "do what the sentence says, then `tidegate retry POOL`",
    )
    STOPPED = (
        "stopped",
        "the calendar, or a person, has stopped the cluster",
        "wait for its next start, or `tidegate keep-up`",
    )
    NODES = (
        "nodes",
        "it may start on certain nodes only, and a new one is none of them",
        "submit it without -w and outside of the reservation, or wait for those nodes",
    )
    HELD = (
        "held",
        "Slurm holds it for a reason that more nodes would not change",
        "see the job's reason in squeue: scontrol show job ID",
    )
    FUTILE = (
        "futile",
        f"Slurm did not start it in {PASSES_MAX} passes although nodes that fit it were idle",
        "see what Slurm does with it: scontrol show job ID, slurmctld.log",
    )
    SICK = (
        "sick",
        "the nodes bought for it became unhealthy before it could start",
        "see `tidegate nodes` for what drained them",
    )
    FAULTS = (
        "faults",
        "its nodes failed again and again, so it is held",
        "look at what it does to its nodes, then scontrol release ID",
    )
    VAIN = (
        "vain",
        "nodes came for it and went again unused, since a limit held it back meanwhile",
        "see the job's limits in Slurm; nothing is bought for it for a while",
    )
    NEXT_PLAN = (
        "next-plan",
        "what fits it was used up by other jobs of this look, or has just come",
        "wait: the next look is a minute away at most",
    )


# What would fit is held back: by us for a while, or by what somebody has to put right.
PASSING = frozenset(
    {
        *(Why.LIMIT, Why.BUDGET, Why.FAILING, Why.RESTING, Why.BROKEN, Why.REFUSED),
        Why.LOSSY,
        Why.SPARE_TIME,
        Why.CHEAPER,
        Why.DOUBTED,
        Why.NOT_BEGUN,
        Why.NEXT_PLAN,
    }
)


# Of a job for which nothing is bought for a while.
PASSED_OVER = MappingProxyType({each: each.meaning for each in (Why.SICK, Why.VAIN, Why.FUTILE)})


@frozen
class WhyNot:
    """One obstacle. `pool` "": not one pool's. `offering`: the one that rests, or the nearest
    that would fit. `until_s`: when it passes by itself, None: not by itself.
    `missing`: dimension, what the job asks of a node (None: without end), the most that the pool
    has.
    `remedy`: what somebody has to do, "": nothing is known.
    `words`: EC2's own, of what rests.
    """

    kind: Why
    sentence: str
    pool: str = ""
    offering: str = ""
    until_s: float | None = None
    missing: tuple[tuple[str, float | None, float], ...] = ()
    remedy: str = ""
    words: str = ""


def told(why_nots: Sequence[WhyNot]) -> str:
    """The first few sentences, and how many more there are.

    What would fit and is held back says more than all that would not.
    """
    passing = [each for each in why_nots if each.kind in PASSING]
    sentences = list(dict.fromkeys(each.sentence for each in passing or why_nots))
    more = len(sentences) - SENTENCES_MAX
    rest = f"; and {more} more" if more > 0 else ""
    return "; ".join(sentences[:SENTENCES_MAX]) + rest
