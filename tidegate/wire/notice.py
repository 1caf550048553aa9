"""A message to people in the forms that its readers take: mail, chat, and data for programs."""

import json
from collections.abc import Sequence

from tidegate.core.model.notice import Message, Notice, NoticeCode

# One screen; the rest is counted, and `tidegate status` has it. SNS takes 256 KB in all.
NAMED_MAX = 20
SENTENCE_MAX_CHARS = 500

# SNS API reference, Publish: a subject is less than 100 characters of ASCII.
SUBJECT_MAX_CHARS = 99

TITLES = {
    NoticeCode.JOB_WAITS: "jobs wait for long",
    NoticeCode.BUDGET_NEARLY_SPENT: "a budget is nearly spent",
    NoticeCode.BUDGET_SPENT: "a budget is spent",
    NoticeCode.CHECK_DOUBTED: "a health check is believed no more",
    NoticeCode.NODE_HELD: "a node is held",
    NoticeCode.ROLLOUT_STOPPED: "a roll-out has stopped",
    NoticeCode.BLOCK_ENDS: "a capacity block ends while it has work",
    NoticeCode.GPUS_IDLE: "GPUs of running jobs idle",
    NoticeCode.OWN_GPUS_IDLE: "GPUs of your jobs idle",
    NoticeCode.REPORT_READY: "a report is there",
}


def subject(message: Message) -> str:
    return f"Tidegate {message.cluster}: {TITLES[message.code]}"[:SUBJECT_MAX_CHARS]


def encode_message(message: Message) -> str:
    """By protocol, as SNS's message structure `json` has it: who reads mail gets sentences, who
    reads by HTTPS what chats show, everybody else data.

    Source: SNS API reference, Publish (MessageStructure).
    """
    named = message.notices[:NAMED_MAX]
    return _json(
        {
            "default": _json(_data(message, named)),
            "email": "\n\n".join(_lines(message, named)),
            "https": _json(_chat(message, named)),
        }
    )


def _json(value: object) -> str:
    """Without escapes for letters: one escaped twice is seven bytes."""
    return json.dumps(value, ensure_ascii=False)


def _data(message: Message, named: Sequence[Notice]) -> dict[str, object]:
    return {
        "version": 1,
        "cluster": message.cluster,
        "code": message.code,
        "at_s": message.at_s,
        "notices": [{"cause": each.cause, "sentence": _cut(each.sentence)} for each in named],
        "left_out": len(message.notices) - len(named),
    }


def _chat(message: Message, named: Sequence[Notice]) -> dict[str, object]:
    """What Amazon Q Developer in chat applications shows; anything else it drops silently.

    Source: its administrator guide, "Custom notifications": event schema.
    """
    return {
        "version": "1.0",
        "source": "custom",
        "content": {
            "textType": "client-markdown",
            "title": subject(message),
            "description": "\n".join(f"- {_plain(each)}" for each in _lines(message, named)),
            "keywords": [message.cluster, message.code],
        },
        "metadata": {
            "threadId": f"tidegate-{message.cluster}-{message.code}",
            "summary": subject(message),
            "eventType": message.code,
        },
    }


def _lines(message: Message, named: Sequence[Notice]) -> list[str]:
    left_out = len(message.notices) - len(named)
    more = [f"and {left_out} more: tidegate status"] if left_out else []
    return [*(_cut(each.sentence) for each in named), *more]


def _plain(text: str) -> str:
    """Without what chats read as links and as calls of people: names in it are of users' choice.

    Source: Slack, "Formatting text for app surfaces": <!channel>, <@U1> and links stand in <>;
    Microsoft Teams, "Format your bot messages": links are [text](address).
    """
    without = text.replace("<", "(").replace(">", ")").replace("](", "] (")
    return " ".join(without.split())


def _cut(text: str) -> str:
    return text if len(text) <= SENTENCE_MAX_CHARS else f"{text[:SENTENCE_MAX_CHARS]}..."
