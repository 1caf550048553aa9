"""What AWS error codes mean to us."""

from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
    SSLError,
)
from botocore.parsers import ResponseParserError

from tidegate.adapters.aws_errors import (
    aws_call,
    cure,
    is_answer_of_dry_run,
    is_bad_combination,
    is_lost_race,
    is_refusal,
    refusal_kind,
    translate,
)
from tidegate.core.model.ec2 import Cure, RefusalKind
from tidegate.core.model.errors import (
    NotAuthorized,
    Permanent,
    RequestMismatch,
    Throttled,
    TidegateError,
    UnknownCaller,
)

# splunk/attack_range#1302; EC2's words of a template with interfaces of its own.
FREE_TIER = (
    "The specified instance type is not eligible for Free Tier. For a list of Free Tier instance "
    "types, run 'describe-instance-types' with the filter 'free-tier-eligible=true'."
)
OF_SHAPE = "Network interfaces and an instance-level subnet ID may not be specified together"


def client_error(
    code: str, reasons: list[str] | None = None, *, status: int = 400, words: str = "words"
) -> ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": words},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    if reasons is not None:
        response["CancellationReasons"] = [{"Code": reason} for reason in reasons]
    return ClientError(response, "Operation")


def cancelled(*reasons: str) -> ClientError:
    return client_error("TransactionCanceledException", list(reasons))


def raised_for(error: Exception) -> type[Exception]:
    """The type that leaves `aws_call` when botocore raises `error` inside."""
    with pytest.raises(TidegateError) as caught, aws_call():
        raise error
    return caught.type


@pytest.mark.parametrize(
    "code",
    [
        "InsufficientInstanceCapacity",
        "UnfulfillableCapacity",
        "InsufficientHostCapacity",
        "ReservationCapacityExceeded",
        "SpotMaxPriceTooLow",
        "Unsupported",
    ],
)
def test_missing_capacity_is_about_the_offering(code: str) -> None:
    assert refusal_kind(code) is RefusalKind.CAPACITY


def test_a_type_that_its_zone_never_had_is_about_the_offering_in_fleets_too() -> None:
    words = "Your requested instance type (c5.large) is not supported in your requested "
    words += "Availability Zone (us-east-1e)."

    assert refusal_kind("InvalidFleetConfiguration", words) is RefusalKind.CAPACITY
    assert refusal_kind("InvalidFleetConfiguration", "LaunchTemplate...") is RefusalKind.OTHER


@pytest.mark.parametrize(
    "code",
    [
        "VcpuLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "InstanceLimitExceeded",
        "MaxFleetCountExceeded",
        "MaxIOPSLimitExceeded",
    ],
)
def test_an_exhausted_quota_is_about_the_account(code: str) -> None:
    assert refusal_kind(code) is RefusalKind.QUOTA


def test_a_zone_without_room_for_its_disk_is_short_of_capacity() -> None:
    assert refusal_kind("InsufficientVolumeCapacity") is RefusalKind.CAPACITY


def test_a_full_subnet_is_about_the_subnet() -> None:
    assert refusal_kind("InsufficientFreeAddressesInSubnet") is RefusalKind.SUBNET


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("RequestLimitExceeded", RefusalKind.THROTTLED),
        ("Throttling", RefusalKind.THROTTLED),
        ("EC2ThrottledException", RefusalKind.THROTTLED),
        ("InternalError", RefusalKind.THROTTLED),
        ("Unavailable", RefusalKind.THROTTLED),
        ("New", RefusalKind.OTHER),
    ],
)
def test_throttling_and_unknown_codes_say_nothing_about_capacity(
    code: str, kind: RefusalKind
) -> None:
    assert refusal_kind(code) is kind
    assert not is_refusal(client_error(code))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("RequestLimitExceeded", Throttled),
        ("ThrottlingException", Throttled),
        ("ProvisionedThroughputExceededException", Throttled),
        ("TransactionConflictException", Throttled),
        ("SlowDown", Throttled),
        ("InternalError", Throttled),
        ("ServerInternal", Throttled),
        ("RetryableError", Throttled),
        ("503", Throttled),
        ("UnauthorizedOperation", NotAuthorized),
        ("AccessDeniedException", NotAuthorized),
        ("403", NotAuthorized),
        ("ExpiredTokenException", UnknownCaller),
        ("RequestExpired", NotAuthorized),
        ("RequestTimeTooSkewed", NotAuthorized),
        ("InvalidSignatureException", NotAuthorized),
        ("NotAuthorizedForSourceException", NotAuthorized),
        ("IdempotentParameterMismatch", RequestMismatch),
        ("IdempotentParameterMismatchException", RequestMismatch),
        ("InvalidParameterValue", Permanent),
        ("ResourceNotFoundException", Permanent),
    ],
)
def test_client_errors_become_ours(code: str, expected: type[Exception]) -> None:
    assert raised_for(client_error(code)) is expected


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_trouble_of_aws_s_own_may_be_tried_again_whatever_its_code(status: int) -> None:
    """The call may have been carried out: a launch given up then would be bought twice.

    Source: botocore's transient status codes in standard retries.
    """
    assert raised_for(client_error("New", status=status)) is Throttled
    assert raised_for(client_error("New", status=501)) is Permanent
    assert not is_answer_of_dry_run(client_error("New", status=status))


def test_what_ec2_has_none_of_is_an_answer_though_it_comes_as_trouble_of_aws_s_own() -> None:
    """InsufficientInstanceCapacity is among EC2's server errors, which have a 500-series status."""
    short = client_error("InsufficientInstanceCapacity", status=500)

    assert is_refusal(short)
    assert is_answer_of_dry_run(short)
    assert raised_for(short) is Permanent


