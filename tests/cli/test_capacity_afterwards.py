"""`capacity` on what was bought: what of it no file names, and what EC2 does not deliver."""

import time

import pytest

from tests.cli.conftest import Town
from tests.cli.test_capacity import ASKED, Person, ask, buy, queue_with_an_offer, reservations


@pytest.fixture
def person(town: Town) -> Person:
    return queue_with_an_offer(town)


def test_a_bought_block_that_no_file_names_needs_a_look(person: Person) -> None:
    before = person.town.file.read_text()
    assert buy(person).exit_code == 0
    person.town.file.write_text(before)

    result = ask(person, *ASKED)

    assert result.exit_code == 3
    assert "is paid for and not in the cluster file; add it: tidegate capacity" in result.output


def test_a_block_that_ec2_does_not_deliver_needs_a_look(person: Person) -> None:
    assert buy(person).exit_code == 0
    (name,) = reservations(person)
    gives_none, is_late = "it gives no node", "nodes come when it is active"

    assert ask(person, *ASKED).exit_code == 0  # it begins tomorrow, and is scheduled

    for state, told in (("payment-failed", gives_none), ("delayed", is_late)):
        person.town.cloud.blocks.states[name] = state
        result = ask(person, *ASKED)
        assert result.exit_code == 3
        assert f"EC2 says that {name} is {state}" in result.output
        assert told in result.output

    person.town.cloud.blocks.bought.clear()
    assert f"EC2 shows no {name} here: it gives no node" in ask(person, *ASKED).output


def test_an_open_reservation_that_is_cancelled_needs_a_look(person: Person) -> None:
    """Its nodes run on: who pays for them on demand should know."""
    assert buy(person).exit_code == 0
    (block,) = person.town.cloud.blocks.bought
    block |= {"ReservationType": "default", "InstanceMatchCriteria": "open"}
    text = person.town.file.read_text()
    person.town.file.write_text(text.replace("capacity-block", "reserved"))
    person.town.cloud.blocks.states[block["CapacityReservationId"]] = "cancelled"

    result = ask(person, *ASKED)

    assert result.exit_code == 3
    assert "is cancelled: its nodes run on and are billed on demand" in result.output


def test_a_targeted_reservation_that_the_file_takes_for_open_needs_a_look(person: Person) -> None:
    assert buy(person).exit_code == 0
    (block,) = person.town.cloud.blocks.bought
    block |= {"ReservationType": "default", "InstanceMatchCriteria": "targeted"}
    text = person.town.file.read_text().replace("capacity-block", "reserved")
    person.town.file.write_text(text)

    result = ask(person, *ASKED)

    assert result.exit_code == 3
    assert "takes only what names it (targeted), so EC2 refuses" in result.output


def test_what_was_split_off_is_told_with_where_it_may_be(person: Person) -> None:
    """The file says two; an owner made one of them a reservation of its own."""
    assert buy(person).exit_code == 0
    (name,), blocks = reservations(person), person.town.cloud.blocks
    (block,) = blocks.bought
    kind = {"ReservationType": "default", "InstanceMatchCriteria": "open", "State": "active"}
    began = time.time() - 60
    blocks.others.append(
        block | kind | {"AvailableInstanceCount": 2, "StartDate": began, "CreateDate": began}
    )
    blocks.bought.clear()
    text = person.town.file.read_text()
    person.town.file.write_text(text.replace("capacity-block", "reserved"))

    person.ec2.create_capacity_reservation_by_splitting(
        SourceCapacityReservationId=name, InstanceCount=1
    )
    result = ask(person, *ASKED)

    assert result.exit_code == 3
    made = blocks.others[-1]["CapacityReservationId"]
    words = " ".join(result.output.split())
    assert f"{name} has 1 instance by EC2, not 2 as the file says: it is used for 1" in words
    assert f"{made} is of its type and zone and in no file" in words
