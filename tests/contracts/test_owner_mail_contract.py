"""What every `OwnerMail` promises: on the simulated one, and on the adapter against moto."""

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from local.cloud import LocalCloud
from tidegate.adapters.owner_mail import SesMail
from tidegate.core.model.notice import MailEnd
from tidegate.ports.owner_mail import OwnerMail
from tidegate.sim.owner_mail import SimMail

SENDER, ADA = "tidegate@example.org", "ada@example.org"
UNVERIFIED = "Email address is not verified. The following identities failed the check in region"


def sim(sender: str, verified: str) -> OwnerMail:
    return SimMail(sender=sender, verified={verified})


def moto(cloud: LocalCloud, sender: str, verified: str) -> OwnerMail:
    client = cloud.client("sesv2")
    client.create_email_identity(EmailIdentity=verified)
    return SesMail(lambda: client, sender)


@pytest.mark.parametrize("kind", ["sim", "moto"])
@pytest.mark.parametrize(
    ("sender", "verified", "end"),
    [
        ("tidegate@one.example.org", "tidegate@one.example.org", MailEnd.SENT),
        ("tidegate@two.example.org", "two.example.org", MailEnd.SENT),
        ("tidegate@three.example.org", "other@three.example.org", MailEnd.SENDER_UNVERIFIED),
    ],
)
def test_mail_goes_out_from_a_verified_sender_alone(
    kind: str, sender: str, verified: str, end: MailEnd, cloud: LocalCloud
) -> None:
    mail = sim(sender, verified) if kind == "sim" else moto(cloud, sender, verified)

    assert mail.send(ADA, "GPUs of your job 7 idle", "Your job 7 ...") is end


@pytest.mark.parametrize("kind", ["sim", "moto"])
def test_an_address_to_which_ses_sends_nothing_is_told_although_it_took_the_mail(
    kind: str, cloud: LocalCloud
) -> None:
    mail: OwnerMail = SimMail(suppressed={ADA})
    if kind == "moto":
        mail = moto(cloud, SENDER, "example.org")
        put = cloud.client("sesv2").put_suppressed_destination
        put(EmailAddress=ADA, Reason="BOUNCE")

    assert mail.send(ADA, "subject", "text") is MailEnd.SUPPRESSED
    assert mail.send("bob+gpus@example.org", "subject", "text") is MailEnd.SENT


@pytest.mark.parametrize("code", ["TooManyRequestsException", "AccessDeniedException"])
def test_what_ses_took_counts_as_sent_where_its_list_cannot_be_read(code: str) -> None:
    client: Any = boto3.client(
        "sesv2", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )

    with Stubber(client) as stub:
        stub.add_response("send_email", {"MessageId": "1"})
        stub.add_client_error("get_suppressed_destination", code)

        assert SesMail(lambda: client, SENDER).send(ADA, "subject", "text") is MailEnd.SENT


@pytest.mark.parametrize(
    ("code", "words", "end"),
    [
        ("MessageRejected", f"{UNVERIFIED} US-EAST-1: {ADA}", MailEnd.RECIPIENT_UNVERIFIED),
        ("MessageRejected", f"{UNVERIFIED} US-EAST-1: {SENDER}", MailEnd.SENDER_UNVERIFIED),
        (
            "MessageRejected",
            f"{UNVERIFIED} US-EAST-1: Tidegate@Example.org, {ADA}",
            MailEnd.SENDER_UNVERIFIED,
        ),
        ("MailFromDomainNotVerifiedException", "mail.example.org", MailEnd.SENDER_UNVERIFIED),
        ("MessageRejected", "Address blacklisted.", MailEnd.REFUSED),
        ("BadRequestException", "Illegal address", MailEnd.REFUSED),
        ("SendingPausedException", "Sending paused for this account.", MailEnd.PAUSED),
        ("AccountSuspendedException", "", MailEnd.PAUSED),
        ("TooManyRequestsException", "Maximum sending rate exceeded.", MailEnd.LATER),
        ("LimitExceededException", "Daily message quota exceeded.", MailEnd.LATER),
        ("ServiceUnavailable", "", MailEnd.LATER),
        ("AccessDeniedException", "is not authorized to perform: ses:SendEmail", MailEnd.DENIED),
        ("SomethingNew", "", MailEnd.REFUSED),
    ],
)
def test_what_ses_says_is_an_end_of_the_mail(code: str, words: str, end: MailEnd) -> None:
    client: Any = boto3.client(
        "sesv2", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )

    with Stubber(client) as stub:
        stub.add_client_error("send_email", code, words)

        assert SesMail(lambda: client, SENDER).send(ADA, "subject", "text") is end
