"""Decisions in S3: what a look kept is what a person reads."""

import gzip

import pytest

from local.cloud import LocalCloud
from local.cloud_resources import CloudNames
from tests.contracts.conftest import cloud, names
from tests.make import NOW_S, job, snapshot
from tidegate.adapters.decisions import S3Decisions
from tidegate.core.explain.history import EventKind, LookEvent
from tidegate.core.explain.verdicts import Verdicts, verdicts_of
from tidegate.core.model.errors import BadEvent
from tidegate.core.planner import plan
from tidegate.wire.decisions import decode_verdicts, encode_record, encode_verdicts

__all__ = ["cloud", "names"]


def verdicts() -> Verdicts:
    seen = snapshot([job(1), job(2, gpus=64), job(3, gpus=64)])
    return verdicts_of(plan(seen), seen)


@pytest.fixture
def kept(cloud: LocalCloud, names: CloudNames) -> S3Decisions:
    return S3Decisions(cloud.client("s3"), names.bucket, "test")


def test_the_newest_verdicts_are_read_as_they_were_kept(kept: S3Decisions) -> None:
    assert kept.newest() is None

    kept.keep(verdicts())

    assert kept.newest() == verdicts()


def test_jobs_of_one_verdict_share_it() -> None:
    found = verdicts()

    assert found.of("2") is found.of("3")
    assert [verdict.is_served for verdict in found.verdicts] == [True, False]
    assert found.of("1") is found.verdicts[0]
    assert found.of("2") is found.verdicts[1]
    assert found.of("9") is None


def test_the_log_is_read_since_a_moment_oldest_first_and_no_more_than_asked(
    kept: S3Decisions,
) -> None:
    for number in (3, 1, 2):
        event = LookEvent(
            NOW_S + number, "abcd-1", EventKind.DECISION, "launch", sentence=str(number)
        )
        kept.append([event])

    def numbers(at_s: float, most: int) -> list[int]:
        return [int(event.sentence) for (event,) in kept.since(at_s, most=most)]

    assert numbers(NOW_S, 10) == [1, 2, 3]
    assert numbers(NOW_S + 1.5, 10) == [2, 3]
    assert numbers(NOW_S, 2) == [2, 3]


def test_what_became_of_mails_stands_beside_what_the_same_look_did(kept: S3Decisions) -> None:
    did = LookEvent(NOW_S, "abcd-1", EventKind.DECISION, "launch")
    mail = LookEvent(NOW_S, "abcd-1", EventKind.MAIL, "sent", ("7",))

    kept.append([did])
    kept.append([mail])

    assert kept.since(NOW_S - 1, most=9) == ((did,), (mail,))


def test_fields_of_a_newer_planner_are_passed_over() -> None:
    text = gzip.decompress(encode_verdicts(verdicts())).decode()
    newer = gzip.compress(text.replace('"version":1', '"version":1,"colour":7').encode())

    assert decode_verdicts(newer) == verdicts()


@pytest.mark.parametrize(
    "data", [b"?", gzip.compress(b"{"), encode_record({"cluster": 7})], ids=["text", "cut", "odd"]
)
def test_what_is_no_verdict_is_said(data: bytes) -> None:
    with pytest.raises(BadEvent, match=r"no stored decision|no verdicts"):
        decode_verdicts(data)
