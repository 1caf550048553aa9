"""What people see can be copied and searched: no word of it is broken, whatever the terminal."""

import os
import pty
import subprocess
import sys
from io import StringIO

import pytest
from rich.console import Console, Group, RenderableType

from tidegate.cli.nodes import screen
from tidegate.cli.shown import lines
from tidegate.core.explain.node_report import NodeReport

NAME, OFFERING = "i-0123456789abcdef0", "g4dn.12xlarge/us-east-1b/on-demand"
REPORT = NodeReport(
    NAME,
    "t4",
    OFFERING,
    "booting, munge done",
    120.0,
    0.02,
    ("4711", "4712"),
    "given up 900 s after its launch",
    "a gang",
)


def printed(what: RenderableType, width: int) -> list[str]:
    out = StringIO()
    Console(file=out, width=width, markup=False, highlight=False).print(what, crop=False)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_a_node_s_id_and_offering_are_whole_at_any_width(width: int):
    seen = printed(screen([REPORT], width), width)

    words = {word for line in seen for word in line.split()}
    assert {NAME, OFFERING, "4711,", "booting,"} <= words


def test_a_terminal_that_is_too_narrow_for_the_table_has_a_paragraph_for_each_node():
    assert printed(screen([REPORT], 80), 80) == [
        f"{NAME} t4, {OFFERING}",
        "  booting, munge done; 2 min, 0.02 USD; jobs 4711, 4712",
        "  ends when: given up 900 s after its launch",
        "  held by: a gang",
    ]


def test_a_node_is_a_line_when_it_is_piped():
    (line,) = (line for line in printed(screen([REPORT], None), 100_000) if NAME in line)

    assert "given up 900 s after its launch" in line


def test_a_line_of_status_is_one_line_however_narrow_the_terminal():
    told = f"! node {NAME} was stopped: aws ec2 start-instances --instance-ids {NAME}"

    whole, wrapped = (Group(*lines([told], is_wrapped=each)) for each in (False, True))

    assert printed(whole, 40) == [told]
    assert len(printed(wrapped, 40)) > 1


def test_a_pipe_has_no_width_and_a_terminal_has_its_own():
    words = [sys.executable, "-c", "from tidegate.cli.shown import columns; print(columns())"]
    environment = {**os.environ, "COLUMNS": "77", "FORCE_COLOR": "1"}
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as ours_file, os.fdopen(theirs, "wb") as theirs_file:
        subprocess.run(words, env=environment, stdout=theirs_file, check=True)
        on_terminal = ours_file.read(100).decode().strip()
    piped = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)

    assert (on_terminal, piped.stdout.strip()) == ("77", "None")
