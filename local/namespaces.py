"""A process tree in namespaces of its own, of which nothing outlives its first process."""

import ctypes
import gc
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import NoReturn

# Every process of a world can see these; the directory is hidden by a tmpfs inside only.
WORLD_DIR = Path("/media")

_PROGRAMS = (
    *("unshare", "nsenter", "mount", "ip", "nft", "runuser", "setpriv"),
    *("munged", "slurmctld", "slurmd", "scontrol", "dnsmasq", "jq", "curl"),
)
_PR_SET_PDEATHSIG = 1
_interrupted_at_s = -1.0
_FLAGS = os.CLONE_NEWNET | os.CLONE_NEWUTS | os.CLONE_NEWNS | os.CLONE_NEWIPC | os.CLONE_NEWPID


def enter() -> None:
    """Go on with this program inside fresh net, uts, mount, ipc and pid namespaces.

    Returns in a grandchild. The caller's own process stays outside, waits and exits with its
    status; between the two stands process 1, which reaps orphans. Call it first in main(),
    before there are threads. Ctrl-C and SIGTERM arrive as KeyboardInterrupt; SIGKILL of any
    of the three ends the whole tree, and the kernel takes namespaces and mounts with it.
    """
    fault = can_enter()
    if fault:
        raise SystemExit(fault)
    _flush()
    # Three processes have what was imported, and none of it is garbage.
    gc.freeze()
    os.unshare(_FLAGS)
    first = _fork_tied()
    if first:
        _wait_and_exit(first)
    worker = _fork_tied()
    if worker:
        _wait_and_exit(worker)
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    _mount("--make-rprivate", "/")
    _mount("-t", "proc", "proc", "/proc")
    _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(WORLD_DIR))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


@cache
def can_enter() -> str | None:
    """Why this machine cannot run a cluster in namespaces, in a sentence; None when it can.

    Tried once in a process.
    """
    if os.geteuid() != 0:
        return "a cluster in namespaces needs root"
    missing = [name for name in _PROGRAMS if not shutil.which(name, path=_search_path())]
    if missing:
        return f"a cluster in namespaces needs these programs: {', '.join(missing)}"
    if not [*Path("/usr").glob("lib*/libnss_extrausers.so.2"), *_in_triplet_folder()]:
        return "a cluster in namespaces needs libnss-extrausers"
    probe = (
        f"mount -t tmpfs tmpfs {WORLD_DIR} && cd {WORLD_DIR} && mkdir u w m && mount -t overlay"
        " overlay -o lowerdir=/,upperdir=u,workdir=w m && ip link add b0 type bridge"
    )
    tried = subprocess.run(
        ["unshare", "--net", "--uts", "--mount", "--ipc", "--pid", "--fork", "sh", "-c", probe],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode:
        return f"this kernel refuses namespaces, overlay or bridges: {tried.stderr.strip()}"
    return None


def _in_triplet_folder() -> Iterator[Path]:
    """Where Debian and Ubuntu keep the library: /usr/lib/x86_64-linux-gnu, for one."""
    return Path("/usr").glob("lib/*-linux-gnu/libnss_extrausers.so.2")


def _search_path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"


def _fork_tied() -> int:
    """Fork; the child dies by SIGKILL when its parent does. Returns 0 in the child."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child:
        os.close(read_end)
        os.write(write_end, b"x")
        os.close(write_end)
        return child
    os.close(write_end)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent wrote after the fork; without its byte it died before the line above.
    if not os.read(read_end, 1):
        os._exit(1)
    os.close(read_end)
    return 0


def _wait_and_exit(child: int) -> NoReturn:
    """Reap whatever ends, hand signals on, and exit as `child` does."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os.kill(child, signal.SIGTERM))
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # Ctrl-C reaches all three processes and is handed on as well: one press, one exception,
    # or the second would cut short what the first set going.
    global _interrupted_at_s
    elapsed_s = time.monotonic() - _interrupted_at_s
    _interrupted_at_s = time.monotonic()
    if elapsed_s > 1:
        raise KeyboardInterrupt


def _flush() -> None:
    """Text that waits in a buffer would be printed by each of the three processes."""
    sys.stdout.flush()
    sys.stderr.flush()


def _mount(*args: str) -> None:
    subprocess.run(["mount", *args], check=True)
