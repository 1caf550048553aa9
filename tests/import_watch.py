"""Run as a script: imports every module of ours, prints what touched the world meanwhile.

`python import_watch.py ROOT PACKAGE...`. Python has no audit event for the environment, so
its reads are watched where they happen; what libraries read is their own affair.
"""

import importlib
import os
import sys
from pathlib import Path

WORLDLY = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "subprocess.Popen")


def modules(root: Path, packages: list[str]) -> list[str]:
    files = [file for package in packages for file in sorted((root / package).rglob("*.py"))]
    names = [".".join(file.relative_to(root).with_suffix("").parts) for file in files]
    return [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]


def watch(folders: tuple[str, ...]) -> None:
    """Print a line for each touch; the environment may be read outside of `folders`."""

    def hook(event: str, _: object) -> None:
        if event in WORLDLY:
            print(f"{event} while importing")

    def spy(method: str) -> None:
        original = getattr(os._Environ, method)

        def watched(self: object, *arguments: object) -> object:
            frame = sys._getframe(1)
            while frame.f_code.co_filename.startswith("<frozen") and frame.f_back:
                frame = frame.f_back
            if frame.f_code.co_filename.startswith(folders):
                print(f"{frame.f_code.co_filename}:{frame.f_lineno} reads the environment")
            return original(self, *arguments)

        setattr(os._Environ, method, watched)

    sys.addaudithook(hook)
    spy("__getitem__")
    spy("__iter__")


def main() -> None:
    root, packages = Path(sys.argv[1]), sys.argv[2:]
    sys.path.insert(0, str(root))
    watch(tuple(f"{root}/{package}/" for package in packages))
    for name in modules(root, packages):
        importlib.import_module(name)


if __name__ == "__main__":
    main()
