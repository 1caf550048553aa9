"""Invokes the deployed functions in warm processes, under the deployed role and environment."""

import io
import json
import os
import tempfile
import threading
import time
import uuid
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.clients import REGION
from local.cloud import LocalCloud
from local.router.clock import VirtualClock
from local.router.deployed import Deployed, FunctionSettings
from local.router.process import FunctionFailed, FunctionProcess
from local.router.roles import Roles

# What of a zip is ours. The rest of it is built for the functions' own processors, and taken
# from this interpreter's packages instead.
OWN_CODE = ("tidegate", "lambdas")

# Functions of one package may start out of one process (`nursery.py`), whoever deployed it.
_folder = tempfile.TemporaryDirectory(prefix="tidegate-functions-")
_unpacked: dict["_Package", Path] = {}
_unpacking = threading.Lock()

type OnLog = Callable[[str, dict[str, Any]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One run of a function. `error` is "" when it went well; `at_s` is the router's clock."""

    function_name: str
    event: Any
    answer: Any
    error: str
    at_s: float
    duration_s: float
    is_cold: bool
    lines: Sequence[str]

    @property
    def is_ok(self) -> bool:
        return not self.error


@dataclass(slots=True)
class _Warm:
    """A process that has run its function, and until when its credentials are good."""

    process: FunctionProcess
    good_until_s: float


@dataclass(frozen=True, slots=True)
class _Package:
    """A zip, and what of it is run from it."""

    sha256: str
    own_code: tuple[str, ...]

    def unpack(self, code: bytes, folder: Path) -> Path:
        with zipfile.ZipFile(io.BytesIO(code)) as packed:
            packed.extractall(folder, [name for name in packed.namelist() if self._is_own(name)])
        return folder

    def _is_own(self, name: str) -> bool:
        return name.split("/", maxsplit=1)[0].removesuffix(".py") in self.own_code


@dataclass(slots=True)
class Functions:
    """Everything that was invoked, in the order in which it ended, is in `invocations`."""

    cloud: LocalCloud
    deployed: Deployed
    roles: Roles
    clock: VirtualClock
    own_code: Sequence[str] = OWN_CODE
    on_log: OnLog | None = None
    invocations: list[Invocation] = field(default_factory=list)
    _idle: dict[str, list[_Warm]] = field(default_factory=dict)
    _busy: list[_Warm] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def invoke(self, function_arn: str, event: Any) -> Invocation:
        """Run the function to its end; whatever goes wrong is in the invocation's `error`."""
        settings = self.deployed.function(function_arn)
        invocation = self._run(settings, event)
        self.invocations.append(invocation)
        self._report(settings, invocation)
        return invocation

    def stop(self) -> None:
        """End all processes, also those that run an invocation."""
        with self._lock:
            known = [*self._busy, *(one for idle in self._idle.values() for one in idle)]
            self._idle.clear()
        for each in known:
            each.process.kill()

    def _run(self, settings: FunctionSettings, event: Any) -> Invocation:
        began_s, at_s = time.monotonic(), self.clock.now_s()
        request_id = str(uuid.uuid4())
        answer, error, lines = None, "", list[str]()
        taken = self._take_warm(settings)
        is_cold = taken is None
        try:
            taken = taken or self._start(settings)
            answer, printed = taken.process.invoke(
                event, request_id=request_id, offset_s=self.clock.offset_s
            )
            lines = list(printed)
        except FunctionFailed as failed:
            error, lines = str(failed.args[0]), list(failed.args[1])
        if taken:
            self._put_back(settings, taken)
        return Invocation(
            function_name=settings.name,
            event=event,
            answer=answer,
            error=error,
            at_s=at_s,
            duration_s=time.monotonic() - began_s,
            is_cold=is_cold,
            lines=lines,
        )

    def _take_warm(self, settings: FunctionSettings) -> _Warm | None:
        """A process that may run the function as it is deployed now; others of it are ended."""
        with self._lock:
            idle = self._idle.get(settings.name, [])
            good = [each for each in idle if _is_good(each, settings)]
            stale = [each for each in idle if each not in good]
            taken = good.pop() if good else None
            self._idle[settings.name] = good
            if taken:
                self._busy.append(taken)
        for each in stale:
            each.process.kill()
        return taken

    def _put_back(self, settings: FunctionSettings, used: _Warm) -> None:
        with self._lock:
            self._busy.remove(used)
            self._idle.setdefault(settings.name, []).append(used)

    def _start(self, settings: FunctionSettings) -> _Warm:
        session = self.roles.session(settings.role_arn, settings.arn)
        if session is None:
            why = f"{settings.role_arn} may not be assumed by lambda.amazonaws.com"
            raise FunctionFailed(why, [])
        environment = {
            "AWS_LAMBDA_FUNCTION_NAME": settings.name,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.cloud.endpoint_url,
            **session.environment,
        }
        process = FunctionProcess(settings, self._unpack(settings), environment)
        started = _Warm(process, session.good_until_s)
        with self._lock:
            self._busy.append(started)
        return started

    def _unpack(self, settings: FunctionSettings) -> Path:
        """The folder with our part of the deployed zip."""
        with _unpacking:
            packed = _Package(settings.code_sha256, tuple(self.own_code))
            if packed not in _unpacked:
                code = self.deployed.code(settings.name)
                # By process too: a fork of ours shares the folder.
                name = f"{os.getpid()}-{len(_unpacked)}"
                _unpacked[packed] = packed.unpack(code, Path(_folder.name, name))
            return _unpacked[packed]

    def _report(self, settings: FunctionSettings, invocation: Invocation) -> None:
        """To the callback what is a JSON object, and to CloudWatch Logs what the role may."""
        if self.on_log:
            for line in invocation.lines:
                if isinstance(record := _parsed(line), dict):
                    self.on_log(settings.name, record)
        if invocation.lines:
            self.roles.put_logs(settings, invocation.lines)


def _is_good(warm: _Warm, settings: FunctionSettings) -> bool:
    process = warm.process
    return process.is_alive and process.settings == settings and time.time() < warm.good_until_s


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
