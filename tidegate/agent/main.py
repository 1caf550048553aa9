"""The agent on a real head: settings, composition, logs, signals."""

import json
import logging
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import override

from tidegate.adapters.clock import SystemClock
from tidegate.adapters.imds import instance_id
from tidegate.adapters.slurm_accounting import Here, SlurmAccounting
from tidegate.adapters.slurm_cli import SlurmCli
from tidegate.adapters.slurm_command import CommandRunner
from tidegate.adapters.wall import wall
from tidegate.agent.gpu_time import GpuTimes
from tidegate.agent.gpu_use import GpuUses
from tidegate.agent.hand_in import HandIn
from tidegate.agent.heartbeats import Heartbeats
from tidegate.agent.idle_time import IdleTimes
from tidegate.agent.loop import Agent
from tidegate.agent.lost_work import LostWorks
from tidegate.agent.meter import Meter
from tidegate.agent.metrics import MetricsFolder
from tidegate.agent.notes import Notes
from tidegate.agent.price_file import PriceFile
from tidegate.agent.run import Service
from tidegate.agent.settings import Settings
from tidegate.agent.users import UserList
from tidegate.agent.watch import Waker
from tidegate.core.explain.verdicts import Verdicts
from tidegate.core.model.errors import BadConfig, TidegateError
from tidegate.core.model.orders import plan_of
from tidegate.wiring.agent import agent_bus, agent_decisions, agent_reports

logger = logging.getLogger("tidegate.agent")


class JsonLines(logging.Formatter):
    """One JSON object per line; `message` is a sentence."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname,
            "message": record.getMessage(),
            "thread": record.threadName,
        }
        if order_id := getattr(record, "order_id", None):
            line["order_id"] = order_id
            if plan_id := plan_of(order_id):
                line["plan_id"] = plan_id
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_as_json() -> None:
    """What the head's journal keeps of this process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    # They tell where they found credentials and endpoints, at every start.
    for name in ("boto3", "botocore"):
        logging.getLogger(name).setLevel(logging.WARNING)


def main() -> None:
    """Run until SIGTERM; exit 2: bad settings, exit 1: broken, systemd starts it again."""
    log_as_json()
    try:
        settings = Settings.from_environment(os.environ)
    except BadConfig as error:
        logger.critical("%s", error)
        sys.exit(2)
    try:
        run(settings)
    except Exception:
        logger.critical("The agent ends and has to be started again.", exc_info=True)
        sys.exit(1)


def run(settings: Settings) -> None:
    """Compose the agent for this head and run it until SIGTERM or SIGINT."""
    started_at_s = time.time()
    head_instance_id = settings.head_instance_id or _ask_instance_id()
    bus = agent_bus(settings)
    slurm = SlurmCli(CommandRunner(str(settings.slurm_conf or "")))
    meter = Meter(started_at_s)
    heartbeats, lost_works, gpu_uses = _of_jobs(settings, meter)
    agent = Agent(
        slurm=slurm,
        bus=bus,
        clock=SystemClock(),
        cluster=settings.cluster,
        head_instance_id=head_instance_id,
        agent_started_at_s=started_at_s,
        heartbeat_s=settings.heartbeat_s,
        tell=wall,
        meter=meter,
        beats=heartbeats,
        gpu_uses=gpu_uses,
        progress=heartbeats.progress,
        lost_works=lost_works,
        stopwatch=time.monotonic,
    )
    # systemd's, see userdata/head/agent.sh: it goes when the head goes.
    state = Path(found) if (found := os.environ.get("STATE_DIRECTORY")) else None
    users = UserList(settings.shared_dir, state)
    prices = PriceFile(state)
    decisions = agent_decisions(settings)

    def newest() -> Verdicts | None:
        found = decisions.newest()
        if found:
            meter.judged(found)
            prices.write(found)
        return found

    with Waker(settings.slurmctld_log) as waker:
        service = Service(
            agent,
            bus,
            waker,
            every_poll=users.refresh,
            notes=Notes(newest, slurm, SystemClock()),
            metrics=_metrics(settings, meter),
            heartbeats=heartbeats,
            lost_works=lost_works,
            gpu_uses=gpu_uses,
            hand_in=_hand_in(settings, state),
            idle_times=IdleTimes(settings.shared_dir, SystemClock(), lambda: meter.standing),
        )

        def stop(signum: int, frame: FrameType | None) -> None:
            service.stop()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        logger.info("The agent of %s runs on head %s.", settings.cluster, head_instance_id)
        service.run()
    logger.info("The agent was asked to stop and has stopped.")


def _of_jobs(settings: Settings, meter: Meter) -> tuple[Heartbeats, LostWorks, GpuUses]:
    """What looks at jobs' files, and at what nodes tell of their GPUs."""
    of, now = settings.shared_dir, SystemClock()
    gpu_uses = GpuUses(of, now, GpuTimes(of, now, meter.gpu_time))
    return Heartbeats(of), LostWorks(now, of), gpu_uses


def _metrics(settings: Settings, meter: Meter) -> MetricsFolder | None:
    if settings.metrics_dir is None:
        return None
    return MetricsFolder(settings.metrics_dir, settings.cluster, meter, SystemClock())


def _hand_in(settings: Settings, state: Path | None) -> HandIn | None:
    if settings.report_every is None:
        return None
    here = Here(CommandRunner(str(settings.slurm_conf or "")))
    return HandIn(
        settings.report_every,
        SlurmAccounting(here, str(settings.shared_dir)).exported,
        agent_reports(settings).hand_in,
        SystemClock(),
        state,
    )


def _ask_instance_id() -> str:
    """The head's instance id; waits for a metadata service that is late, as at boot."""
    said = False
    while True:
        try:
            return instance_id()
        except TidegateError as error:
            if not said:
                logger.warning("Waiting for the head's instance id: %s", error)
            said = True
            time.sleep(2.0)


if __name__ == "__main__":
    main()
