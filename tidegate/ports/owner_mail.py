"""Mail to the owners of jobs."""

from typing import Protocol

from tidegate.core.model.notice import MailEnd


class OwnerMail(Protocol):
    """Sends from one address."""

    @property
    def sender(self) -> str: ...

    def send(self, address: str, subject: str, text: str) -> MailEnd:
        """Whether it was taken, and else why not. No errors: whom it reaches has no part in others'
        being told.
        """
        ...
