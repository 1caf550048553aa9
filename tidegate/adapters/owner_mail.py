"""Mail to the owners of jobs, by Amazon SES."""

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, mail_end
from tidegate.core.model.errors import NotAuthorized, Permanent, TidegateError, Transient
from tidegate.core.model.frozen import frozen
from tidegate.core.model.notice import MailEnd


@frozen
class SesMail:
    """`client`: makes one of `sesv2`, when there is somebody to write to.

    Source: SES API v2 reference, SendEmail, and developer guide, "Amazon SES email sending errors"
    and "Using the Amazon SES account-level suppression list": it takes mail that it will not send.
    """

    client: Callable[[], Any]
    sender: str

    def send(self, address: str, subject: str, text: str) -> MailEnd:
        try:
            with aws_call():
                end = self._send(address, subject, text)
        except NotAuthorized:
            return MailEnd.DENIED
        except Transient:
            return MailEnd.LATER
        except Permanent:
            return MailEnd.REFUSED
        is_lost = end is MailEnd.SENT and self._is_suppressed(address)
        return MailEnd.SUPPRESSED if is_lost else end

    def _is_suppressed(self, address: str) -> bool:
        """Where SES does not say, its having taken the mail is all that is known."""
        try:
            with aws_call():
                self.client().get_suppressed_destination(EmailAddress=address)
        except TidegateError:
            return False
        return True

    def _send(self, address: str, subject: str, text: str) -> MailEnd:
        try:
            self.client().send_email(
                FromEmailAddress=self.sender,
                Destination={"ToAddresses": [address]},
                Content={
                    "Simple": {
                        "Subject": {"Data": subject, "Charset": "UTF-8"},
                        "Body": {"Text": {"Data": text, "Charset": "UTF-8"}},
                    }
                },
            )
        except ClientError as error:
            if end := mail_end(error, sender=self.sender):
                return end
            raise
        return MailEnd.SENT
