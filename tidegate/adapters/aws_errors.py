"""AWS error codes: the only file that reads them.

Sources: "Error codes for the Amazon EC2 API" (AWSEC2 APIReference, errors-overview), "Error
handling with DynamoDB", botocore's retry checkers for the throttling codes, and the codes that
Karpenter (pkg/errors) and ParallelCluster (slurm_plugin, fast capacity fail-over) have met.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
)
from botocore.exceptions import ConnectionError as NoConnection
from botocore.parsers import ResponseParserError

from tidegate.core.model.ec2 import Cure, RefusalKind
from tidegate.core.model.errors import NotAuthorized, Permanent, RequestMismatch, Throttled

# EC2 has none of it there now. `Unsupported` is what it says of a type that a zone never
# had, `SpotMaxPriceTooLow` of a spot price above on-demand: another offering may still come.
# A Capacity Block that begins late is `PendingActivation` until it does.
CAPACITY = frozenset(
    {
        "InsufficientCapacity",
        "InsufficientHostCapacity",
        "InsufficientInstanceCapacity",
        "InsufficientReservedInstanceCapacity",
        "InsufficientVolumeCapacity",
        "InvalidCapacityReservationState.PendingActivation",
        "ReservationCapacityExceeded",
        "SpotMaxPriceTooLow",
        "UnfulfillableCapacity",
        "Unsupported",
    }
)

# Fleets say `Unsupported` with the code of any mistake in them, which these words alone tell apart.
# Source: EC2's answer in compiler-explorer/infra#601.
INVALID_FLEET = "InvalidFleetConfiguration"
NOT_IN_ZONE = "is not supported in your requested Availability Zone"

# Of a Capacity Block that is sold no more, or was never offered to this account.
# Source: "Error codes for the Amazon EC2 API".
OFFER_GONE = frozenset(
    {
        "InvalidCapacityBlockOfferingIdExpired",
        "InvalidCapacityBlockOfferingIdMalformed",
        "InvalidCapacityBlockOfferingIdNotFound",
    }
)
# DescribeCapacityBlockOfferings of a type, number or duration that is not sold in blocks here.
UNSOLD = frozenset({"InvalidParameterValue", "Unsupported", "UnsupportedOperation"})
# GetSpotPlacementScores: no new questions until 24 hours are over.
SCORE_LIMIT = frozenset({"MaxConfigLimitExceeded", "MaxConfigLimitExceededException"})

# The account may not have more; other types and zones of that market will not help.
QUOTA = frozenset(
    {
        "InstanceLimitExceeded",
        "MaxFleetCountExceeded",
        "MaxIOPSLimitExceeded",
        "MaxSpotFleetRequestCountExceeded",
        "MaxSpotInstanceCountExceeded",
        "NetworkInterfaceLimitExceeded",
        "VcpuLimitExceeded",
        "VolumeLimitExceeded",
    }
)

# These have quotas of their own, not those of instances that the remedy names.
OF_DISKS_AND_CARDS = frozenset(
    {"MaxIOPSLimitExceeded", "NetworkInterfaceLimitExceeded", "VolumeLimitExceeded"}
)

SUBNET = frozenset({"InsufficientFreeAddressesInSubnet", "PrivateIpAddressLimitExceeded"})

# Says how fast we may ask (or that a rival holds a DynamoDB item just now) and nothing about
# capacity: never a reason to rest an offering.
THROTTLING = frozenset(
    {
        "BandwidthLimitExceeded",
        "CapacityBlockDescribeLimitExceeded",
        "EC2ThrottledException",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)

# AWS's own trouble, as codes and as bare HTTP status of answers without a code.
UNAVAILABLE = frozenset(
    {
        "500",
        "502",
        "503",
        "504",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "RequestTimeout",
        "RequestTimeoutException",
        "RetryableError",
        "ServerInternal",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Unavailable",
    }
)

ACCESS_DENIED = frozenset(
    {
        "403",
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "NotAuthorized",
        "SignatureDoesNotMatch",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)

INSTANCE_NOT_FOUND = frozenset({"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"})

# StartInstances and StopInstances: the instance is still on its way to another state.
WRONG_STATE = frozenset({"IncorrectInstanceState", "IncorrectState"})
# What waiting does not cure. Source: "Error codes for the Amazon EC2 API"; the spot role's is
# what instant fleets answer in an account that never used spot.
CURES = {
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted": Cure.SPOT_ROLE,
    "InvalidAMIID.Malformed": Cure.IMAGE,
    "InvalidAMIID.NotFound": Cure.IMAGE,
    "InvalidAMIID.Unavailable": Cure.IMAGE,
    "InvalidBlockDeviceMapping": Cure.DISK,
    "InvalidGroup.NotFound": Cure.TEMPLATE,
    "InvalidKeyPair.NotFound": Cure.TEMPLATE,
    "InvalidLaunchTemplateId.Malformed": Cure.TEMPLATE,
    "InvalidLaunchTemplateId.NotFound": Cure.TEMPLATE,
    "InvalidLaunchTemplateId.VersionNotFound": Cure.TEMPLATE,
    "InvalidLaunchTemplateName.NotFoundException": Cure.TEMPLATE,
    "InvalidSubnetID.NotFound": Cure.TEMPLATE,
    "OptInRequired": Cure.TERMS,
    **dict.fromkeys(QUOTA - OF_DISKS_AND_CARDS, Cure.QUOTA),
}
OBJECT_NOT_FOUND = frozenset({"404", "NoSuchKey"})
# Of a write that asks for none to be there: one is, or another one is being written.
# Source: S3 user guide, "How to prevent object overwrites with conditional writes".
OBJECT_THERE = frozenset({"409", "412", "ConditionalRequestConflict", "PreconditionFailed"})

# What a cluster file names and the account does not have.
MISSING = frozenset(
    {
        "FileSystemNotFound",
        "InvalidAMIID.Malformed",
        "InvalidAMIID.NotFound",
        "InvalidAMIID.Unavailable",
        "InvalidGroup.NotFound",
        "InvalidSnapshot.NotFound",
        "InvalidSubnetID.NotFound",
        "InvalidVpcID.NotFound",
        "NoSuchEntity",
        "NotFoundException",
        "ParameterNotFound",
        "ResourceNotFoundException",
    }
)
# Source: "Error codes for the Amazon EC2 API".
NO_DEFAULT_NETWORK = frozenset(
    {"DefaultSubnetDoesNotExistInAZ", "DefaultVpcDoesNotExist", "MissingInput", "VPCIdNotSpecified"}
)
IDEMPOTENCY_MISMATCH = frozenset(
    {"IdempotentParameterMismatch", "IdempotentParameterMismatchException"}
)
# A request repeated under its token, whose instances have ended meanwhile: it buys nothing more.
# Source: RunInstances in boto/boto3#4406; what a fleet says then is not documented.
TOKEN_OF_ENDED = "IdempotentInstanceTerminated"
# What a fleet call that failed as a whole says of the offerings that it named.
_ANSWERS = frozenset({RefusalKind.CAPACITY, RefusalKind.QUOTA, RefusalKind.SUBNET})

TRANSACTION_CANCELLED = "TransactionCanceledException"
CONDITION_FAILED = frozenset({"ConditionalCheckFailed", "ConditionalCheckFailedException"})

# Another transaction held the item; whether that one won is not said.
LOST_RACE = CONDITION_FAILED | {"TransactionConflict"}

# The request or its answer was lost on the way, or came as a page that somebody else wrote.
NO_ANSWER = (HTTPClientError, NoConnection, IncompleteReadError, ResponseParserError)


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def message_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Message", ""))


def cure(code: str) -> Cure:
    """What a refusal of this code needs that waiting does not bring."""
    return CURES.get(code, Cure.DENIED if code in ACCESS_DENIED else Cure.NONE)


def refusal_kind(code: str, message: str = "") -> RefusalKind:
    """What an error of a fleet request says about trying the same offering again."""
    if code in CAPACITY or (code == INVALID_FLEET and NOT_IN_ZONE in message):
        return RefusalKind.CAPACITY
    if code in QUOTA:
        return RefusalKind.QUOTA
    if code in SUBNET:
        return RefusalKind.SUBNET
    if code in THROTTLING | UNAVAILABLE:
        return RefusalKind.THROTTLED
    return RefusalKind.OTHER


def is_refusal(error: ClientError) -> bool:
    """Whether a failed CreateFleet call means "nothing to be had", which is an answer."""
    return refusal_kind(code_of(error)) in _ANSWERS


def is_of_ended(code: str) -> bool:
    """Whether EC2 was asked again for what has ended: that says nothing of what it sells."""
    return code == TOKEN_OF_ENDED


def is_offer_gone(error: ClientError) -> bool:
    """Whether somebody else has it, or nobody was offered it: nothing was bought."""
    return code_of(error) in OFFER_GONE or refusal_kind(code_of(error)) is RefusalKind.CAPACITY


def is_unsold(error: ClientError) -> bool:
    return code_of(error) in UNSOLD


def is_score_limit(error: ClientError) -> bool:
    return code_of(error) in SCORE_LIMIT


def is_dry_run_passed(error: ClientError) -> bool:
    """EC2's way to say that the call would have succeeded."""
    return code_of(error) == "DryRunOperation"


