"""`capacity`: offers joined with the queue of a cluster in the local cloud, and their purchase."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from local.trouble import Fault, Trouble
from tests.adapters.test_capacity_blocks import DAY_S, buyer, said
from tests.cli.conftest import Town
from tests.make import job
from tests.replay.test_replay import cluster as replayed
from tidegate.cli.capacity.market import with_hazards
from tidegate.cli.main import app
from tidegate.core.model.ec2 import Market
from tidegate.core.model.errors import NotAuthorized
from tidegate.core.model.resting import Resting
from tidegate.wire.config import load_cluster

TYPE, ZONE = "g5.xlarge", "us-east-1a"
ASKED = ("--type", TYPE, "--nodes", "2", "--days", "2")
QUOTAS = {"All G and VT Spot Instance Requests": 40.0, "Running On-Demand G and VT instances": 8.0}


class Person:
    """The clients of who asks: EC2's calls reach the local cloud once, and quotas are known."""

    def __init__(self, town: Town) -> None:
        self.town, self.ec2, self.may_ask_quotas = town, buyer(town.cloud), True

    def client(self, service: str) -> Any:
        if service == "service-quotas":
            return self
        return self.ec2 if service == "ec2" else self.town.client(service)

    def get_paginator(self, _: str) -> "Person":
        return self

    def paginate(self, **_: Any) -> Iterator[Any]:
        if not self.may_ask_quotas:
            raise NotAuthorized("AccessDeniedException: no servicequotas:ListServiceQuotas")
        yield {"Quotas": [{"QuotaName": k, "Value": v} for k, v in QUOTAS.items()]}


@pytest.fixture
def person(town: Town) -> Person:
    return queue_with_an_offer(town)


def queue_with_an_offer(town: Town) -> Person:
    """Two jobs wait for a GPU that EC2 refuses, and a block of it is offered."""
    blocks = town.cloud.blocks
    blocks.clear()
    offer = said(InstanceType=TYPE, AvailabilityZone=ZONE, InstanceCount=2, UpfrontFee="120.5")
    blocks.offers.append(offer)
    limit_s = 20 * 3600.0
    wants = {"gpu_type": "a10g", "time_limit_s": limit_s}
    town.report([job(1, **wants), job(2, **wants)])  # type: ignore[arg-type]
    refuse_by_the_hour(town)
    return Person(town)


def refuse_by_the_hour(town: Town) -> None:
    """EC2 sells nothing of the pool but what is paid for."""
    town.planner.work.control.ledger.rest(
        *(
            Resting(on, time.time() + 600, 3, "InsufficientInstanceCapacity", "none left")
            for pool in load_cluster(town.file).cluster.pools
            if pool.name == "a10g"
            for _, on in pool.offerings()
            if not on.market.is_prepaid
        )
    )


def ask(person: Person, *words: str) -> Result:
    given = ["capacity", *words, "--cluster", str(person.town.file)]
    return CliRunner().invoke(app, given, obj=person.client)


def buy(person: Person, *words: str) -> Result:
    return ask(person, *ASKED, "--buy", "cb-1", "--yes", "--at-most", "50000", *words)


def reservations(person: Person) -> list[str]:
    return [each.id for each in load_cluster(person.town.file).cluster.reservations]


def test_an_offer_is_judged_on_this_queue(person: Person) -> None:
    result = ask(person, *ASKED)

    assert result.exit_code == 0, result.output
    told = result.output
    assert "2 jobs wait for capacity" in told
    assert f"cb-1: 2 x {TYPE} in {ZONE}, 2.0 d from " in told
    assert ", 120.50 USD" in told
    assert "runs 2 waiting jobs: 1, 2" in told
    assert "if EC2 goes on to refuse what it refuses now: they start at least " in told
    assert "58 % of its GPU-hours would be idle" in told
    assert f"--type {TYPE} --nodes 2 --days 2 --buy cb-1 --at-most 120.50 --cluster" in told
    assert not person.town.cloud.blocks.bought


def test_programs_get_the_whole_answer(person: Person) -> None:
    found = json.loads(ask(person, *ASKED, "-o", "json").stdout)

    (offered,) = found["offers"]
    assert offered["jobs"] == ["1", "2"]
    assert offered["offer"]["fee"] == 120.5
    assert offered["if_refused"]["is_at_least"]
    (market,) = found["markets"]
    assert (market["spot_quota_nodes"], market["on_demand_quota_nodes"]) == (10, 2)
    assert market["refused"]


