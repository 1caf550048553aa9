"""What whoever plays with the simulated sandbox has at hand, without root."""

import json
import shlex
import socketserver
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from local.sandbox.answers import NotDone, environment, invoking, later, reclaim
from local.sandbox.asked import NeedsInput
from local.sandbox.simulated import SimulatedStage
from local.sandbox.slurm_front import COMMANDS, Line, SlurmFront

CLIENT = Path(__file__).parent / "bin" / "client.py"
OWN = ("reclaim", "later", "console")
AS = """#!/bin/sh
# as USER COMMAND...: as another user of the cluster.
[ $# -ge 2 ] || { echo "usage: as USER COMMAND..., like: as grace sbatch job.sh" >&2; exit 2; }
SANDBOX_USER=$1
export SANDBOX_USER
shift
exec "$@"
"""
NO_CONSOLE = (
    "Simulated machines boot nothing that could say something; real ones do, as root on Linux."
)


@dataclass(slots=True)
class SimulatedDesk:
    """Use it as a context. Commands ask by a socket in `folder`, which is theirs."""

    stage: SimulatedStage
    folder: Path
    _server: socketserver.ThreadingUnixStreamServer | None = field(default=None)

    def __enter__(self) -> "SimulatedDesk":
        for name in ("bin", "home"):
            (self.folder / name).mkdir()
        python = shlex.quote(sys.executable)
        self._write("tidegate", f'#!/bin/sh\nexec {python} -m tidegate.cli.main "$@"\n')
        self._write("as", AS)
        for name in (*COMMANDS, *OWN):
            client = shlex.quote(str(CLIENT))
            self._write(name, f'#!/bin/sh\nexec {python} -I {client} {name} "$@"\n')
        self.stage.cloud.invoke_by(invoking(self.stage))
        front, stage = SlurmFront(self.stage), self.stage

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                answer = _answered(stage, front, json.loads(self.rfile.readline()))
                self.wfile.write(json.dumps(answer).encode() + b"\n")

        self._server = socketserver.ThreadingUnixStreamServer(str(self.folder / "desk"), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server:
            self._server.shutdown()
            self._server.server_close()

    def environment(self, outside: Mapping[str, str]) -> dict[str, str]:
        return environment(self.stage, self.folder, str(self.folder / "home"), outside)

    def _write(self, name: str, text: str) -> None:
        file = self.folder / "bin" / name
        file.write_text(text)
        file.chmod(0o755)


def _answered(
    stage: SimulatedStage, front: SlurmFront, asked: Mapping[str, object]
) -> dict[str, object]:
    words, piped = asked["words"], asked["piped"]
    assert isinstance(words, list), "the client sends a list"
    assert piped is None or isinstance(piped, str)
    if words[0] in OWN:
        return _own(stage, words)
    line = Line(tuple(words), Path(str(asked["folder"])), str(asked["user"]), piped)
    try:
        code, said = front.answer(line)
    except NeedsInput:
        return {"needs_input": True}
    return {"code": code, "said": said}


def _own(stage: SimulatedStage, words: list[str]) -> dict[str, object]:
    name, *args = words
    if len(args) != 1:
        return {"code": 2, "said": "usage: reclaim NODE, console NODE or later MINUTES"}
    if name == "console":
        return {"code": 1, "said": NO_CONSOLE}
    try:
        said = reclaim(stage, args[0]) if name == "reclaim" else later(stage, args[0])
    except NotDone as why:
        return {"code": 1, "said": str(why)}
    return {"code": 0, "said": said}
