"""The exceptions of Tidegate, and who may try again.

TidegateError
  Transient            the same call may go through later
    Throttled          AWS asked us to slow down
    SlurmUnavailable   slurmctld does not answer (down, restarting, failing over)
  Permanent            trying again changes nothing
    BadEvent           a message whose shape can never become good
    BadConfig          the cluster file or a setting is wrong
    NotAuthorized      a policy denies the call
    RequestMismatch    an idempotency token was used with another request

Expected outcomes (no capacity, a lost race, a node that is busy) are values, not exceptions.
"""

from tidegate.core.model.ec2 import Cure
from tidegate.core.model.text import printable_lines


class TidegateError(Exception):
    """Root of all trouble that comes from outside. It names files, and says what others said."""

    def __str__(self) -> str:
        return printable_lines(super().__str__())


class Transient(TidegateError):
    """The same call may go through later."""


class Permanent(TidegateError):
    """Trying the same call again changes nothing. `cure`: what would, if it is known."""

    cure: Cure = Cure.NONE


class Throttled(Transient):
    """AWS asked us to slow down."""


class SlurmUnavailable(Transient):
    """slurmctld does not answer: down, restarting or failing over."""


class BadEvent(Permanent):
    """A message whose shape can never become good: log it, count it, drop it."""


class BadConfig(Permanent):
    """The cluster file or a setting is wrong; the message lists every problem.

    `problems`: each with its place, where the message is more than one sentence.
    """

    def __init__(self, message: str, problems: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class NotAuthorized(Permanent):
    """A policy denies the call."""

    cure = Cure.DENIED


class UnknownCaller(NotAuthorized):
    """AWS does not know who asks: there are no credentials, or they are wrong or expired."""


class RequestMismatch(Permanent):
    """An idempotency token was sent before with another request."""