def test_what_is_asked_for_follows_from_the_queue(person: Person) -> None:
    """Two nodes, and long enough for twenty hours, a boot and the drain before the end."""
    person.town.cloud.blocks.offers.append(
        said("cb-2", 1, InstanceType=TYPE, AvailabilityZone=ZONE, InstanceCount=2)
    )

    result = ask(person)

    assert "cb-2: " in result.output, result.output


def test_what_aws_does_not_say_is_not_known_and_never_zero(person: Person) -> None:
    cloud = person.town.cloud
    person.may_ask_quotas = False
    cloud.trouble(Trouble("ec2:DescribeCapacityBlockOfferings", Fault.THROTTLED))
    cloud.trouble(Trouble("ec2:GetSpotPlacementScores", Fault.THROTTLED))
    cloud.trouble(Trouble("ec2:DescribeCapacityReservations", Fault.THROTTLED))

    result = ask(person, *ASKED)

    assert result.exit_code == 0, result.output
    told = result.output
    assert "placement score not known (" in told
    assert "interruptions not known" in told
    assert "an unknown number of nodes spot" in told
    assert "not known: the account's quotas: AccessDeniedException" in told
    assert f"not known: Capacity Blocks of 2 x {TYPE} for 2 d: RequestLimitExceeded" in told
    assert "not known: the blocks that the account has: RequestLimitExceeded" in told


def test_an_approved_offer_is_bought_once_and_written_into_the_file(person: Person) -> None:
    before = person.town.file.read_text()

    result = buy(person, "--at-most", "120.50")

    assert result.exit_code == 0, result.output
    (bought,) = person.town.cloud.blocks.bought
    name = bought["CapacityReservationId"]
    assert f"bought {name}: 2 x {TYPE}" in result.output
    assert f"npx cdk deploy tidegate-{person.town.names.cluster}" in result.output
    assert reservations(person) == [name]
    pool = load_cluster(person.town.file).cluster.pool("a10g")
    assert pool
    assert pool.markets[0] is Market.CAPACITY_BLOCK
    kept = person.town.file.read_text().splitlines()
    assert all(line in kept for line in before.splitlines() if "#" in line and "[" not in line)
    assert not list(person.town.file.parent.glob("*.purchase"))


def test_a_second_purchase_of_the_same_offer_finds_the_first(person: Person) -> None:
    """Also after the file was lost, and although EC2 would sell another."""
    person.town.cloud.blocks.left["cb-1"] = 9
    before = person.town.file.read_text()
    assert buy(person).exit_code == 0
    person.town.file.write_text(before)

    result = ask(person, "--buy", "cb-1", "--yes", "--at-most", "50000")

    assert result.exit_code == 0, result.output
    assert "was bought before: nothing is bought now" in result.output
    assert len(person.town.cloud.blocks.bought) == len(reservations(person)) == 1


def test_a_lost_answer_is_looked_for_before_anything_is_bought_again(person: Person) -> None:
    blocks = person.town.cloud.blocks
    blocks.left["cb-1"] = 9
    blocks.shown_after_s = 3600.0
    person.town.cloud.trouble(Trouble("ec2:PurchaseCapacityBlock", Fault.LOST_ANSWER))

    lost, early = buy(person), buy(person)
    blocks.shown_after_s = 0.0
    late = buy(person)

    assert lost.exit_code == early.exit_code == 1
    assert "EC2 may have sold the block or not" in lost.output
    assert "EC2 does not show it yet" in early.output
    assert late.exit_code == 0, late.output
    assert len(blocks.bought) == len(reservations(person)) == 1


def test_a_lost_question_is_asked_again_once_a_block_must_have_been_seen(person: Person) -> None:
    person.town.cloud.trouble(Trouble("ec2:PurchaseCapacityBlock", Fault.LOST_REQUEST))
    lost = buy(person)
    (note,) = person.town.file.parent.glob("*.purchase")
    note.write_text(json.dumps({**json.loads(note.read_text()), "at_s": time.time() - 900}))

    again = buy(person)

    assert (lost.exit_code, again.exit_code) == (1, 0), again.output
    assert len(person.town.cloud.blocks.bought) == 1


def test_a_crash_between_purchase_and_file_loses_nothing(person: Person) -> None:
    """EC2 does not even show it yet: the note knows the block."""
    blocks = person.town.cloud.blocks
    blocks.left["cb-1"] = 9
    blocks.shown_after_s = 3600.0
    before = person.town.file.read_text()
    person.town.file.write_text(before + "\n...\n")  # nothing can be added behind its end
    folder = person.town.file.parent

    told = buy(person)
    assert "add this to" in told.output
    (bought,) = blocks.bought
    name = bought["CapacityReservationId"]
    person.town.file.write_text(before)
    note = folder / f"{person.town.file.name}.purchase"
    block = {
        "id": name,
        "instance_type": TYPE,
        "zone": ZONE,
        "count": 2,
        "market": "capacity-block",
        "starts_at_s": time.time() + DAY_S,
        "ends_at_s": time.time() + 3 * DAY_S,
    }
    note.write_text(json.dumps({"offer": "cb-1", "bought": block}))
    result = buy(person)

    assert result.exit_code == 0, result.output
    assert len(blocks.bought) == 1
    assert reservations(person) == [name]


