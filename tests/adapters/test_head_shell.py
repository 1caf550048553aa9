"""The head's shell, with a program in the place of the AWS CLI and its plugin."""

import os
from pathlib import Path

import pytest

from tidegate.adapters.head_shell import HeadShell
from tidegate.core.model.errors import Permanent, SlurmUnavailable

# What the plugin says around the output of a command, which it runs in a terminal.
SESSION = """#!/usr/bin/env python3
import json, shlex, subprocess, sys
if not sys.stdin.isatty():
    sys.exit("Cannot perform start session: EOF")
words = sys.argv[1:]
assert words[:6] == ["ssm", "start-session", "--region", "eu-west-1", "--target", "i-1"], words
assert words[6:8] == ["--document-name", "AWS-StartNonInteractiveCommand"], words
(command,) = json.loads(words[9])["command"]
done = subprocess.run(shlex.split(command), capture_output=True, text=True)
begins, ends = "Starting session with SessionId: ada-1", "Exiting session with sessionId: ada-1."
said = f"\\n{begins}\\n{done.stdout}\\n\\n{ends}\\n"
sys.stdout.write(said)
"""
SUDO = '#!/bin/sh\n[ "$1" = -n ] && shift && exec "$@"\n'


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HeadShell:
    for name, text in (("aws", SESSION), ("sudo", SUDO)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return HeadShell("eu-west-1", "i-1")


def test_a_command_s_words_arrive_as_they_are_and_only_its_output_comes_back(shell: HeadShell):
    script = '[ ${RESTARTS:-0} -gt 0 ] || echo "it\'s $((1 + 1)) * lines\nand more"'

    assert shell.run("sh", "-c", script) == "it's 2 * lines\nand more"
    assert shell.run("true") == ""


def test_a_command_that_fails_says_what_it_said(shell: HeadShell):
    with pytest.raises(SlurmUnavailable, match="sh: Invalid job id specified"):
        shell.run("sh", "-c", "echo Invalid job id specified >&2; exit 1")


def test_without_a_session_the_reason_is_told(shell: HeadShell, tmp_path: Path):
    refuses = "#!/bin/sh\necho 'SessionManagerPlugin is not found.' >&2; exit 255\n"
    (tmp_path / "aws").write_text(refuses)

    with pytest.raises(Permanent, match="no session on i-1: SessionManagerPlugin is not found"):
        shell.run("true")


def test_without_the_aws_cli_that_is_told():
    with pytest.raises(Permanent, match="there is no aws-that-is-not-there, the AWS CLI"):
        HeadShell("eu-west-1", "i-1", "aws-that-is-not-there").run("true")


def test_a_session_that_hangs_is_ended(shell: HeadShell, tmp_path: Path):
    (tmp_path / "aws").write_text("#!/bin/sh\nexec sleep 60\n")

    with pytest.raises(Permanent, match=r"no session on i-1: no answer in 0\.3 s"):
        HeadShell("eu-west-1", "i-1", timeout_s=0.3).run("true")
