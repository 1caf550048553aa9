"""Runs one Lambda function, in a process of its own: `python -P lambda_runtime.py SPEC`.

Standard library only, since the process is to see what the deployed function would see. SPEC is
JSON: handler, function_name, function_arn, memory_mib, timeout_s, log_group, mark.

Each line of stdin is an invocation: {"id", "event", "offset_s"}. stdout carries what the handler
prints, and the answers: lines that begin with `mark`. The first answer says that the handler
could be loaded. Source: Lambda developer guide, "Lambda execution environment lifecycle".
"""

import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TextIO

_real_time: Callable[[], float] = time.time
_real_monotonic: Callable[[], float] = time.monotonic


class Clock:
    """In the place of `time.time`: the real time and what the router's clock is ahead by."""

    offset_s = 0.0

    def __call__(self) -> float:
        return _real_time() + self.offset_s


class Context:
    """What Lambda hands to a handler beside the event."""

    def __init__(self, spec: Mapping[str, Any], request_id: str) -> None:
        self.function_name = spec["function_name"]
        self.function_version = "$LATEST"
        self.invoked_function_arn = spec["function_arn"]
        self.memory_limit_in_mb = str(spec["memory_mib"])
        self.aws_request_id = request_id
        self.log_group_name = spec["log_group"]
        self.log_stream_name = "local"
        self.identity = None
        self.client_context = None
        self._ends_at_s = _real_monotonic() + spec["timeout_s"]

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._ends_at_s - _real_monotonic()) * 1000))


def main(spec: Mapping[str, Any]) -> None:
    """Load the handler, then serve until stdin ends."""
    clock = Clock()
    # Before the handler's modules are loaded: some of them take the function by its name.
    time.time = clock
    # Line by line: a killed function has printed what it has printed.
    sys.stdout = os.fdopen(os.dup(1), "w", buffering=1)
    answers = _Answers(sys.stdout, spec["mark"])
    requests = os.fdopen(os.dup(0))
    sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    try:
        handler = _load(spec["handler"])
    except BaseException as failure:  # noqa: BLE001 - an import may also call sys.exit
        answers.say({"failed": _described(failure)})
        return
    answers.say({"ready": True})
    for line in requests:
        request = json.loads(line)
        clock.offset_s = request["offset_s"]
        answers.say(_answer(handler, request, Context(spec, request["id"])))


class _Answers:
    def __init__(self, out: TextIO, mark: str) -> None:
        self.out = out
        self.mark = mark

    def say(self, answer: Mapping[str, Any]) -> None:
        """On a line of its own, behind everything that the handler has printed."""
        sys.stdout.flush()
        sys.stderr.flush()
        self.out.write(f"\n{self.mark}{json.dumps(answer)}\n")
        self.out.flush()


def _load(handler: str) -> Callable[[Any, Any], Any]:
    module, _, name = handler.rpartition(".")
    found: Callable[[Any, Any], Any] = getattr(importlib.import_module(module), name)
    return found


def _answer(
    handler: Callable[[Any, Any], Any], request: Mapping[str, Any], context: Context
) -> dict[str, Any]:
    try:
        answer = handler(request["event"], context)
        json.dumps(answer)
    except BaseException as failure:  # noqa: BLE001 - whatever it is, Lambda reports it
        return {"id": request["id"], "failed": _described(failure)}
    return {"id": request["id"], "answer": answer}


def _described(failure: BaseException) -> str:
    print("".join(traceback.format_exception(failure)), end="")
    return f"{type(failure).__name__}: {failure}"


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