def is_answer_of_dry_run(error: ClientError) -> bool:
    """All but that EC2 was too busy to say."""
    return refusal_kind(code_of(error)) is not RefusalKind.THROTTLED


def is_denied(error: ClientError) -> bool:
    return code_of(error) in ACCESS_DENIED


def is_by_organization(error: ClientError) -> bool:
    """Whether a policy of the organization denied it: then it denies everybody here.

    Source: IAM user guide, "Troubleshoot access denied error messages".
    """
    return "service control policy" in message_of(error)


def is_bad_combination(error: ClientError) -> bool:
    """Source: "Error codes for the Amazon EC2 API"."""
    return code_of(error) == "InvalidParameterCombination"


def is_without_network(error: ClientError) -> bool:
    """EC2 found no default VPC or subnet, and none was named."""
    return code_of(error) in NO_DEFAULT_NETWORK


def is_stack_not_found(error: ClientError) -> bool:
    """CloudFormation has no code of its own for it (API reference, GetTemplate)."""
    said = error.response.get("Error", {})
    return said.get("Code") == "ValidationError" and "does not exist" in said.get("Message", "")


def is_function_not_found(error: ClientError) -> bool:
    return code_of(error) == "ResourceNotFoundException"


def is_missing(error: ClientError) -> bool:
    return code_of(error) in MISSING | INSTANCE_NOT_FOUND


def is_instance_not_found(error: ClientError) -> bool:
    return code_of(error) in INSTANCE_NOT_FOUND


def is_not_now(error: ClientError) -> bool:
    """Whether EC2 would start or stop this instance at another time."""
    code = code_of(error)
    return code in WRONG_STATE | INSTANCE_NOT_FOUND or refusal_kind(code) in _ANSWERS


def is_object_not_found(error: ClientError) -> bool:
    return code_of(error) in OBJECT_NOT_FOUND


def is_object_there(error: ClientError) -> bool:
    return code_of(error) in OBJECT_THERE


def is_condition_failed(error: ClientError) -> bool:
    return code_of(error) in CONDITION_FAILED


def cancellation_reasons(error: ClientError) -> Sequence[Mapping[str, Any]]:
    """Why DynamoDB cancelled a transaction, one entry per item; empty for other errors."""
    if code_of(error) != TRANSACTION_CANCELLED:
        return ()
    reasons: Sequence[Mapping[str, Any]] = error.response.get("CancellationReasons", ())
    return reasons


def is_lost_race(error: ClientError) -> bool:
    """Whether a transaction was cancelled by its conditions or by a rival, and nothing else.

    Throttling and bad requests also cancel transactions; taking those for a lost race would
    hide them.
    """
    codes = {reason.get("Code", "None") for reason in cancellation_reasons(error)} - {"None"}
    return bool(codes) and codes <= LOST_RACE


def typed(code: str, message: str) -> Exception:
    """The exception of ours that an error code stands for."""
    text = f"{code}: {message}"
    if code in THROTTLING or code in UNAVAILABLE:
        return Throttled(text)
    if code in ACCESS_DENIED:
        return NotAuthorized(text)
    if code in IDEMPOTENCY_MISMATCH:
        return RequestMismatch(text)
    found = Permanent(text)
    found.cure = CURES.get(code, Cure.NONE)
    return found


def translate(error: Exception) -> Exception:
    """The exception of ours that a botocore exception stands for.

    No answer in time counts as throttled: the call may have been carried out, and every
    call of ours may be repeated.
    """
    if isinstance(error, NoCredentialsError):
        return NotAuthorized(str(error))
    if isinstance(error, NO_ANSWER):
        return Throttled(f"no answer from AWS: {error}")
    if not isinstance(error, ClientError):
        return Permanent(str(error))
    for reason in cancellation_reasons(error):
        if (code := str(reason.get("Code", "None"))) not in LOST_RACE | {"None"}:
            return typed(code, str(reason.get("Message", "")))
    return typed(code_of(error), f"{error.operation_name}: {message_of(error)}")


@contextmanager
def aws_call() -> Iterator[None]:
    """Turn what botocore raises inside into the exceptions of `core.model.errors`."""
    try:
        yield
    except (ClientError, BotoCoreError, ResponseParserError) as error:
        raise translate(error) from error


def tolerating[T](
    call: Callable[[], T], expected: Callable[[ClientError], bool]
) -> T | ClientError:
    """What the call returned, or the client error where it is one of the `expected` answers."""
    try:
        return call()
    except ClientError as error:
        if expected(error):
            return error
        raise
