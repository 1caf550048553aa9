"""AWS error codes: the only file that reads them.

What each code means stands in `aws_codes.py`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    SSOError,
    TokenRetrievalError,
)
from botocore.exceptions import ConnectionError as NoConnection
from botocore.parsers import ResponseParserError

from tidegate.adapters.aws_codes import (
    ACCESS_DENIED,
    BUSY_STATUS,
    CAPACITY,
    CONDITION_FAILED,
    CURES,
    CURES_BY_WORDS,
    IDEMPOTENCY_MISMATCH,
    INSTANCE_NOT_FOUND,
    INVALID_FLEET,
    LOST_RACE,
    MAIL_PAUSED,
    MAIL_REFUSED,
    MAIL_UNVERIFIED,
    MISSING,
    NO_DEFAULT_NETWORK,
    NOT_IN_ZONE,
    OBJECT_NOT_FOUND,
    OBJECT_THERE,
    OFFER_GONE,
    PROTECTED,
    QUOTA,
    SCORE_LIMIT,
    SUBNET,
    THROTTLING,
    THROUGHPUT,
    TOKEN_OF_ENDED,
    TRANSACTION_CANCELLED,
    UNAVAILABLE,
    UNKNOWN_CALLER,
    UNSOLD,
    WRONG_STATE,
)
from tidegate.core.model.ec2 import Cure, RefusalKind
from tidegate.core.model.errors import (
    NotAuthorized,
    Permanent,
    RequestMismatch,
    Throttled,
    UnknownCaller,
)
from tidegate.core.model.notice import MailEnd

# What a fleet call that failed as a whole says of the offerings that it named.
_ANSWERS = frozenset({RefusalKind.CAPACITY, RefusalKind.QUOTA, RefusalKind.SUBNET})

# The request or its answer was lost on the way, or came as a page that somebody else wrote.
NO_ANSWER = (HTTPClientError, NoConnection, IncompleteReadError, ResponseParserError)

NO_CREDENTIALS = (
    *(NoCredentialsError, PartialCredentialsError, CredentialRetrievalError),
    *(SSOError, TokenRetrievalError),
)


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def message_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Message", ""))


def cure(code: str, message: str = "") -> Cure:
    """What a refusal of this code needs that waiting does not bring."""
    for of, words, needs in CURES_BY_WORDS:
        if code == of and words in message.lower():
            return needs
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


def is_busy(error: ClientError) -> bool:
    """Trouble of AWS's own or too many calls; what EC2 has none of comes with such a status too."""
    kind = refusal_kind(code_of(error), message_of(error))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return kind is RefusalKind.THROTTLED or (status in BUSY_STATUS and kind not in _ANSWERS)


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
    return not is_busy(error)


def is_denied(error: ClientError) -> bool:
    return code_of(error) in ACCESS_DENIED


def is_by_organization(error: ClientError) -> bool:
    """Whether a policy of the organization denied it: then it denies everybody here.

    Source: IAM user guide, "Troubleshoot access denied error messages".
    """
    return "service control policy" in message_of(error)


def is_bad_combination(error: ClientError) -> bool:
    """Source: "Error codes for the Amazon EC2 API". What a free plan lacks has this code too."""
    is_of_shape = cure(code_of(error), message_of(error)) is Cure.NONE
    return code_of(error) == "InvalidParameterCombination" and is_of_shape


def is_unsupported(error: ClientError) -> bool:
    """Source: "Error codes for the Amazon EC2 API"."""
    return code_of(error) == "UnsupportedOperation"


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


def is_protected(error: ClientError) -> bool:
    """Whether a person has said that this instance is not to be ended, or not stopped."""
    return code_of(error) == PROTECTED


def is_not_now(error: ClientError) -> bool:
    """Whether EC2 would start or stop this instance at another time."""
    code = code_of(error)
    known = WRONG_STATE | INSTANCE_NOT_FOUND | {PROTECTED}
    return code in known or refusal_kind(code) in _ANSWERS


def is_never_stopped(error: ClientError) -> bool:
    """Whether EC2 does not stop this instance: it has ended, or is spot."""
    return code_of(error) in WRONG_STATE | INSTANCE_NOT_FOUND | {"UnsupportedOperation"}


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


def is_too_fast(error: ClientError) -> bool:
    """Whether a transaction was cancelled since the table could not take it as fast."""
    codes = {reason.get("Code") for reason in cancellation_reasons(error)}
    return not codes.isdisjoint(THROUGHPUT)


def mail_end(error: ClientError, *, sender: str) -> MailEnd | None:
    """Why SES did not take a mail; None: that is no answer of its own.

    It names the identities that are not verified; outside its sandbox it asks for the sender alone.
    """
    code, words = code_of(error), message_of(error).lower()
    if code in MAIL_PAUSED:
        return MailEnd.PAUSED
    if code in MAIL_UNVERIFIED and ("verified" in words or code != "MessageRejected"):
        is_sender = sender.lower() in words or code != "MessageRejected"
        return MailEnd.SENDER_UNVERIFIED if is_sender else MailEnd.RECIPIENT_UNVERIFIED
    return MailEnd.REFUSED if code in MAIL_REFUSED else None


def typed(code: str, message: str) -> Exception:
    """The exception of ours that an error code stands for."""
    text = f"{code}: {message}"
    if code in THROTTLING or code in UNAVAILABLE:
        return Throttled(text)
    if code in IDEMPOTENCY_MISMATCH:
        return RequestMismatch(text)
    found = _error_of(code)(text)
    found.cure = cure(code, message)
    return found


def _error_of(code: str) -> type[Permanent]:
    if code in UNKNOWN_CALLER:
        return UnknownCaller
    return NotAuthorized if code in ACCESS_DENIED else Permanent


def translate(error: Exception) -> Exception:
    """The exception of ours that a botocore exception stands for.

    No answer in time counts as throttled: the call may have been carried out, and every
    call of ours may be repeated.
    """
    if isinstance(error, NO_CREDENTIALS):
        return UnknownCaller(str(error))
    if isinstance(error, NO_ANSWER):
        return Throttled(f"no answer from AWS: {error}")
    if not isinstance(error, ClientError):
        return Permanent(str(error))
    for reason in cancellation_reasons(error):
        if (code := str(reason.get("Code", "None"))) not in LOST_RACE | {"None"}:
            return typed(code, str(reason.get("Message", "")))
    if is_busy(error):
        return Throttled(f"{code_of(error)}: {error.operation_name}: {message_of(error)}")
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
