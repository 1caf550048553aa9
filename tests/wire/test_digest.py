"""The digest as bytes: nothing is lost, and nothing that arrives can hurt."""

import gzip
import json
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import make
from tidegate.core.model.digest import Digest
from tidegate.core.model.errors import BadEvent
from tidegate.core.model.orders import OrderKind, OrderOutcome, OrderResult
from tidegate.core.model.slurm import Association
from tidegate.wire.digest import MAX_BYTES, decode_digest, encode_digest


def full_digest() -> Digest:
    """A digest with something in every place."""
    return make.digest(
        [make.job("7_3", time_limit_s=3600.5), make.job(8, on=["i-1", "i-2"])],
        [make.node("i-1", state="MIXED+DRAIN+DYNAMIC_NORM", idle_s=1 / 3)],
        results=[OrderResult("o-1", OrderKind.RELEASE, "i-1", OrderOutcome.KEPT, "busy")],
        associations=[Association("qos high", qos="high", in_all=8)],
    )


def packed(text: str) -> bytes:
    return gzip.compress(text.encode())


def unpacked(data: bytes) -> str:
    return gzip.decompress(data).decode()


def test_a_digest_survives_the_way() -> None:
    assert decode_digest(encode_digest(full_digest())) == full_digest()


def test_the_same_digest_is_the_same_bytes_in_every_process() -> None:
    program = (
        "import hashlib\n"
        "from tests.wire.test_digest import encode_digest, full_digest\n"
        "print(hashlib.sha256(encode_digest(full_digest())).hexdigest())"
    )

    # Python shuffles the order of sets by PYTHONHASHSEED.
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(printed) == 1


def test_fields_of_a_newer_agent_are_ignored() -> None:
    newer = json.loads(unpacked(encode_digest(full_digest()))) | {"mood": "calm"}

    assert decode_digest(packed(json.dumps(newer))) == full_digest()


def test_a_digest_of_the_version_before_keeps_its_caps() -> None:
    before = json.loads(unpacked(encode_digest(full_digest())))
    blank: dict[str, object] = {"account": "", "user": "", "accounts_below": [], "max_gpus": None}
    blank |= {"max_gpus_per_user": None, "max_gpus_per_job": None, "gpu_type": ""}
    before["reading"]["associations"] = [
        blank | {"scope": "qos high", "qos": "high", "max_gpus": 8},
        blank | {"scope": "qos low", "qos": "low", "max_gpus_per_user": 2, "gpu_type": "a10g"},
    ]
    for job in before["reading"]["jobs"]:
        for name in ("spreads", "licences", "deadline_s", "het_job_id", "started_at_s"):
            del job[name]
    del before["reading"]["licences"]

    read = decode_digest(packed(json.dumps(before, separators=(",", ":")))).reading

    assert read.jobs == full_digest().reading.jobs
    assert read.associations == (
        Association("qos high", qos="high", in_all=8),
        Association("qos low", qos="low", tres="gres/gpu:a10g", per_user=2),
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "cut short"),
        (b"rubbish", "not gzip"),
        (packed(""), "no digest"),
        (packed("[]"), "no digest"),
        (packed("{}"), "cluster"),
        (packed("\ud7ff") + b"more", "after its end"),
        (encode_digest(full_digest())[:-9], "cut short"),
        (encode_digest(full_digest())[:40], "cut short"),
    ],
    # Compressed bytes carry the time: as names they would differ from process to process.
    ids=["empty", "rubbish", "nothing", "list", "object", "more", "cut at its end", "cut early"],
)
def test_what_is_no_digest_is_a_bad_event_that_says_why(data: bytes, said: str) -> None:
    with pytest.raises(BadEvent, match=re.escape(said)):
        decode_digest(data)


def test_a_number_in_quotes_is_no_number() -> None:
    text = unpacked(encode_digest(full_digest())).replace('"sequence":1', '"sequence":"1"')

    with pytest.raises(BadEvent, match=re.escape("stamp.sequence")):
        decode_digest(packed(text))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_a_time_that_is_no_number_is_a_bad_event(number: str) -> None:
    written = json.dumps(full_digest().written_at_s)
    text = unpacked(encode_digest(full_digest())).replace(
        f'"written_at_s":{written}', f'"written_at_s":{number}'
    )

    with pytest.raises(BadEvent):
        decode_digest(packed(text))


def test_a_few_bytes_cannot_claim_much_memory() -> None:
    bomb = gzip.compress(b" " * (MAX_BYTES + 1))

    with pytest.raises(BadEvent, match="more than"):
        decode_digest(bomb)


def test_an_agent_does_not_send_what_no_planner_would_read() -> None:
    huge = replace(make.digest([replace(make.job(), comment="x" * MAX_BYTES)]))

    with pytest.raises(BadEvent, match="more than"):
        encode_digest(huge)


def test_ten_thousand_queue_rows_fit() -> None:
    digest = make.digest([make.job(number) for number in range(10_000)])

    assert decode_digest(encode_digest(digest)) == digest


@given(st.binary(), st.booleans())
def test_any_bytes_are_a_digest_or_a_bad_event(data: bytes, is_zipped: bool) -> None:
    assert_harmless(gzip.compress(data) if is_zipped else data)


@given(st.data())
def test_a_digest_with_any_bytes_changed_is_a_digest_or_a_bad_event(data: st.DataObject) -> None:
    text = bytearray(unpacked(encode_digest(full_digest())), "utf-8")
    place = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 8))
    text[place : place + length] = data.draw(st.binary(max_size=8))

    assert_harmless(gzip.compress(bytes(text)))


def assert_harmless(data: bytes) -> None:
    """Reading gives a digest that can be sent on, or a BadEvent, and nothing else."""
    with suppress(BadEvent):
        encode_digest(decode_digest(data))
