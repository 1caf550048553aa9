"""The queues: looks, interruptions, orders to the head, and what could not be handled."""

from aws_cdk import Duration
from aws_cdk import aws_sqs as sqs
from constructs import Construct

FUNCTION_TIMEOUT_S = 45

# A message must stay hidden for longer than its function may live.
VISIBILITY_S = 60

# The functions drop what they cannot read themselves: what comes back this often is trouble.
MAX_RECEIVES = 5

# A head that dies while it asks for orders takes what it was given with it: hidden for longer,
# a spot notice's order would come back when its two minutes are over. The agent carries a
# repeated order out once.
ORDER_VISIBILITY_S = 20
# An order waits for a silent slurmctld until it expires, at most two minutes.
ORDER_MAX_RECEIVES = 10

# Looks, notices and orders say what was true: after an hour nobody should act on them.
KEPT = Duration.hours(1)
DEAD_KEPT = Duration.days(14)


class Queues(Construct):
    """Five queues and two for dead letters. A FIFO queue needs a FIFO one for its dead."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self.dead = self._queue("Dead", kept=DEAD_KEPT)
        self.dead_looks = self._queue("DeadLooks", kept=DEAD_KEPT, is_fifo=True)
        self.looks = self._queue("Looks", dead=self.dead_looks, is_fifo=True)
        self.interruptions = self._queue("Interruptions", dead=self.dead)
        self.urgent = self._orders("Urgent")
        self.routine = self._orders("Routine")

    def _orders(self, id: str) -> sqs.Queue:
        return self._queue(
            id,
            dead=self.dead,
            visibility_s=ORDER_VISIBILITY_S,
            max_receives=ORDER_MAX_RECEIVES,
        )

    def _queue(
        self,
        id: str,
        *,
        kept: Duration = KEPT,
        dead: sqs.Queue | None = None,
        is_fifo: bool = False,
        visibility_s: int = VISIBILITY_S,
        max_receives: int = MAX_RECEIVES,
    ) -> sqs.Queue:
        redrive = sqs.DeadLetterQueue(queue=dead, max_receive_count=max_receives) if dead else None
        return sqs.Queue(
            self,
            id,
            fifo=True if is_fifo else None,
            content_based_deduplication=True if is_fifo else None,
            visibility_timeout=Duration.seconds(visibility_s),
            retention_period=kept,
            dead_letter_queue=redrive,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )
