"""One message as mail, as chat and as data."""

import json
from typing import Any

from tests.make import NOW_S
from tidegate.core.model.notice import Message, Notice, NoticeCode
from tidegate.wire.notice import NAMED_MAX, SENTENCE_MAX_CHARS, TITLES, encode_message, subject

# SNS developer guide, "Publishing large messages": in all.
SNS_MAX_BYTES = 256 * 1024


def message(*sentences: str, cluster: str = "dev") -> Message:
    code = NoticeCode.JOB_WAITS
    return Message(
        cluster,
        code,
        NOW_S,
        tuple(Notice(code, str(number), said) for number, said in enumerate(sentences)),
    )


def forms(of: Message) -> dict[str, Any]:
    read = json.loads(encode_message(of))
    return {
        "mail": read["email"],
        "chat": json.loads(read["https"]),
        "data": json.loads(read["default"]),
    }


def test_mail_has_the_sentences_and_data_the_codes() -> None:
    found = forms(message("job 7 waits: no GPU", "job 8 waits: no GPU"))

    assert found["mail"] == "job 7 waits: no GPU\n\njob 8 waits: no GPU"
    assert found["data"]["code"] == "job-waits"
    assert [each["cause"] for each in found["data"]["notices"]] == ["0", "1"]
    assert found["data"]["left_out"] == 0


def test_a_chat_gets_what_amazon_q_shows() -> None:
    chat = forms(message("job 7 waits: no GPU"))["chat"]

    assert (chat["version"], chat["source"]) == ("1.0", "custom")
    assert chat["content"]["title"] == "Tidegate dev: jobs wait for long"
    assert chat["content"]["description"] == "- job 7 waits: no GPU"
    assert chat["metadata"]["threadId"] == "tidegate-dev-job-waits"


def test_a_users_words_call_nobody_and_lead_nowhere() -> None:
    said = "job 7 waits: <!channel> <https://evil.example|your bill> [here](https://evil.example)"

    described = forms(message(f"{said}\n# a title"))["chat"]["content"]["description"]

    assert not set("<>\n") & set(described)
    assert "](" not in described


def test_many_and_long_sentences_fit_and_are_counted() -> None:
    found = forms(message(*["é" * 3 * SENTENCE_MAX_CHARS] * (NAMED_MAX + 5)))

    assert found["data"]["left_out"] == 5
    assert found["mail"].endswith("and 5 more: tidegate status")
    assert len(encode_message(message(*["é" * 5000] * 99)).encode()) < SNS_MAX_BYTES


def test_a_subject_is_what_sns_takes() -> None:
    for code in NoticeCode:
        made = subject(Message("d" * 31, code, NOW_S, ()))

        assert made.isascii()
        assert len(made) < 100
    assert TITLES.keys() == set(NoticeCode)
