"""Whether an alarm reaches anybody."""

from dataclasses import dataclass

from tidegate.adapters import alarm_mail
from tidegate.cli.probe.facts import Fact, Standing
from tidegate.core.model.errors import TidegateError
from tidegate.wire.config import ClusterFile
from tidegate.wiring.resources import Clients

CODE, CLAIM = "alarm-mail", "An alarm goes to whoever is subscribed to it."
REASON = "tidegate probe rings once: nothing is wrong"
# One that is quiet otherwise, so that nobody takes a real one for this.
ALARM = "BadEvents"


@dataclass(slots=True)
class Bell:
    """The alarm that is rung."""

    file: ClusterFile
    clients: Clients
    is_rung: bool = False

    @property
    def alarm(self) -> str:
        return f"tidegate-{self.file.cluster.name}-{ALARM}"

    def rung(self) -> Fact:
        try:
            return self._fact()
        except TidegateError as trouble:
            text = f"{type(trouble).__name__}: {trouble}"
            return Fact(CODE, CLAIM, Standing.NOT_ASKED, (text,))

    def _fact(self) -> Fact:
        topic = alarm_mail.topic_of(self.clients("cloudwatch"), self.alarm)
        if not topic:
            return Fact(CODE, CLAIM, Standing.REFUTED, (f"{self.alarm} is not there, or mute",))
        heard = alarm_mail.hearers(self.clients("sns"), topic)
        if heard.pending:
            text = f"{heard.pending} subscriptions wait: who has the address follows the link in "
            return Fact(CODE, CLAIM, Standing.REFUTED, (f"{text}SNS's mail, or is asked anew",))
        if not heard.confirmed:
            why = "nobody is subscribed, and the file names no alarm_email"
            if self.file.alarm_email:
                why = "alarm_email has no subscription: npx cdk deploy makes it again"
                return Fact(CODE, CLAIM, Standing.REFUTED, (why,))
            return Fact(CODE, CLAIM, Standing.NOT_ASKED, (why,), is_needed=False)
        self.is_rung = True
        alarm_mail.ring(self.clients("cloudwatch"), self.alarm, REASON)
        count = f"{heard.confirmed} subscription{'s' * (heard.confirmed != 1)}"
        text = f'{self.alarm} rang for {count}: "{REASON}" must be in the mail within a minute'
        return Fact(CODE, CLAIM, Standing.CONFIRMED, (text,))

    def still(self) -> None:
        """CloudWatch does it by itself at the next evaluation as well."""
        if not self.is_rung:
            return
        try:
            alarm_mail.still(self.clients("cloudwatch"), self.alarm, "the probe is over")
        except TidegateError:
            return
