"""Locked packages from the registry, for a Python and a processor that are not this computer's.

Without Docker: uv takes the wheels of a platform. The same lock gives the same bytes. What was
built once is kept in `.tools`, under the hash of all that it was built from.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fcntl import LOCK_EX, flock
from pathlib import Path
from tempfile import TemporaryDirectory

from tidegate.core.model.errors import BadConfig

# botocore describes 400 services in 28 MB. The others of its files are about all of them.
COMMON_DATA = ("endpoints.json", "partitions.json", "_retry.json", "sdk-default-configuration.json")

# Parts of Powertools that no function of ours has: they log and count, and serve no API.
POWERTOOLS_UNUSED = (
    "event_handler",
    *(f"utilities/{name}" for name in ("auth_alpha", "idempotency", "parameters", "parser")),
)

# What installers write down about where and how they installed.
INSTALL_NOTES = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json")

KEPT_BUILDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What the wheels are for. `services`: of those that botocore describes."""

    python: str
    platform: str
    services: tuple[str, ...]


def cache_of(root: Path) -> Path:
    """Where builds of this checkout are kept."""
    return root / ".tools" / "packages"


def own_files(root: Path, folders: tuple[str, ...], *, without: tuple[str, ...]) -> Iterator[Path]:
    """Our sources and their tables, except paths that begin with one of `without`."""
    left_out = tuple(f"{root}/{each}" for each in without)
    for folder in folders:
        for path in sorted(_sources_below(root / folder)):
            if not str(path).startswith(left_out):
                yield path


def _sources_below(folder: Path) -> Iterator[Path]:
    for at, folders, names in folder.walk():
        folders[:] = [each for each in folders if each != "__pycache__"]
        yield from (at / name for name in names if name.endswith((".py", ".csv", ".yaml", ".txt")))


def digest(root: Path, files: list[Path]) -> str:
    """Of names and contents, and of the Python that builds."""
    told = hashlib.sha256(sys.version.encode())
    for file in files:
        told.update(os.path.relpath(file, root).encode())
        told.update(hashlib.sha256(file.read_bytes()).digest())
    return told.hexdigest()[:16]


def cached(wanted: Path, make: Callable[[Path], None]) -> Path:
    """`wanted`, made when it is not there. It appears all at once, so that it is whole.

    Who asks while it is made waits for it.
    """
    if wanted.exists():
        return wanted
    wanted.parent.mkdir(parents=True, exist_ok=True)
    with (wanted.parent / f"{_kind(wanted)}.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not wanted.exists():
            with TemporaryDirectory(dir=wanted.parent, prefix="making-") as folder:
                made = Path(folder) / wanted.name
                make(made)
                made.rename(wanted)
            _forget_old(wanted)
    return wanted


def _kind(build: Path) -> str:
    """What is built, without the key of this build."""
    return build.name.rpartition("-")[0]


def _forget_old(newest: Path) -> None:
    alike = newest.parent.glob(f"{_kind(newest)}-*")
    by_age = sorted(alike, key=lambda path: path.stat().st_mtime, reverse=True)
    for old in by_age[KEPT_BUILDS:]:
        shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)


def export_group(root: Path, group: str, requirements: Path) -> None:
    """What uv.lock has for a group of pyproject.toml, with hashes."""
    exported = ["export", "--quiet", "--frozen", "--only-group", group, "--no-emit-project"]
    _run([_uv(), *exported, "--project", str(root), "--output-file", str(requirements)])


def add_wheels(folder: Path, target: Target, *, requirements: Path) -> None:
    """The target's packages, unpacked into `folder`. Errors: BadConfig, when uv cannot."""
    _run(
        [
            *(_uv(), "pip", "install", "--quiet", "--no-deps", "--require-hashes"),
            *("--only-binary", ":all:", "--python-version", target.python),
            *("--python-platform", target.platform, "--target", str(folder)),
            *("--requirement", str(requirements)),
        ]
    )
    _trim(folder, target.services)


def _uv() -> str:
    """The locked one, beside this Python; else the machine's."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which("uv", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
    if not found:
        raise BadConfig("uv is needed to package the code: `make setup` installs it")
    return found


def _run(command: list[str]) -> None:
    # In an environment made by `uv run`, uv would take that one for its target.
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise BadConfig(f"the code could not be packaged: {done.stderr.strip()}")


def _trim(folder: Path, services: tuple[str, ...]) -> None:
    """Without what is never read, and without traces of this computer."""
    shutil.rmtree(folder / "bin", ignore_errors=True)
    (folder / ".lock").unlink(missing_ok=True)
    for notes in folder.glob("*.dist-info"):
        for name in INSTALL_NOTES:
            (notes / name).unlink(missing_ok=True)
    for part in POWERTOOLS_UNUSED:
        shutil.rmtree(folder / "aws_lambda_powertools" / part, ignore_errors=True)
    for entry in (folder / "botocore" / "data").glob("*"):
        if entry.is_dir() and entry.name not in services:
            shutil.rmtree(entry)
        elif entry.is_dir():
            for old in sorted(entry.iterdir())[:-1]:
                shutil.rmtree(old)
        elif entry.name.removesuffix(".gz") not in COMMON_DATA:
            entry.unlink()
