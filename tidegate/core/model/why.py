"""Why a job gets nothing: one value per obstacle, and the sentence that users read."""

from collections.abc import Sequence
from enum import StrEnum
from types import MappingProxyType

from tidegate.core.model.frozen import frozen

SENTENCES_MAX = 4


class Why(StrEnum):
    """What stands in the way."""

    TOO_SMALL = "too-small"  # no type of the pool holds it
    CONSTRAINT = "constraint"
    JOB_TIME = "job-time"  # longer than the pool or the capacity block allows
    DEADLINE = "deadline"  # it cannot be met, or cannot be read
    SPARE_TIME = "spare-time"  # spot is waited for while there is time before its deadline
    CHEAPER = "cheaper"  # what was refused is waited for: that costs less than what is dearer
    PARTITION = "partition"  # a limit of its partition, which no node changes
    MIN_TYPES = "min-types"
    NO_PRICE = "no-price"
    DEAR = "dear"  # spot that costs no less than on demand
    LOSSY = "lossy"  # interruptions of spot would cost the job too much
    NOT_BEGUN = "not-begun"  # a capacity block or reservation that is bought for later
    NO_POOL = "no-pool"
    LIMIT = "limit"
    BUDGET = "budget"  # spent, until its day or month ends
    FAILING = "failing"  # the nodes that were launched lately are no good
    DOUBTED = "doubted"  # nodes are held back, since a check that drained too many may err
    RESTING = "resting"
    BROKEN = "broken"  # rests because its last nodes did not come up
    REFUSED = "refused"  # rests, and waiting alone will not change EC2's answer
    STOPPED = "stopped"
    NODES = "nodes"  # it may start on certain nodes only, and a new one is none of them
    HELD = "held"  # more nodes would not change it
    FUTILE = "futile"  # nodes that fit were there and Slurm did not start it
    SICK = "sick"  # the nodes bought for it became unhealthy before it could start
    FAULTS = "faults"  # its nodes failed again and again, so it is held
    VAIN = "vain"  # nodes came for it and left again while something held it back
    NEXT_PLAN = "next-plan"


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


# So many passes of Slurm's scheduler may leave a job beside idle nodes that fit it.
PASSES_MAX = 3

# Of a job for which nothing is bought for a while.
PASSED_OVER = MappingProxyType(
    {
        Why.SICK: "the nodes bought for it became unhealthy before it could start",
        Why.VAIN: "nodes came for it and went again unused, since a limit held it back meanwhile",
        Why.FUTILE: (
            f"Slurm did not start it in {PASSES_MAX} passes although nodes that fit it were idle"
        ),
    }
)


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
