"""Asks units.py: at once, or as a process of the machine that forks for each question.

A fork takes a tenth of the processor time of a Python that starts, and a boot asks ten times. Like
systemd's, a service so inherits nothing of who asked for it.
"""

import os
import signal
import sys
from collections.abc import Callable

PORT = 1019  # as in local/bin/systemctl

Main = Callable[[], int]


def run(main: Main) -> None:
    """With the words of the command line; the one word `listen` is for process 1."""
    if sys.argv[1:] == ["listen"]:
        listen(main)
    sys.exit(code_of(main))


def listen(main: Main) -> None:
    """Answer for as long as the machine runs."""
    import socket

    listener = socket.create_server(("127.0.0.1", PORT), backlog=64)
    signal.signal(signal.SIGCHLD, reap)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            answer(connection.detach(), main)
        connection.close()


def reap(*_: object) -> None:
    """Whoever has ended may not be taken for alive."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def answer(connection: int, main: Main) -> None:
    """One question: the asker's process, which gets to see what is printed, and its words."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    told = b""
    while not told.endswith(b"\0\n"):
        more = os.read(connection, 4096)
        if not more:
            os._exit(1)
        told += more
    asker, *words = told.decode().split("\0")[:-1]
    sys.argv = ["systemctl", *words]
    for number in (1, 2):
        os.dup2(opened(f"/proc/{asker}/fd/{number}"), number)
    pid, code = os.getpid(), code_of(main)
    if os.getpid() == pid:  # and not what goes on after --no-block
        os.write(connection, f"{code}\n".encode())
    os._exit(code)


def opened(file: str) -> int:
    """What the asker prints to; nothing where it, or who would read, has gone."""
    try:
        found = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)
    os.set_blocking(found, True)
    return found


def code_of(main: Main) -> int:
    """What it ends with; what it has to say is printed."""
    try:
        code = main()
    except SystemExit as left:
        os.write(2, f"{left.code}\n".encode())
        code = 1
    sys.stdout.flush()
    return code
