"""What `tidegate mcp` answers: the words of the commands, with `-o json`."""

import json
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tidegate.cli.options import Output
from tidegate.core.model.frozen import frozen

if TYPE_CHECKING:
    from tidegate.wire.config import ClusterFile
    from tidegate.wiring.resources import Clients

# A language model reads about four characters as a token; few take more than this of one answer.
ANSWER_MAX = 200_000

JobId = Annotated[str, Field(description="As squeue shows it: 7, 7_3 or 7+1.")]
Pool = Annotated[str, Field(description="Of this pool only; empty: of all.")]
OfJob = Annotated[str, Field(description="Of this job only; empty: of all.")]
OfNode = Annotated[str, Field(description="Of this node only, an instance id; empty: of all.")]
Back = Annotated[str, Field(description="How far back: 90s, 15m, 2h, 7d; seven days at most.")]
By = Annotated[str, Field(description="One of job, user, account, partition, pool, type and day.")]
Since = Annotated[str, Field(description="A span back, 7d, or a day in UTC, 2026-11-01.")]

# boto3's session, which all clients come from, is not for several threads at once.
# Source: boto3 guide, "Session": similar to Resource objects, sessions are not thread safe.
_ONE_AT_A_TIME = Lock()


@frozen
class Tools:
    """Each reads the cluster file again: it may have changed since the program began.

    Errors of each: TidegateError, and a usage error for a value that cannot be meant.
    """

    cluster: Path
    clients: "Clients | None" = None

    @property
    def every(self) -> tuple[Callable[..., str], ...]:
        return (self.why, self.status, self.nodes, self.events, self.cost)

    def why(self, job_id: JobId) -> str:
        """Why a job waits: what Slurm says, the planner's verdict, pool by pool why not, what is
        on its way for it, and what would help.
        """
        from tidegate.cli.shown import encoded
        from tidegate.cli.why import answered, named_job

        job = named_job(job_id) or job_id
        with _ONE_AT_A_TIME:
            return _bounded(encoded(answered(self._file(), job, self.clients), Output.JSON))

    def status(self) -> str:
        """The cluster at a glance: queue, pools, limits, budgets, resting offerings, alarms, and
        in `needs_a_look` what a person should see to.
        """
        from tidegate.cli.shown import encoded
        from tidegate.cli.status import seen

        with _ONE_AT_A_TIME:
            return _bounded(encoded(seen(self._file(), self.clients), Output.JSON))

    def nodes(self, pool: Pool = "") -> str:
        """Each node that is paid for: stage, age, cost, its jobs, what would end it, what holds
        it.
        """
        from tidegate.cli.nodes import paid_for
        from tidegate.cli.shown import encoded

        with _ONE_AT_A_TIME:
            return _bounded(encoded(paid_for(self._file(), pool, self.clients), Output.JSON))

    def events(
        self, job: OfJob = "", node: OfNode = "", pool: Pool = "", since: Back = "1h"
    ) -> str:
        """What the planner decided and met, oldest first, each with a code and a sentence."""
        from tidegate.cli.events import happened, span_of
        from tidegate.cli.shown import encoded

        back_s = span_of(since)
        with _ONE_AT_A_TIME:
            every, _ = happened(self._file(), back_s, self.clients)
        found = [each for each in every if each.is_about(job=job, node=node, pool=pool)]
        return _bounded(encoded(found, Output.JSON))

    def cost(self, by: By = "user", since: Since = "7d") -> str:
        """What jobs have cost in USD, and their GPU-hours, by one property of them; a row without
        a name is time that nobody's job had: of nodes without a job kept on purpose, waiting by a
        decision, drained, or idle of which nothing is known. Asks Slurm's accounting on the head.
        """
        from tidegate.cli.cost_by import as_data
        from tidegate.cli.cost_command import spent_by

        with _ONE_AT_A_TIME:
            found = spent_by(self._file(), by, since, self.clients)
        return _bounded(json.dumps(as_data(found), indent=2))

    def _file(self) -> "ClusterFile":
        from tidegate.wire.config import load_cluster

        return load_cluster(self.cluster)


def _bounded(text: str) -> str:
    """Errors: Permanent, the answer is too long to be read by anybody."""
    from tidegate.core.model.errors import Permanent

    if len(text) > ANSWER_MAX:
        raise Permanent(
            f"the answer has {len(text):,} characters, and at most {ANSWER_MAX:,} are given: ask"
            " for a shorter time, or for one job, node or pool"
        )
    return text
