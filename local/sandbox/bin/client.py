"""A command of the simulated sandbox: its process gets what was typed, and answers."""

import json
import os
import socket
import sys
from pathlib import Path


def ask(words: list[str], piped: str | None) -> dict[str, str | int]:
    line = {
        "words": words,
        "folder": str(Path.cwd()),
        "user": os.environ["SANDBOX_USER"],
        "piped": piped,
    }
    with socket.socket(socket.AF_UNIX) as desk:
        desk.connect(os.environ["SANDBOX"] + "/desk")
        desk.sendall(json.dumps(line).encode() + b"\n")
        with desk.makefile() as answer:
            found: dict[str, str | int] = json.loads(answer.readline())
            return found


def main() -> int:
    words = sys.argv[1:]
    answer = ask(words, None)
    if answer.get("needs_input"):
        answer = ask(words, sys.stdin.read())
    if said := answer["said"]:
        print(said, file=sys.stderr if answer["code"] else sys.stdout)
    return int(answer["code"])


if __name__ == "__main__":
    sys.exit(main())
