"""The interruption function: what EC2 and AWS Health say of instances."""

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from tidegate.core import events
from tidegate.core.errors import BadEvent
from tidegate.wire.events import parse_event
from tidegate.wiring import Answer, Event, Function, entry


def on_events(made: Function, event: Event) -> Answer:
    """Errors: those of `Control.interrupt`, for the whole batch: SQS delivers it again."""
    read: list[events.Event] = []
    processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
    with processor(event["Records"], lambda record: read.append(_read(made, record))):
        processor.process()
    news: list[events.News] = []
    for each in read:
        if isinstance(each, events.UnknownEvent | events.Look):
            made.count(BadEvents=1)
            made.logger.warning(f"an event of no use here: {str(each)[:1000]}")
        else:
            news.append(each)
    _handle(made, news)
    return dict(processor.response())


def _read(made: Function, record: SQSRecord) -> events.Event:
    try:
        return parse_event(record.body)
    except BadEvent as bad:
        made.count(BadEvents=1)
        said = {"reason": str(bad), "body": record.body[:1000]}
        made.logger.warning("an event cannot be read", extra=said)
        raise


def _handle(made: Function, news: list[events.News]) -> None:
    done = made.control.interrupt(news)
    made.count(
        Interrupted=len(done.node_names),
        Cordoned=len(done.cordoned),
        DeadNodes=len(done.dead),
        ForeignNotices=done.foreign,
        SavedJobs=done.saved_jobs,
        LostGpuHours=done.lost_gpu_hours,
    )
    if done.node_names or done.cordoned or done.dead:
        said = {
            "nodes": done.node_names,
            "cordoned": done.cordoned,
            "dead": done.dead,
            "foreign": done.foreign,
            "saved_jobs": done.saved_jobs,
            "lost_gpu_hours": done.lost_gpu_hours,
            "trouble": done.trouble,
        }
        made.logger.info("interruption", extra={"interruption": said})


handler = entry(on_events, correlation="Records[0].messageId")
