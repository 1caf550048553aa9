"""The interruption function: what EC2 and AWS Health say of instances."""

from typing import Any

from tidegate.core.model import events
from tidegate.core.model.errors import BadEvent
from tidegate.service.interruptions import Interruptions
from tidegate.wire.events import parse_event
from tidegate.wiring.function import Answer, Event, Function, entry
from tidegate.wiring.interruption import interruptions


def on_events(made: Function[Interruptions], event: Event) -> Answer:
    """Errors: those of `Interruptions.handle`, for the whole batch: SQS delivers it again."""
    read: list[events.Event] = []
    failed: list[str] = []
    for message in event["Records"]:
        try:
            read.append(_read(made, message))
        except BadEvent:
            failed.append(message["messageId"])
    news: list[events.News] = []
    for each in read:
        if isinstance(each, events.UnknownEvent | events.Look):
            made.count(BadEvents=1)
            made.logger.warning(f"an event of no use here: {str(each)[:1000]}")
        elif isinstance(each, events.NodeReady):
            _tell_of_boot(made, each.instance_id, each.plan_id, stages=each.stages, s=each.took_s)
        else:
            if isinstance(each, events.BootFailed):
                _tell_of_boot(made, each.instance_id, each.plan_id, failed=each.stage)
            elif isinstance(each, events.GpuReset):
                reset = {"instance_id": each.instance_id, "said": each.sentence}
                made.logger.info("GPU reset", extra={"gpu_reset": reset})
            elif isinstance(each, events.NodeOrphaned):
                said = {"instance_id": each.instance_id, "silent_s": each.silent_s}
                made.logger.info("orphaned", extra={"orphaned": said | {"plan_id": each.plan_id}})
            news.append(each)
    _handle(made, news)
    return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}


def _tell_of_boot(
    made: Function[Interruptions], instance_id: str, plan_id: str, **more: object
) -> None:
    """`more`: seconds of each stage and of all, or the stage that failed."""
    said = {"instance_id": instance_id, "plan_id": plan_id, **more}
    made.logger.info("boot", extra={"boot": said})


def _read(made: Function[Interruptions], message: dict[str, Any]) -> events.Event:
    try:
        return parse_event(message["body"])
    except BadEvent as bad:
        made.count(BadEvents=1)
        said = {"reason": str(bad), "body": message["body"][:1000]}
        made.logger.warning("an event cannot be read", extra=said)
        raise


def _handle(made: Function[Interruptions], news: list[events.News]) -> None:
    done = made.work.handle(news)
    fresh = set(done.fresh)  # a node's end is told several times, and counts once
    figures = {
        "Interrupted": len(fresh.intersection(done.node_names)),
        "Cordoned": len(done.cordoned),
        "DeadNodes": len(fresh.intersection(done.dead)),
        "ForeignNotices": done.foreign,
        "BootFailed": done.boot_failed,
        "SavedJobs": done.interruption_loss.saved_jobs,
        "LostGpuHours": done.interruption_loss.lost_gpu_hours,
    }
    # Other people's instances change their state all day; a metric costs by the hour.
    made.count(**{name: value for name, value in figures.items() if value})
    if done.node_names or done.cordoned or done.lifted or done.dead or done.ignored:
        said = {
            "nodes": done.node_names,
            "cordoned": done.cordoned,
            "lifted": done.lifted,
            "dead": done.dead,
            "ignored": done.ignored,
            "foreign": done.foreign,
            "saved_jobs": done.interruption_loss.saved_jobs,
            "lost_gpu_hours": done.interruption_loss.lost_gpu_hours,
            "trouble": done.trouble,
            "plan_ids": done.plan_ids,
        }
        made.logger.info("interruption", extra={"interruption": said})


handler = entry(on_events, interruptions, correlation="Records[0].messageId")
