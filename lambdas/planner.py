"""The planner: one look, however many messages asked for it; a look never fails its messages."""

from dataclasses import asdict

from tidegate.core.model.errors import BadEvent, TidegateError
from tidegate.core.model.events import Look
from tidegate.service.control import Looked
from tidegate.service.describe import look_events, look_record, look_verdicts
from tidegate.service.dry_runs import dry_runs
from tidegate.service.figures import look_figures, mail_figures
from tidegate.wire.events import parse_event
from tidegate.wiring.function import Answer, Event, Function, entry
from tidegate.wiring.planner import Planner, planner


def on_looks(made: Function[Planner], event: Event) -> Answer:
    if "dry_runs" in event:  # `tidegate probe` asks what this role may launch
        return _dry_runs(made.work)
    for message in event.get("Records", ()):
        _read(made, message)
    try:
        looked = made.work.control.look()
        made.logger.info("look", extra={"look": look_record(looked)})
        made.count(**look_figures(looked))
        _keep(made, looked)
        _tell(made, looked)
    except Exception:
        # A mistake of ours must not lock the queue's one group: the next look is near.
        made.logger.exception("the look failed")
        made.count(LookFailed=1)
    return {"batchItemFailures": []}


def _dry_runs(work: Planner) -> Answer:
    """What EC2 says to each pool; trouble is an answer too, for nobody's alarm."""
    control = work.control
    try:
        tried = dry_runs(control.cluster, control.placement, work.ec2)
        return {"dry_runs": [asdict(each) for each in tried]}
    except TidegateError as trouble:
        return {"trouble": f"{type(trouble).__name__}: {trouble}"}


def _keep(made: Function[Planner], looked: Looked) -> None:
    """Store what was decided for those who ask; a look is as good without."""
    at_s = made.work.control.clock.now_s()
    try:
        if verdicts := look_verdicts(looked):
            made.work.decisions.keep(verdicts)
        if events := look_events(looked, at_s):
            made.work.decisions.append(events)
    except TidegateError as trouble:
        made.logger.error(f"the decisions cannot be stored: {trouble}")


def _tell(made: Function[Planner], looked: Looked) -> None:
    """Tell people what they asked to be told of; what could not be told now, the next look does."""
    if (teller := made.work.teller) is None:
        return
    try:
        if mails := teller.write(looked):
            made.count(**mail_figures(mails))
            made.work.decisions.append(mails)
        if told := teller.tell(looked):
            made.logger.info("people were told", extra={"notices": told})
    except TidegateError as trouble:
        made.logger.error(f"people cannot be told: {trouble}")


def _read(made: Function[Planner], message: Event) -> None:
    """A failed message would lock its group too, so what nothing can read is put aside here."""
    body, message_id = message["body"], message["messageId"]
    try:
        asked = parse_event(body)
        if not isinstance(asked, Look):
            raise BadEvent(f"the event is no look: {asked}")
    except BadEvent as bad:
        made.count(BadEvents=1)
        said = {"reason": str(bad), "message_id": message_id, "body": body[:1000]}
        made.logger.warning("a message of the look queue cannot be read", extra=said)
        try:
            made.work.dead_looks.keep(body, message_id=message_id, reason=str(bad))
        except TidegateError as trouble:
            made.logger.error(f"the message cannot be put aside: {trouble}")


handler = entry(on_looks, planner, correlation="Records[0].messageId")