@pytest.mark.parametrize(
    "error",
    [
        ReadTimeoutError(endpoint_url="https://ec2"),
        EndpointConnectionError(endpoint_url="https://ec2"),
        ConnectTimeoutError(endpoint_url="https://ec2"),
        SSLError(endpoint_url="https://ec2", error=OSError("EOF")),
        ResponseParserError("<title>502 Bad Gateway</title>"),
    ],
)
def test_no_answer_in_time_may_be_tried_again(error: Exception) -> None:
    assert raised_for(error) is Throttled


def test_missing_credentials_are_an_authorization_problem() -> None:
    assert raised_for(NoCredentialsError()) is UnknownCaller
    assert issubclass(UnknownCaller, NotAuthorized)


def test_our_own_exceptions_pass_untouched() -> None:
    with pytest.raises(KeyError), aws_call():
        raise KeyError("ours")


def test_the_message_names_operation_code_and_words() -> None:
    with pytest.raises(Permanent, match="InvalidParameterValue: Operation: words"), aws_call():
        raise client_error("InvalidParameterValue")


@pytest.mark.parametrize(
    "reasons",
    [
        ("ConditionalCheckFailed", "None"),
        ("None", "ConditionalCheckFailed"),
        ("TransactionConflict", "None"),
        ("ConditionalCheckFailed", "TransactionConflict"),
    ],
)
def test_a_failed_condition_or_a_rival_is_a_lost_race(reasons: tuple[str, ...]) -> None:
    assert is_lost_race(cancelled(*reasons))


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        (("None", "ThrottlingError"), Throttled),
        (("ConditionalCheckFailed", "ProvisionedThroughputExceeded"), Throttled),
        (("ValidationError",), Permanent),
    ],
)
def test_a_transaction_cancelled_for_another_reason_is_not_a_lost_race(
    reasons: tuple[str, ...], expected: type[Exception]
) -> None:
    assert not is_lost_race(cancelled(*reasons))
    assert raised_for(cancelled(*reasons)) is expected


@pytest.mark.parametrize(
    ("code", "needs"),
    [
        ("Blocked", Cure.ACCOUNT),
        ("PendingVerification", Cure.ACCOUNT),
        ("InvalidCapacityReservationId.NotFound", Cure.RESERVATION),
        ("InvalidCapacityReservationId.Malformed", Cure.RESERVATION),
        ("InvalidLaunchTargets", Cure.RESERVATION),
        ("InvalidPlacementGroup.Unknown", Cure.TEMPLATE),
        ("InvalidSubnetId.NotFound", Cure.TEMPLATE),
        ("InvalidIamInstanceProfileArn.Malformed", Cure.TEMPLATE),
        ("UnauthorizedOperation", Cure.DENIED),
        ("AuthFailure", Cure.DENIED),
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", Cure.SPOT_ROLE),
        ("VcpuLimitExceeded", Cure.QUOTA),
        ("MaxSpotInstanceCountExceeded", Cure.QUOTA),
        ("VolumeLimitExceeded", Cure.NONE),
        ("MaxIOPSLimitExceeded", Cure.NONE),
        ("InvalidAMIID.NotFound", Cure.IMAGE),
        ("InvalidBlockDeviceMapping", Cure.DISK),
        ("InvalidLaunchTemplateId.VersionNotFound", Cure.TEMPLATE),
        ("OptInRequired", Cure.ACCOUNT),
        ("InsufficientInstanceCapacity", Cure.NONE),
        ("RequestLimitExceeded", Cure.NONE),
        ("New", Cure.NONE),
    ],
)
def test_what_waiting_does_not_cure_is_known_by_its_code(code: str, needs: Cure) -> None:
    raised = translate(client_error(code))

    assert cure(code) is needs
    if needs not in (Cure.QUOTA, Cure.SPOT_ROLE) and isinstance(raised, Permanent):
        assert raised.cure is needs, "the whole call may be refused by it too"


@pytest.mark.parametrize(
    ("code", "words", "needs"),
    [
        (
            "OptInRequired",
            "In order to use this AWS Marketplace product you need to accept terms and subscribe.",
            Cure.TERMS,
        ),
        ("AuthFailure", "Not authorized for images: [ami-0a1b2c3d]", Cure.IMAGE),
        (
            "InvalidParameterValue",
            "Value (research) for parameter iamInstanceProfile.name is invalid. Invalid IAM "
            "Instance Profile name",
            Cure.TEMPLATE,
        ),
        ("InvalidParameterValue", "Invalid value 'p9.large' for InstanceType.", Cure.NONE),
        ("InvalidParameterCombination", FREE_TIER, Cure.FREE_PLAN),
        ("InvalidParameterCombination", OF_SHAPE, Cure.NONE),
    ],
)
def test_codes_of_several_meanings_are_told_apart_by_ec2_s_words(
    code: str, words: str, needs: Cure
) -> None:
    raised = translate(client_error(code, words=words))

    assert cure(code, words) is needs
    assert isinstance(raised, Permanent)
    assert raised.cure is needs


def test_what_a_free_plan_lacks_is_not_taken_for_parameters_that_exclude_each_other() -> None:
    """A dry run says nothing of the latter, since a fleet asks otherwise."""
    code = "InvalidParameterCombination"

    assert is_bad_combination(client_error(code, words=OF_SHAPE))
    assert not is_bad_combination(client_error(code, words=FREE_TIER))


@pytest.mark.parametrize("state", ["", ".PendingActivation", ".Unavailable"])
def test_a_reservation_that_is_not_to_be_had_yet_is_tried_again(state: str) -> None:
    """As what EC2 has none of: no alarm rings, and the next try comes in minutes."""
    assert refusal_kind(f"InvalidCapacityReservationState{state}") is RefusalKind.CAPACITY
