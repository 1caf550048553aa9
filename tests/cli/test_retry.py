"""`retry`: what EC2 refused is asked for again by hand, of a cluster in the local cloud."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.cli.conftest import Town
from tests.make import job
from tidegate.cli.live import retried
from tidegate.core.model.cluster import Pool
from tidegate.core.model.ec2 import Cure, Market
from tidegate.core.model.finding import StoppedCheck
from tidegate.core.model.idle_check import IdleChecks
from tidegate.core.model.pool_history import FailedLaunch, PoolHistory
from tidegate.core.model.resting import Resting
from tidegate.ports import Ledger
from tidegate.wire.config import load_cluster


def pool_of(town: Town, name: str) -> Pool:
    found = load_cluster(town.file).cluster.pool(name)
    assert found
    return found


def ledger_of(town: Town) -> Ledger:
    ledger: Ledger = town.planner.work.control.ledger
    return ledger


def refused(town: Town, name: str, pool: str = "") -> list[Resting]:
    """All that this pool sells by the hour rests."""
    until_s = time.time() + 600
    return [
        Resting(on, until_s, 3, "UnauthorizedOperation", "You may not.", Cure.DENIED, pool)
        for _, on in pool_of(town, name).offerings()
        if on.market in (Market.SPOT, Market.ON_DEMAND)
    ]


def looks(town: Town) -> int:
    queue = town.cloud.client("sqs")
    found = queue.receive_message(QueueUrl=town.names.look_queue_url, MaxNumberOfMessages=10)
    return len(found.get("Messages", ()))


def test_what_rests_of_a_pool_is_asked_for_at_once(town: Town) -> None:
    ledger = ledger_of(town)
    ours, others = refused(town, "t4"), refused(town, "a10g", pool="a10g")
    ledger.rest(*ours, *others)
    before = looks(town)

    result = town.ask("retry", "t4")

    assert result.exit_code == 0, result.output
    assert result.output.count("rests no more (it was refused 3x)") == len(ours)
    assert result.output.splitlines()[-1] == "pool t4: EC2 is asked at once"
    assert set(ledger.view().resting) == set(others)
    assert looks(town) == before + 1


def test_what_did_not_boot_is_lifted_for_its_pool_and_called_failed(town: Town) -> None:
    ledger, on = ledger_of(town), pool_of(town, "t4").offerings()
    (_, first), *_ = on
    made = [
        Resting(first, time.time() + 600, 2, "NodeTooSmall", "no GPUs", pool=each, template="d-1")
        for each in ("t4", "other")
    ]
    ledger.rest(*made)

    result = town.ask("retry", "t4")

    assert f"{first} rests no more (it failed 2x)" in result.output
    assert ledger.view().resting == (made[1],)


def test_a_pool_that_failed_launches_had_closed_is_open(town: Town) -> None:
    ledger, now_s = ledger_of(town), time.time()
    failed = tuple(FailedLaunch(f"l-{n}", now_s - 300, now_s - 60) for n in range(3))
    ledger.learn(PoolHistory("t4", failed))

    result = town.ask("retry", "t4")

    assert "3 launches that gave no good node count no more" in result.output
    assert ledger.view().pool_history == (PoolHistory("t4"),)


def test_a_check_that_was_believed_no_more_is_believed_again(town: Town) -> None:
    ledger, now_s = ledger_of(town), time.time()
    before, stop = looks(town), StoppedCheck("NHC: check_fs_used", now_s - 600, 2, 10)
    ledger.learn(PoolHistory("t4", stopped_checks=(stop,)))

    result = town.ask("retry", "t4")

    assert "the check `NHC: check_fs_used` is believed again" in result.output
    (history,) = ledger.view().pool_history
    assert history.stopped_checks == (replace(stop, is_lifted=True),)
    assert looks(town) == before + 1


def test_a_check_of_idle_nodes_that_did_not_run_is_tried_once_more(town: Town) -> None:
    ledger, before = ledger_of(town), looks(town)
    rests = IdleChecks(number=7, missed=2, rests_until_s=time.time() + 3600, said="Invalid account")
    ledger.learn(PoolHistory("t4", idle_checks=rests))

    result = town.ask("retry", "t4")

    assert "the check of idle nodes, which did not run, is tried once more" in result.output
    (history,) = ledger.view().pool_history
    assert history.idle_checks == IdleChecks(number=7)
    assert looks(town) == before + 1


def test_where_nothing_rests_nobody_is_woken(town: Town) -> None:
    before = looks(town)

    assert town.ask("retry", "t4").output == "pool t4: nothing of it rests\n"
    assert looks(town) == before


def test_a_pool_that_is_not_there_is_a_command_that_cannot_be_meant(town: Town) -> None:
    result = town.ask("retry", "t44")

    assert result.exit_code == 2
    assert "no pool t44" in result.output


def test_what_waiting_does_not_cure_names_the_command(town: Town) -> None:
    ledger_of(town).rest(*refused(town, "t4"), *refused(town, "a10g"))
    town.report([job(1)])
    town.look()

    assert "tidegate retry t4" in " ".join(town.ask("why", "1").output.split())


def test_what_planners_note_at_that_moment_stays(town: Town) -> None:
    ledger, now_s = ledger_of(town), time.time()
    first, second = (FailedLaunch(f"l-{n}", now_s - 300, now_s - 60) for n in "12")
    assert ledger.learn(PoolHistory("t4", (first,)))
    stop = StoppedCheck("NHC: check_fs_used", now_s - 600, 2, 10)
    news = [stop]

    def writes() -> None:
        (known,) = ledger.view().pool_history
        if news:
            after = replace(known, failed=(first, second), stopped_checks=(news.pop(),))
            assert ledger.learn(after)

    busy = Busy(town.client("dynamodb"), writes)

    found = retried(
        load_cluster(town.file),
        "t4",
        lambda name: busy if name == "dynamodb" else town.client(name),
    )

    (known,) = ledger.view().pool_history
    assert (found.failures, found.checks) == (2, ("NHC: check_fs_used",))
    assert (known.failed, known.stopped_checks) == ((), (replace(stop, is_lifted=True),))


class Busy:
    """DynamoDB beside somebody who writes before each write of ours."""

    def __init__(self, client: Any, writes: Callable[[], None]) -> None:
        self._client, self._writes = client, writes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def put_item(self, **asked: Any) -> Any:
        self._writes()
        return self._client.put_item(**asked)
