"""The planner's handler: what it makes of its messages, whatever is in them."""

from dataclasses import replace

import pytest

from lambdas.planner import on_looks
from tests.core.test_idle_gpus import idle
from tests.lambdas.conftest import Context, Deployed, messages
from tests.make import NOW_S, cluster, job, node, pool
from tests.wire.test_events import DIGEST_PUT, SPOT_WARNING
from tidegate.core.model.errors import NotAuthorized, Throttled
from tidegate.service.telling import Owners
from tidegate.sim.owner_mail import SimMail
from tidegate.wire.events import encode_look
from tidegate.wiring.function import serve

LOOK = encode_look("reconcile", look_id="1", at="2026-01-06T00:00:00+00:00")
DONE: dict[str, list[object]] = {"batchItemFailures": []}


def test_ten_messages_are_one_look(deployed: Deployed) -> None:
    deployed.world.report([job(1)])

    assert on_looks(deployed.planner, messages(*[LOOK, DIGEST_PUT] * 5)) == DONE

    (line,) = deployed.lines()
    assert line["message"] == "look"
    assert len(line["look"]["rounds"]) == 1
    assert len(deployed.world.compute.requests) == 1
    assert deployed.figures()["LookFailed"] == 0
    assert deployed.figures()["Launched"] == 1


@pytest.mark.parametrize(
    "body",
    ["{not json", "", '{"look": 7}', SPOT_WARNING, DIGEST_PUT | {"detail": "no object"}],
)
def test_a_body_that_is_no_look_is_put_aside_and_the_look_happens(
    deployed: Deployed, body: object
) -> None:
    event = messages(LOOK, body)

    assert on_looks(deployed.planner, event) == DONE

    ((kept, reason),) = deployed.dead.kept.values()
    assert kept == event["Records"][1]["body"]
    assert reason.startswith("the event")
    assert [line["message"] for line in deployed.lines()] == [
        "a message of the look queue cannot be read",
        "look",
    ]
    assert deployed.figures()["BadEvents"] == 1
    assert deployed.figures()["LookFailed"] == 0


def test_a_body_that_cannot_be_put_aside_is_in_the_log_and_the_look_happens(
    deployed: Deployed,
) -> None:
    def refuse(point: str) -> None:
        if point == "before keep":
            raise NotAuthorized("no sqs:SendMessage")

    deployed.break_with(refuse)

    assert on_looks(deployed.planner, messages("{not json")) == DONE

    first, second, third = deployed.lines()
    assert first["body"] == "{not json"
    assert "no sqs:SendMessage" in second["message"]
    assert third["message"] == "look"


def test_a_throttled_table_fails_the_look_and_not_its_messages(deployed: Deployed) -> None:
    def throttle(point: str) -> None:
        if point == "before view":
            raise Throttled("ProvisionedThroughputExceededException")

    deployed.break_with(throttle)

    assert on_looks(deployed.planner, messages(LOOK)) == DONE

    (line,) = deployed.lines()
    assert "ProvisionedThroughputExceeded" in line["look"]["trouble"]
    assert deployed.figures()["LookFailed"] == 1


def test_a_mistake_of_ours_is_logged_with_its_place_and_fails_no_message(
    deployed: Deployed,
) -> None:
    def mistake(point: str) -> None:
        if point == "before view":
            raise ZeroDivisionError(point)

    deployed.break_with(mistake)

    assert on_looks(deployed.planner, messages(LOOK)) == DONE

    (line,) = deployed.lines()
    assert (line["level"], line["exception_name"]) == ("ERROR", "ZeroDivisionError")
    assert deployed.figures() == {"LookFailed": 1}


def test_a_mistake_of_ours_after_the_look_fails_no_message_either(deployed: Deployed) -> None:
    deployed.kept.trouble = ZeroDivisionError()
    deployed.world.report([job(1)])

    assert on_looks(deployed.planner, messages(LOOK)) == DONE

    assert len(deployed.world.compute.requests) == 1
    assert deployed.lines()[-1]["exception_name"] == "ZeroDivisionError"
    assert deployed.figures()["LookFailed"] == 1


