"""The end of a shutdown that hangs: the command of the unit, in a namespace of its own."""

import re
import subprocess
import time
from pathlib import Path

import pytest

from local.namespaces import can_enter

STAGE = Path(__file__).parents[2] / "userdata" / "node" / "power_off.sh"
WHY_NOT = can_enter()
# Never outside: the call would power this computer off.
INSIDE = (
    "unshare",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child=SIGKILL",
    "--mount-proc",
    "bash",
    "-c",
)


def unit() -> str:
    asked = ["bash", "-c", f"source {STAGE}; unit"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout


def test_it_begins_with_the_shutdown_and_is_spared_by_systemd_to_the_end():
    assert "DefaultDependencies=no" in unit()
    assert re.search(r"^ExecStart=@/usr/bin/python3 @", unit(), re.MULTILINE)


def test_who_saves_when_ec2_ends_the_machine_has_the_time_that_systemd_gives():
    """systemd-system.conf(5), DefaultTimeoutStopSec."""
    (after_s,) = re.findall(r"time\.sleep\((\d+)\)", unit())

    assert 90 < int(after_s) <= 120


@pytest.mark.skipif(WHY_NOT is not None, reason=f"real path: {WHY_NOT}")
def test_after_its_time_the_machine_is_off_without_a_word_to_systemd():
    (program,) = re.findall(r'-ISc "(.*)"$', unit(), re.MULTILINE)
    program = re.sub(r"sleep\(\d+\)", "sleep(0.3)", program)
    line = "[[ $$ == 1 ]] || exit 9; exec -a @tidegate-power-off /usr/bin/python3 -ISc"
    began_s = time.monotonic()

    done = subprocess.run(
        [*INSIDE, f"({line} '{program}') & sleep 60; exit 8"], capture_output=True, check=False
    )

    assert 0.3 <= time.monotonic() - began_s < 10
    assert done.returncode not in (8, 9), done.stderr


@pytest.mark.parametrize("is_stuck", [False, True])
def test_a_root_disk_that_is_started_again_is_written_out_unless_it_hangs(is_stuck: bool):
    (program,) = re.findall(r'-ISc "(.*)"$', unit(), re.MULTILINE)
    program = re.sub(r"sleep\(\d+\)", "sleep(0)", program).replace("join(5)", "join(0.2)")
    fake = f"""
import sys, threading
class Libc:
    def __init__(self, name): ...
    def syncfs(self, number):
        print("syncfs", end=" ", flush=True)
        if {is_stuck}: threading.Event().wait()
    def reboot(self, how): print("reboot", hex(how), flush=True)
sys.modules["ctypes"] = type("ctypes", (), dict(CDLL=Libc))
"""

    done = subprocess.run(
        ["python3", "-ISc", fake + program], capture_output=True, text=True, check=True, timeout=20
    )

    assert done.stdout == "syncfs reboot 0x4321fedc\n"
