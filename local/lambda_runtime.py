"""Lambda functions of one package, each run in a process of its own: `lambda_runtime.py FD`.

Imports everything of the package but its handlers, which takes most of a cold start, and then
forks for each message on the socket FD: {"spec", "environment"} with three descriptors, what will
be stdin, stdout and a pipe for the exit code. Answers with the process id. Ends with the socket,
once all processes have ended.

Standard library only, since the process is to see what the deployed function would see. A spec is:
handler, function_name, function_arn, memory_mib, timeout_s, log_group, mark.

Each line of stdin is an invocation: {"id", "event", "offset_s"}. stdout carries what the handler
prints, and the answers: lines that begin with `mark`. The first answer says that the handler
could be loaded. Source: Lambda developer guide, "Lambda execution environment lifecycle".
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, TextIO

# Of a package, the folders whose modules only define something. Importing ours reads neither
# environment nor clock (tests/test_architecture.py).
HANDLERS, DEFINITIONS = "lambdas", "tidegate"

# What boto3 imports when it makes its first client.
OF_CLIENTS = ("botocore.client", "botocore.args", "botocore.endpoint", "botocore.retries.standard")

# Whose descriptions it then reads, EC2's for a tenth of a second.
SERVICES = ("dynamodb", "ec2", "events", "s3", "sqs")

MESSAGE_MAX = 1 << 20

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


class Nursery:
    """Has everything imported, and forks a process for each function that is started."""

    def __init__(self, orders: socket.socket, clock: Clock) -> None:
        self.orders = orders
        self.clock = clock
        # Of processes that run, where their exit codes are waited for.
        self.running: dict[int, int] = {}
        self.ended, woken = os.pipe()
        os.set_blocking(woken, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(woken)

    def serve(self) -> None:
        """Until nobody can order any more, and then until the last process has ended."""
        waits_for: list[Any] = [self.ended, self.orders]
        while self.running or self.orders in waits_for:
            ready, _, _ = select.select(waits_for, [], [])
            if self.ended in ready:
                os.read(self.ended, 1024)
                self._reap()
            if self.orders in ready and not self._start_one():
                waits_for.remove(self.orders)

    def _start_one(self) -> bool:
        message, given, _, _ = socket.recv_fds(self.orders, MESSAGE_MAX, 3)
        if not message:
            return False
        stdin, stdout, code = given
        pid = os.fork()
        if not pid:
            self._become(json.loads(message), stdin, stdout)
        # Here too: whoever hears of the process may end its group at once.
        with suppress(OSError):
            os.setpgid(pid, pid)
        for each in (stdin, stdout):
            os.close(each)
        self.running[pid] = code
        self.orders.send(str(pid).encode())
        return True

    def _become(self, order: Mapping[str, Any], stdin: int, stdout: int) -> None:
        """The process of a function, as if it had been started as one."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setpgid(0, 0)
            for source, target in ((stdin, 0), (stdout, 1), (stdout, 2)):
                os.dup2(source, target)
            os.closerange(3, 1024)
            os.environ.clear()
            os.environ.update(order["environment"])
            run(order["spec"], self.clock)
            code = 0
        except BaseException:  # noqa: BLE001 - a fork must not return to who forked it
            traceback.print_exc()
        finally:
            with suppress(OSError):
                sys.stdout.flush()
            os._exit(code)

    def _reap(self) -> None:
        for pid in list(self.running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                pipe = self.running.pop(pid)
                # Nobody may be waiting any more.
                with suppress(BrokenPipeError):
                    os.write(pipe, str(os.waitstatus_to_exitcode(status)).encode())
                os.close(pipe)


def prepare(package: Path) -> None:
    """Import what the package's handlers will; whoever imports it again is told what is wrong."""
    if not (package / HANDLERS).is_dir():
        return
    files = sorted((package / DEFINITIONS).rglob("*.py"))
    names = [".".join(file.relative_to(package).with_suffix("").parts) for file in files]
    for name in (HANDLERS, *(name.removesuffix(".__init__") for name in names), *OF_CLIENTS):
        with suppress(Exception):
            importlib.import_module(name)
    with suppress(ImportError):
        keep_descriptions(importlib.import_module("botocore.loaders"))
    gc.freeze()


def keep_descriptions(loaders: Any) -> None:
    """Read what describes the services here, once, and not again in each process."""
    read = loaders.JSONFileLoader.load_file
    known: dict[str, Any] = {}

    def load_file(loader: Any, path: str) -> Any:
        if path not in known:
            known[path] = read(loader, path)
        return known[path]

    loaders.JSONFileLoader.load_file = load_file
    loader = loaders.create_loader()
    for name in ("endpoints", "partitions", "sdk-default-configuration"):
        loader.load_data(name)
    for service, part in product(SERVICES, ("service-2", "endpoint-rule-set-1")):
        loader.load_service_model(service, part)


def run(spec: Mapping[str, Any], clock: Clock) -> None:
    """Load the handler, then serve until stdin ends."""
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


def main(orders: socket.socket) -> None:
    clock = Clock()
    # Before any module is imported: some of them take the function by its name.
    time.time = clock
    prepare(Path.cwd())
    Nursery(orders, clock).serve()


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