def test_every_line_carries_request_and_correlation_and_the_figures_go_out(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = serve(on_looks, deployed.planner, correlation="Records[0].messageId")

    for _ in range(2):
        handler(messages(LOOK), Context())

    for line in deployed.lines():
        assert (line["function_request_id"], line["correlation_id"]) == ("request-1", "m-0")
    figures = capsys.readouterr().out.splitlines()
    assert len(figures) == 2
    for each in figures:
        assert '"Dimensions":[["cluster","service"]]' in each
        assert '"LookFailed":[0.0]' in each


def test_verdicts_and_what_was_done_are_kept_for_who_asks(deployed: Deployed) -> None:
    deployed.world.report([job(1), job(2, gpus=64)])

    on_looks(deployed.planner, messages(LOOK))
    on_looks(deployed.planner, messages(LOOK))

    first, second = deployed.kept.verdicts
    assert first.of("1") is not None
    assert [each.jobs for each in first.launches] == [("1",)]
    (verdict,) = [each for each in second.verdicts if not each.is_served]
    assert second.of("2") == verdict
    assert {each.pool for each in verdict.why_nots} == {"t4", "a10g"}
    # The second look changed nothing, so there is nothing to read about it.
    (events,) = deployed.kept.looks
    assert [each.kind for each in events] == ["decision", "launched"]
    assert [each.jobs for each in events] == [("1",), ("1",)]
    assert {(each.look_id, each.at_s) for each in events} == {(first.plan_id, first.at_s)}


def test_a_job_without_time_limit_has_a_verdict_where_its_pools_ask_for_one() -> None:
    deployed = Deployed(file=cluster(replace(pool(), max_job_time_s=3600.0)))
    deployed.world.report([job(1, time_limit_s=None)])

    on_looks(deployed.planner, messages(LOOK))

    (kept,) = deployed.kept.verdicts
    (why_not,) = kept.verdicts[0].why_nots
    assert why_not.missing == (("time_limit_s", None, 3600.0),)


def test_decisions_that_cannot_be_stored_leave_the_look_as_good(deployed: Deployed) -> None:
    deployed.kept.trouble = NotAuthorized("no s3:PutObject")
    deployed.world.report([job(1)])

    assert on_looks(deployed.planner, messages(LOOK)) == DONE

    assert len(deployed.world.compute.requests) == 1
    assert "the decisions cannot be stored: no s3:PutObject" in str(deployed.lines()[-1])
    assert deployed.figures()["LookFailed"] == 0


def test_who_asks_for_dry_runs_gets_them_for_each_pool_and_market_and_no_look(
    deployed: Deployed,
) -> None:
    deployed.world.report([job(1)])

    told = on_looks(deployed.planner, {"dry_runs": True})["dry_runs"]

    assert [(each["pool"], each["market"]) for each in told] == [
        (pool, market) for pool in ("t4", "a10g") for market in ("on-demand", "spot")
    ]
    assert {(each["fleet"], each["instance"]) for each in told} == {
        ("", "UnauthorizedOperation: no iam:PassRole")
    }
    assert [each.overrides[0].instance_type for each in deployed.tried.fleets[:1]] == [
        "g4dn.xlarge"
    ]
    assert deployed.tried.fleets == deployed.tried.instances
    assert deployed.world.compute.requests == []


def test_trouble_with_dry_runs_is_an_answer_and_no_error_of_the_function(
    deployed: Deployed,
) -> None:
    deployed.tried.trouble = Throttled("RequestLimitExceeded")

    told = on_looks(deployed.planner, {"dry_runs": True})

    assert told == {"trouble": "Throttled: RequestLimitExceeded"}
    assert deployed.lines() == []


def test_what_became_of_mails_to_owners_is_kept_and_counted(deployed: Deployed) -> None:
    mail, at = SimMail(left=2), "{}@example.org"
    owners = Owners(mail, lambda user: at.format(user) if user != "cleo" else "")
    work = deployed.planner.work
    assert work.teller is not None
    teller = replace(work.teller, owners=owners)
    made = replace(deployed.planner, work=replace(work, teller=teller))
    users = ("ada", "bob", "cleo", "dan", "ada")
    jobs = [idle(n, user=user) for n, user in enumerate(users, 1)]
    nodes = [node(f"i-{n}", state="MIXED", gpus_alloc=1) for n in range(1, 6)]
    deployed.world.report(jobs, nodes)

    assert on_looks(made, messages(LOOK)) == DONE

    mails = {each.jobs: each.code for each in deployed.kept.looks[-1]}
    assert mails == dict(
        zip(
            (("1", "5"), ("2",), ("3",), ("4",)),
            ("sent", "sent", "no-address", "later"),
            strict=True,
        )
    )
    figures = deployed.figures()
    assert (figures["MailsSent"], figures["MailsNotSent"]) == (2, 1)


def test_people_who_cannot_be_told_leave_the_look_as_good(deployed: Deployed) -> None:
    def deny(point: str) -> None:
        if point == "before publish":
            raise NotAuthorized("no sns:Publish")

    deployed.notices.faults = deny
    deployed.world.report([job(1), job(2, gpus=64, begins_at_s=NOW_S - 7200)])

    assert on_looks(deployed.planner, messages(LOOK)) == DONE

    assert len(deployed.world.compute.requests) == 1
    assert "people cannot be told: no sns:Publish" in str(deployed.lines()[-1])
