"""Starts functions out of processes that have imported their package (`lambda_runtime.py`)."""

import atexit
import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

RUNTIME = Path(__file__).parents[1] / "lambda_runtime.py"

# Tests deploy packages of a few lines by the dozen; of those before the last ones nothing is
# started any more.
NURSERIES_MAX = 3


@dataclass(slots=True)
class Started:
    """A function's process. It is a child of its nursery, which tells the exit code."""

    pid: int
    stdin: TextIO
    stdout: TextIO
    _code_pipe: int
    _code: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._ended_within(0)

    def wait(self) -> int:
        """The exit code, once it has ended."""
        code = self._ended_within(None)
        assert code is not None
        return code

    def _ended_within(self, seconds: float | None) -> int | None:
        with self._lock:
            if self._code is None and select.select([self._code_pipe], [], [], seconds)[0]:
                self._code = int(os.read(self._code_pipe, 16) or b"-9")
                os.close(self._code_pipe)
            return self._code


class Nursery:
    """One process for each package that functions are started of."""

    def __init__(self, code: Path) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(RUNTIME), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                cwd=code,
                env={"PYTHONPATH": str(code)},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def start(self, spec: Mapping[str, Any], environment: Mapping[str, str]) -> Started:
        """A process of one function, that sees this environment and no other."""
        message = json.dumps({"spec": spec, "environment": environment}).encode()
        their_in, stdin = os.pipe()
        stdout, their_out = os.pipe()
        code, their_code = os.pipe()
        with self._lock:
            socket.send_fds(self._orders, [message], [their_in, their_out, their_code])
            pid = int(self._orders.recv(16))
        for each in (their_in, their_out, their_code):
            os.close(each)
        return Started(pid, os.fdopen(stdin, "w"), os.fdopen(stdout), code)

    def close(self) -> None:
        """Nothing more is started; what runs may go on, and the nursery ends after it."""
        self._orders.close()
        threading.Thread(target=self._process.wait, daemon=True).start()


# By process too: a fork of ours has its own.
_nurseries: dict[tuple[int, Path], Nursery] = {}
_lock = threading.Lock()


def nursery_of(code: Path) -> Nursery:
    """That of a package, which lies in the folder `code` and stays as it is."""
    key = (os.getpid(), code)
    with _lock:
        _nurseries[key] = found = _nurseries.pop(key, None) or Nursery(code)
        for each in list(_nurseries)[:-NURSERIES_MAX]:
            _nurseries.pop(each).close()
        return found


@atexit.register
def _close_all() -> None:
    for each in _nurseries.values():
        each.close()