def test_another_purchase_waits_until_the_first_is_finished(person: Person) -> None:
    note = person.town.file.with_name(f"{person.town.file.name}.purchase")
    note.write_text(json.dumps({"offer": "cb-0", "at_s": 0.0}))

    result = buy(person)

    assert result.exit_code == 1
    assert "a purchase of cb-0 is not finished" in result.output
    assert not person.town.cloud.blocks.bought


def test_an_offer_that_is_gone_is_not_bought_and_the_others_are_told(person: Person) -> None:
    blocks = person.town.cloud.blocks
    blocks.left["cb-1"] = 0
    blocks.offers.append(said("cb-7", InstanceType=TYPE, AvailabilityZone=ZONE, InstanceCount=2))

    result = buy(person)

    assert result.exit_code == 1
    assert "EC2 offers cb-1 no more, and nothing was bought; it offers now:" in result.output
    assert f"cb-7: 2 x {TYPE}" in result.output
    assert not blocks.bought


def test_an_offer_that_nodes_cannot_be_launched_into_is_named_and_not_bought(
    person: Person,
) -> None:
    blocks = person.town.cloud.blocks
    (offer,) = blocks.offers
    segment = {"InstanceType": TYPE, "AvailabilityZone": ZONE}
    split = {"CapacityBlockOfferingId": "cb-2", "CapacityBlockOfferingSegments": [segment] * 2}
    blocks.offers.append(offer | split)

    told = ask(person, *ASKED)
    result = ask(person, *ASKED, "--buy", "cb-2", "--at-most", "200", "--yes")

    assert "what cb-2 of g5.xlarge would do: it is made of 2 segments, not used" in " ".join(
        told.output.split()
    )
    assert result.exit_code == 1
    assert "cb-2 is not used: it is made of 2 segments; nothing was bought" in result.output
    assert blocks.bought == []


def test_a_price_above_what_was_approved_is_refused(person: Person) -> None:
    result = buy(person, "--at-most", "120.49")

    assert result.exit_code == 1
    assert "costs 120.50 USD now, more than 120.49: nothing was bought" in result.output
    assert not person.town.cloud.blocks.bought


def test_without_a_yes_nothing_is_bought(person: Person) -> None:
    result = ask(person, *ASKED, "--buy", "cb-1")

    assert result.exit_code != 0
    assert not person.town.cloud.blocks.bought
    assert reservations(person) == []


def test_what_the_file_would_be_refused_for_is_said_before_anything_is_paid(
    person: Person,
) -> None:
    person.town.cloud.blocks.offers[:] = [
        said(InstanceType=TYPE, AvailabilityZone="us-east-1f", InstanceCount=2)
    ]

    result = buy(person)

    assert result.exit_code == 1
    assert f"no pool has {TYPE} in us-east-1f with capacity type capacity-block" in result.output
    assert not person.town.cloud.blocks.bought


def test_who_may_not_buy_leaves_no_note_behind(person: Person) -> None:
    class Denied:
        def __init__(self, ec2: Any) -> None:
            self._ec2 = ec2

        def __getattr__(self, name: str) -> Any:
            if name == "purchase_capacity_block":
                raise NotAuthorized("UnauthorizedOperation: you may not buy")
            return getattr(self._ec2, name)

    person.ec2 = Denied(person.ec2)

    result = buy(person)

    assert result.exit_code == 1
    assert "UnauthorizedOperation" in result.output
    assert not list(person.town.file.parent.glob("*.purchase"))


def test_what_cannot_be_meant_is_refused(person: Person) -> None:
    wrong = [
        *("--days 15", "--yes", "--at-most 1", "--spot-again soon", "--nodes 65"),
        "--buy cb-1 --yes",  # nobody would see the price
    ]

    assert {each: ask(person, *each.split()).exit_code for each in wrong} == dict.fromkeys(wrong, 2)


def test_the_advisor_s_classes_are_told_by_type() -> None:
    data = json.dumps({"spot_advisor": {"us-east-1": {"Linux": {TYPE: {"r": 1, "s": 60}}}}})

    cluster, classes = with_hazards(replayed(market="spot"), "us-east-1", data)

    assert classes == {TYPE: "5-10 %"}
    assert any(usd > 0 for usd in cluster.hazards.values())
