"""What a launch is made of, put together for a deployed cluster."""

import time
from collections.abc import Callable

from tidegate.cli.head import head_shell
from tidegate.cli.live import decisions
from tidegate.cli.probe.cheapest import MOST_USD, cheapest
from tidegate.cli.probe.facts import Fact
from tidegate.cli.probe.launch import Trial
from tidegate.cli.probe.mail import Bell
from tidegate.cli.probe.slurm_job import Shell, SlurmJob
from tidegate.core.explain.history import EventKind
from tidegate.core.model.errors import BadConfig
from tidegate.ports import Clock
from tidegate.wire.config import ClusterFile
from tidegate.wiring.resources import Clients

REFUSALS_SHOWN = 3
LOOKS_READ = 20


def bell_of(file: ClusterFile, clients: Clients) -> Bell:
    return Bell(file, clients)


def trial_of(
    file: ClusterFile,
    clients: Clients,
    clock: Clock,
    tell: Callable[[Fact], None],
    *,
    shell: Shell | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Trial:
    """`shell`: of the head, by default through Session Manager.

    Errors: BadConfig, when nothing is deployed or what there is costs too much; Throttled,
    NotAuthorized.
    """
    kept = decisions(file, clients)

    def refused(job_id: str, since_s: float) -> tuple[str, ...]:
        looks = kept.since(since_s, most=LOOKS_READ)
        about = (each for look in looks for each in look if each.is_about(job=job_id))
        kinds = (EventKind.REFUSED, EventKind.TROUBLE)
        said = dict.fromkeys(each.sentence for each in about if each.kind in kinds)
        newest = kept.newest()
        verdict = newest.verdicts[newest.jobs[job_id]] if newest and job_id in newest.jobs else None
        return (*tuple(said)[:REFUSALS_SHOWN], *([verdict.reason] if verdict else []))

    found = cheapest(file)
    if found is None:
        raise BadConfig("no pool of a partition sells spot or on demand: nothing to launch")
    if found.most_usd > MOST_USD:
        kind = found.instance_type.name
        text = f"a quarter of an hour of the cheapest node, {kind}, costs {found.most_usd:.2f} USD"
        raise BadConfig(f"{text}: more than the {MOST_USD:g} USD that a probe may")
    job = SlurmJob(shell or head_shell(file, clients), refused)
    return Trial(file, clients, job, found, clock, pause, tell)
