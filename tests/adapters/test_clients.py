"""How long a call may hang, with all its attempts, beside how long who makes it lives."""

import pytest

from cdk.queues import FUNCTION_TIMEOUT_S
from tidegate.adapters.clients import (
    BACKOFF_S,
    CONNECT_S,
    LONG_POLL,
    OF_FUNCTIONS,
    OTHERS_OF_FUNCTIONS,
    USUAL,
    Patience,
    client,
    client_of_function,
)
from tidegate.agent.run import LONG_POLL_S
from tidegate.ports import FLEETS_AT_ONCE
from tidegate.service.control import BUDGET_S


@pytest.fixture(autouse=True)
def region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


# What a round needs of ledger, bus and EC2 when nothing hangs.
ROUND_S = 5.0
SERVICES = ("dynamodb", "ec2", "events", "s3", "sqs")


def test_attempts_and_what_lies_between_them_are_counted() -> None:
    assert Patience(10.0, 2).longest_s == 2 * (CONNECT_S + 10.0) + 1.0
    assert Patience(10.0, 3).longest_s == 3 * (CONNECT_S + 10.0) + 3.0
    assert all(each.attempts <= len(BACKOFF_S) for each in (USUAL, LONG_POLL))


def test_the_last_fleet_that_hangs_and_the_write_that_hangs_after_it_end_in_time() -> None:
    last_s = BUDGET_S + OF_FUNCTIONS["ec2"].longest_s + OF_FUNCTIONS["dynamodb"].longest_s

    assert last_s < FUNCTION_TIMEOUT_S


@pytest.mark.parametrize("patience", [*OF_FUNCTIONS.values(), OTHERS_OF_FUNCTIONS], ids=str)
def test_a_call_of_the_last_round_that_hangs_ends_in_time(patience: Patience) -> None:
    assert BUDGET_S + ROUND_S + patience.longest_s < FUNCTION_TIMEOUT_S


@pytest.mark.parametrize("service", SERVICES)
def test_the_clients_of_functions_are_as_patient_as_was_added_up(service: str) -> None:
    made = client_of_function(service).meta.config
    patience = OF_FUNCTIONS.get(service, OTHERS_OF_FUNCTIONS)

    assert made.connect_timeout == CONNECT_S
    assert made.read_timeout == patience.read_s
    assert made.retries["total_max_attempts"] == patience.attempts


def test_all_fleets_of_a_wave_have_a_connection() -> None:
    assert client_of_function("ec2").meta.config.max_pool_connections >= FLEETS_AT_ONCE


def test_a_long_poll_is_outwaited_by_who_polls_alone() -> None:
    config = client("sqs", "us-east-1", LONG_POLL).meta.config

    assert config.read_timeout > LONG_POLL_S
    assert OTHERS_OF_FUNCTIONS.read_s < LONG_POLL_S
