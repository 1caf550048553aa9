"""A warm process that runs one function, as long as its settings stay as they are."""

import json
import os
import queue
import secrets
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from local.router.deployed import FunctionSettings
from local.router.nursery import nursery_of

# Lambda gives up on a function that has not loaded after 10 s; this machine may be slower.
LOAD_TIMEOUT_S = 60.0


class FunctionFailed(Exception):
    """What Lambda would report: the handler raised, the time was over, the process died."""


class FunctionProcess:
    """Starts in the constructor; one invocation at a time."""

    def __init__(
        self, settings: FunctionSettings, code: Path, environment: Mapping[str, str]
    ) -> None:
        self.settings = settings
        self._mark = f"{secrets.token_hex(8)} "
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._is_loaded = False
        self._process = nursery_of(code).start(
            self._spec(), {**dict(settings.environment), **environment, "PYTHONPATH": str(code)}
        )
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def invoke(self, event: Any, *, request_id: str, offset_s: float) -> tuple[Any, Sequence[str]]:
        """What the handler returned, and the lines it printed.

        Raises FunctionFailed, with the lines as its second argument. After anything but an
        error of the handler the process is gone.
        """
        printed: list[str] = []
        if not self._is_loaded:
            answer = self._await(printed, LOAD_TIMEOUT_S, "did not load in time")
            if "failed" in answer:
                self.kill()
                raise FunctionFailed(answer["failed"], printed)
            self._is_loaded = True
        request = {"id": request_id, "event": event, "offset_s": offset_s}
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self.kill()
            raise FunctionFailed("the process had ended before", printed) from None
        timeout_s = self.settings.timeout_s
        answer = self._await(printed, timeout_s, f"timed out after {timeout_s} s")
        if "failed" in answer:
            raise FunctionFailed(answer["failed"], printed)
        return answer["answer"], printed

    def kill(self) -> None:
        """End the process and whatever it started."""
        with suppress(ProcessLookupError):  # it ends by itself just now
            if self.is_alive:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def _await(self, printed: list[str], timeout_s: float, late: str) -> dict[str, Any]:
        """The next answer; what comes before it goes to `printed`."""
        ends_at_s = time.monotonic() + timeout_s
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, ends_at_s - time.monotonic()))
            except queue.Empty:
                self.kill()
                raise FunctionFailed(late, printed) from None
            if line is None:
                self.kill()
                raise FunctionFailed(f"the process ended with {self._process.wait()}", printed)
            if line.startswith(self._mark):
                answer: dict[str, Any] = json.loads(line.removeprefix(self._mark))
                return answer
            if line.strip():
                printed.append(line)

    def _read(self) -> None:
        with self._process.stdout as printed:
            for line in printed:
                self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def _spec(self) -> dict[str, Any]:
        return {
            "handler": self.settings.handler,
            "function_name": self.settings.name,
            "function_arn": self.settings.arn,
            "memory_mib": self.settings.memory_mib,
            "timeout_s": self.settings.timeout_s,
            "log_group": self.settings.log_group,
            "mark": self._mark,
        }
