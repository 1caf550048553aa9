"""The interruption function: what EC2 and AWS Health say of instances, spot notices first."""

from collections.abc import Sequence

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from tidegate.core.errors import BadEvent
from tidegate.core.interruption import Notice
from tidegate.wire import events
from tidegate.wiring import Answer, Event, Function, entry


def on_events(made: Function, event: Event) -> Answer:
    """Errors: those of `Control.interrupt`, for the whole batch: SQS delivers it again."""
    read: list[events.Event] = []
    processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
    with processor(event["Records"], lambda record: read.append(_read(made, record))):
        processor.process()
    _save(made, [each for each in read if isinstance(each, events.SpotInterruption)])
    for useless in (each for each in read if isinstance(each, events.UnknownEvent | events.Look)):
        made.count(BadEvents=1)
        made.logger.warning(f"an event of no use here: {str(useless)[:1000]}")
    touched = {name for each in read for name in events.touched(each)}
    ours = made.control.look_if_ours(touched, "EC2 says that nodes change")
    made.count(ForeignNotices=len(touched) - len(ours))
    return dict(processor.response())


def _read(made: Function, record: SQSRecord) -> events.Event:
    try:
        return events.parse_event(record.body)
    except BadEvent as bad:
        made.count(BadEvents=1)
        said = {"reason": str(bad), "body": record.body[:1000]}
        made.logger.warning("an event cannot be read", extra=said)
        raise


def _save(made: Function, spot: Sequence[events.SpotInterruption]) -> None:
    notice_s = made.control.cluster.timings.spot_notice_s
    done = made.control.interrupt([Notice(one.instance_id, one.at_s + notice_s) for one in spot])
    made.count(Interrupted=len(done.node_names), ForeignNotices=done.foreign)
    if spot:
        said = {"nodes": done.node_names, "foreign": done.foreign, "trouble": done.trouble}
        made.logger.info("spot interruption", extra={"interruption": said})


handler = entry(on_events, correlation="Records[0].messageId")
