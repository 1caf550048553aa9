"""What became of the mail to the owner of idle GPUs, as people ask for it in the local cloud."""

import time
from typing import Any

import pytest

from tests.cli.conftest import Town
from tests.core.test_idle_gpus import idle
from tests.make import node
from tidegate.core.model.gpu_use import GpuUse
from tidegate.wire.settings import PREFIX
from tidegate.wiring.function import function
from tidegate.wiring.planner import planner

OWNERS = """
notifications:
  owners: {sender: tidegate@example.org, address: "{user}@example.org"}
"""


@pytest.fixture
def mailing(town: Town) -> Town:
    """The cluster's file tells owners by mail, from an address that is not verified yet."""
    town.file.write_text(town.file.read_text() + OWNERS)
    town.cloud.client("s3").put_object(
        Bucket=town.names.bucket, Key="cluster.yaml", Body=town.file.read_bytes()
    )
    topic = town.cloud.client("sns").create_topic(Name=town.names.cluster)["TopicArn"]
    town.variables[f"{PREFIX}TOPIC"] = topic
    town.planner = function(planner, town.variables, town.cloud.client)
    return town


def idles(town: Town, *numbers: int) -> None:
    """Jobs whose GPUs have done nothing for three hours, and a look."""
    since_s = time.time() - 3 * 3600
    use = {"gpu_use": GpuUse(since_s), "started_at_s": since_s}
    nodes = [node(f"i-{each}", state="MIXED+DYNAMIC_NORM", gpus_alloc=1) for each in numbers]
    town.report([idle(each, **use) for each in numbers], nodes)
    town.look()


def events(town: Town, job: str) -> list[tuple[str, str]]:
    every: list[dict[str, Any]] = town.ask_json("events", "--job", job)
    return [(each["code"], each["sentence"]) for each in every if each["kind"] == "mail"]


def test_why_and_events_say_that_the_owner_was_told(mailing: Town) -> None:
    mailing.cloud.client("sesv2").create_email_identity(EmailIdentity="tidegate@example.org")

    idles(mailing, 9)
    idles(mailing, 9)

    said = mailing.ask_json("why", "9")["verdict"]
    assert said[1].startswith("its owner was told by mail (20")
    assert events(mailing, "9") == [("sent", "job 9 of ada: its owner was told by mail")]
    assert "mail      job 9 of ada: its owner was told by mail" in mailing.ask("events").output


def test_why_and_events_say_why_the_owner_got_none(mailing: Town) -> None:
    mailing.cloud.client("sesv2").delete_email_identity(EmailIdentity="tidegate@example.org")
    why = "its owner got no mail, SES has not verified tidegate@example.org in this region"

    idles(mailing, 9)

    assert mailing.ask_json("why", "9")["verdict"][1].startswith(why)
    ((code, sentence),) = events(mailing, "9")
    assert code == "sender-unverified"
    assert sentence.startswith(f"job 9 of ada: {why}")
    assert events(mailing, "8") == []


def test_of_a_file_without_owners_why_says_nothing_of_mail(town: Town) -> None:
    idles(town, 9)

    assert not [each for each in town.ask_json("why", "9")["verdict"] if "mail" in each]
