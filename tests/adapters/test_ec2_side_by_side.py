"""Many fleet requests at once: in threads of one client, and what becomes of those that hang."""

import threading
from dataclasses import dataclass, field, replace
from typing import Any, cast

from botocore.exceptions import ClientError, ReadTimeoutError

from tests.adapters.test_ec2 import request
from tidegate.adapters.ec2 import Ec2Compute
from tidegate.core.model.ec2 import FleetRequest, FleetResult
from tidegate.core.model.errors import NotAuthorized, Throttled
from tidegate.ports import FLEETS_AT_ONCE
from tidegate.sim.clock import SimClock

PATIENCE_S = 10.0


def requests(number: int) -> list[FleetRequest]:
    return [replace(request(), client_token=f"token-{each}") for each in range(number)]


@dataclass
class Client:
    """EC2's client: each call meets the others, or hangs, or fails."""

    together: int = 1
    troubles: dict[str, Exception] = field(default_factory=dict)
    hangs: dict[str, threading.Event] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gate = threading.Barrier(self.together)

    def create_fleet(self, *, ClientToken: str, **_: Any) -> dict[str, Any]:  # noqa: N803
        self.asked.append(ClientToken)
        self.gate.wait(PATIENCE_S)
        if ClientToken in self.hangs:
            assert self.hangs[ClientToken].wait(PATIENCE_S)
        if ClientToken in self.troubles:
            raise self.troubles[ClientToken]
        return {"Instances": [{"InstanceType": "g4dn.xlarge", "InstanceIds": [ClientToken]}]}


def compute(client: Client) -> Ec2Compute:
    return Ec2Compute(cast("Any", client), "demo", SimClock())


def names(result: object) -> list[str]:
    assert isinstance(result, FleetResult)
    return [one.instance_id for one in result.instances]


def test_all_requests_are_on_their_way_before_one_is_answered() -> None:
    """The barrier lets nobody pass before all are there."""
    of = compute(Client(together=FLEETS_AT_ONCE))

    came = [each for batch in of.create_fleets(requests(FLEETS_AT_ONCE)) for each in batch]

    assert len(came) == FLEETS_AT_ONCE
    assert all(names(each.result) == [each.request.client_token] for each in came)


def test_more_than_a_client_has_connections_for_are_answered_once_each() -> None:
    asked = requests(3 * FLEETS_AT_ONCE)

    came = [each for batch in compute(Client()).create_fleets(asked) for each in batch]

    assert sorted(each.request.client_token for each in came) == sorted(
        each.client_token for each in asked
    )


def test_one_that_hangs_keeps_no_other_answer_back() -> None:
    """The first answers are there while it hangs; its own is that nothing is known."""
    hang = threading.Event()
    late = ReadTimeoutError(endpoint_url="https://ec2")
    of = compute(Client(together=3, hangs={"token-1": hang}, troubles={"token-1": late}))

    answers = of.create_fleets(requests(3))
    first = [each.request.client_token for each in next(answers)]
    while len(first) < 2:
        first += [each.request.client_token for each in next(answers)]
    hang.set()
    last = [each for batch in answers for each in batch]

    assert sorted(first) == ["token-0", "token-2"]
    assert [type(each.result) for each in last] == [Throttled]


def test_trouble_with_one_is_its_answer() -> None:
    denied = {"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}
    slow = {"Error": {"Code": "RequestLimitExceeded", "Message": "slow down"}}
    troubles: dict[str, Exception] = {
        "token-0": ClientError(cast("Any", denied), "CreateFleet"),
        "token-1": ClientError(cast("Any", slow), "CreateFleet"),
    }

    came = [each for b in compute(Client(3, troubles)).create_fleets(requests(3)) for each in b]

    found = {each.request.client_token: type(each.result) for each in came}
    assert found == {"token-0": NotAuthorized, "token-1": Throttled, "token-2": FleetResult}


def test_whoever_stops_to_listen_leaves_what_was_not_begun() -> None:
    """Ten hang: nobody begins an eleventh after the first answer was enough."""
    hang = threading.Event()
    hangs = {f"token-{number}": hang for number in range(1, FLEETS_AT_ONCE + 1)}
    client = Client(hangs=hangs)
    answers = compute(client).create_fleets(requests(5 * FLEETS_AT_ONCE))

    next(answers)
    threading.Timer(0.2, hang.set).start()
    answers.close()

    assert len(client.asked) < 5 * FLEETS_AT_ONCE
