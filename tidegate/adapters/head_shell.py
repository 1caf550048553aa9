"""Commands on the head, through Session Manager: no open port, no more rights than a shell there.

Sources: Systems Manager user guide, "Start a session" (the AWS CLI and its plugin run a single
command with the document AWS-StartNonInteractiveCommand); aws/amazon-ssm-agent, where
StartCommandExecutor splits the command's words as a shell would and runs no shell, and its issue
354: the plugin ends with EOF where it has no terminal.
"""

import base64
import json
import os
import pty
import re
import select
import shlex
import subprocess
import time
from collections.abc import Sequence

from tidegate.core.model.errors import Permanent, SlurmUnavailable
from tidegate.core.model.frozen import frozen

DOCUMENT = "AWS-StartNonInteractiveCommand"
TIMEOUT_S = 45.0

# The session says things of its own before and after, and drops the command's exit code.
_BEGIN, _END = "tidegate-begin", "tidegate-end"
_SAID = re.compile(rf"{_BEGIN}\n(?P<said>.*?)\n?{_END}=(?P<code>\d+)", re.DOTALL)
SHOWN_CHARS = 300


@frozen
class HeadShell:
    """The head's shell, as its administrator. `program`: the AWS CLI."""

    region: str
    instance_id: str
    program: str = "aws"
    timeout_s: float = TIMEOUT_S

    def run(self, *argv: str) -> str:
        """What the command printed.

        Errors: SlurmUnavailable, it failed; Permanent, no session can be had.
        """
        text = f"echo {_BEGIN}; sudo -n {shlex.join(argv)} 2>&1; echo {_END}=$?"
        encoded = base64.b64encode(text.encode()).decode()
        command = f"sh -c 'echo {encoded}|base64 -d|sh'"
        session = [
            *(self.program, "ssm", "start-session", "--region", self.region),
            *("--target", self.instance_id, "--document-name", DOCUMENT),
            *("--parameters", json.dumps({"command": [command]})),
        ]
        try:
            printed = _in_terminal(session, self.timeout_s).replace("\r", "")
        except FileNotFoundError as error:
            raise Permanent(f"there is no {self.program}, the AWS CLI: {error}") from error
        found = _SAID.search(printed)
        if found is None:
            said = " ".join(printed.split())[:SHOWN_CHARS] or f"no answer in {self.timeout_s:g} s"
            raise Permanent(f"no session on {self.instance_id}: {said}")
        if found["code"] != "0":
            raise SlurmUnavailable(f"{argv[0]}: {found['said'].strip()[:SHOWN_CHARS]}")
        return found["said"]


def _in_terminal(argv: Sequence[str], timeout_s: float) -> str:
    """What a program prints in a terminal of its own, until it ends or the time is up.

    A Ctrl-C does not reach it: what it began must be undone by who is told of it.
    """
    ours, its = pty.openpty()
    printed = b""
    until_s = time.monotonic() + timeout_s
    try:
        try:
            child = subprocess.Popen(
                argv, stdin=its, stdout=its, stderr=its, start_new_session=True
            )
        finally:
            os.close(its)
        with child:
            try:
                while select.select([ours], [], [], max(0.0, until_s - time.monotonic()))[0]:
                    printed += os.read(ours, 65536)
            except OSError:  # EIO: nobody has the terminal any more
                pass
            finally:
                child.kill()
    finally:
        os.close(ours)
    return printed.decode(errors="replace")
