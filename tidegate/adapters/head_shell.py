"""Commands on the head, through Session Manager: no open port, no more rights than a shell there.

Source: Systems Manager user guide, "Start a session": the AWS CLI and its plugin run a single
command with the document AWS-StartNonInteractiveCommand.
"""

import json
import re
import shlex
import subprocess

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

    def run(self, *argv: str) -> str:
        """What the command printed.

        Errors: SlurmUnavailable, it failed; Permanent, no session can be had.
        """
        command = f"echo {_BEGIN}; sudo -n {shlex.join(argv)} 2>&1; echo {_END}=$?"
        session = [
            *(self.program, "ssm", "start-session", "--region", self.region),
            *("--target", self.instance_id, "--document-name", DOCUMENT),
            *("--parameters", json.dumps({"command": [f"sh -c {shlex.quote(command)}"]})),
        ]
        try:
            done = subprocess.run(
                session,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
                start_new_session=True,  # a Ctrl-C is for us: what is begun must be undone
            )
        except FileNotFoundError as error:
            raise Permanent(f"there is no {self.program}, the AWS CLI: {error}") from error
        except subprocess.TimeoutExpired as error:
            raise Permanent(f"no answer from {self.instance_id} in {TIMEOUT_S:g} s") from error
        found = _SAID.search(done.stdout.replace("\r", ""))
        if found is None:
            said = " ".join((done.stderr or done.stdout).split())[:SHOWN_CHARS]
            raise Permanent(f"no session on {self.instance_id}: {said}")
        if found["code"] != "0":
            raise SlurmUnavailable(f"{argv[0]}: {found['said'].strip()[:SHOWN_CHARS]}")
        return found["said"]
