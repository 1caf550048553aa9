"""Mail to the owners of jobs, in memory, as strict as SES is."""

from dataclasses import dataclass, field

from tidegate.core.model.notice import MailEnd


@dataclass(slots=True)
class SimMail:
    """`verified`: addresses and domains. `sent`: address, subject, text, the oldest first.

    `is_sandboxed`: the account has no production access, as each has none at first.
    `suppressed`: addresses from which mail came back; SES takes and counts what it will not send.
    `left`: how many more are taken today.
    """

    sender: str = "tidegate@example.org"
    verified: set[str] = field(default_factory=lambda: {"example.org"})
    suppressed: set[str] = field(default_factory=set)
    is_sandboxed: bool = False
    is_paused: bool = False
    is_allowed: bool = True
    left: int = 200
    asked: int = 0
    sent: list[tuple[str, str, str]] = field(default_factory=list)

    def send(self, address: str, subject: str, text: str) -> MailEnd:
        self.asked += 1
        if not self.is_allowed:
            return MailEnd.DENIED
        if self.is_paused:
            return MailEnd.PAUSED
        if not self._is_verified(self.sender):
            return MailEnd.SENDER_UNVERIFIED
        if self.is_sandboxed and not self._is_verified(address):
            return MailEnd.RECIPIENT_UNVERIFIED
        if not self.left:
            return MailEnd.LATER
        self.left -= 1
        if address in self.suppressed:
            return MailEnd.SUPPRESSED
        self.sent.append((address, subject, text))
        return MailEnd.SENT

    def _is_verified(self, address: str) -> bool:
        return bool({address, address.partition("@")[2]} & self.verified)
