"""The functions' code as one zip file: ours, the locked packages, and bytecode for both.

Without Docker: uv takes the wheels for Lambda's own platform. The same sources give the same
bytes, so that a deployment without a change changes nothing.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tidegate.core.errors import BadConfig

PLATFORM = "aarch64-manylinux_2_28"
PYTHON = "3.13"
GROUP = "functions"

# Where Lambda unpacks the code; tracebacks name files there.
TASK_ROOT = "/var/task"

OWN_FOLDERS = ("lambdas", "tidegate")
NOT_IN_FUNCTIONS = (
    *("tidegate/agent/", "tidegate/cli/", "tidegate/sim/"),
    # The command line's.
    *("tidegate/adapters/account.py", "tidegate/adapters/functions.py"),
    *("tidegate/adapters/stacks.py", "tidegate/data/offerings.csv"),
)

# botocore describes 400 services in 28 MB. The others of its files are about all of them.
SERVICES = ("dynamodb", "ec2", "events", "s3", "sqs")
COMMON_DATA = ("endpoints.json", "partitions.json", "_retry.json", "sdk-default-configuration.json")

# What installers write down about where and how they installed.
INSTALL_NOTES = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json")

# Zip files know no time before this one, and any time of building would change the bytes.
EPOCH = (1980, 1, 1, 0, 0, 0)
KEPT_BUILDS = 4


def package(root: Path) -> Path:
    """The zip file with everything. Errors: BadConfig, when uv is missing or fails."""
    locked = [root / "uv.lock", root / "pyproject.toml", Path(__file__)]
    wheels_key = _digest(root, locked)
    wheels = _cached(
        _cache(root) / f"wheels-{wheels_key}", lambda folder: _add_wheels(root, folder)
    )
    key = _digest(root, [*locked, *_own_files(root)])
    return _cached(
        _cache(root) / f"functions-{key}.zip", lambda file: _build(root, file, wheels=wheels)
    )


def own_code_package(root: Path) -> Path:
    """The zip file with our own code alone, for tests that never run it."""
    key = _digest(root, [Path(__file__), *_own_files(root)])
    return _cached(_cache(root) / f"own-{key}.zip", lambda file: _build(root, file))


def _cache(root: Path) -> Path:
    return root / ".tools" / "functions"


def _own_files(root: Path) -> Iterator[Path]:
    for folder in OWN_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            is_ours = path.suffix in (".py", ".csv") and "__pycache__" not in path.parts
            if is_ours and not name.startswith(NOT_IN_FUNCTIONS):
                yield path


def _digest(root: Path, files: list[Path]) -> str:
    told = hashlib.sha256(sys.version.encode())
    for file in files:
        told.update(os.path.relpath(file, root).encode())
        told.update(hashlib.sha256(file.read_bytes()).digest())
    return told.hexdigest()[:16]


def _cached(wanted: Path, make: Callable[[Path], None]) -> Path:
    """`wanted`, made when it is not there. It appears all at once, so that it is whole."""
    if wanted.exists():
        return wanted
    wanted.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=wanted.parent, prefix="making-") as folder:
        made = Path(folder) / wanted.name
        make(made)
        if not wanted.exists():
            made.rename(wanted)
    _forget_old(wanted)
    return wanted


def _forget_old(newest: Path) -> None:
    alike = newest.parent.glob(f"{newest.name.split('-')[0]}-*")
    by_age = sorted(alike, key=lambda path: path.stat().st_mtime, reverse=True)
    for old in by_age[KEPT_BUILDS:]:
        shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)


def _build(root: Path, zip_file: Path, *, wheels: Path | None = None) -> None:
    with TemporaryDirectory(dir=zip_file.parent) as folder:
        own = Path(folder)
        for file in _own_files(root):
            copy = own / file.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        _compile(own)
        _zip(zip_file, [own, *([wheels] if wheels else [])])


def _add_wheels(root: Path, folder: Path) -> None:
    uv = _uv(root)
    requirements = folder.parent / "requirements.txt"
    exported = ["export", "--quiet", "--frozen", "--only-group", GROUP, "--no-emit-project"]
    _run([uv, *exported, "--project", str(root), "--output-file", str(requirements)])
    _run(
        [
            *(uv, "pip", "install", "--quiet", "--no-deps", "--require-hashes"),
            *("--only-binary", ":all:", "--python-version", PYTHON),
            *("--python-platform", PLATFORM, "--target", str(folder)),
            *("--requirement", str(requirements)),
        ]
    )
    _trim(folder)
    _compile(folder)


def _uv(root: Path) -> str:
    own = root / ".tools" / "uv" / "bin" / "uv"
    found = str(own) if own.exists() else shutil.which("uv")
    if not found:
        raise BadConfig("uv is needed to package the functions: `make setup` installs it")
    return found


def _run(command: list[str]) -> None:
    # In an environment made by `uv run`, uv would take that one for its target.
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise BadConfig(f"the functions could not be packaged: {done.stderr.strip()}")


def _trim(folder: Path) -> None:
    """Without what functions never read, and without traces of this computer."""
    shutil.rmtree(folder / "bin", ignore_errors=True)
    (folder / ".lock").unlink(missing_ok=True)
    for notes in folder.glob("*.dist-info"):
        for name in INSTALL_NOTES:
            (notes / name).unlink(missing_ok=True)
    for entry in (folder / "botocore" / "data").iterdir():
        if entry.is_dir() and entry.name not in SERVICES:
            shutil.rmtree(entry)
        elif entry.is_dir():
            for old in sorted(entry.iterdir())[:-1]:
                shutil.rmtree(old)
        elif entry.name.removesuffix(".gz") not in COMMON_DATA:
            entry.unlink()


def _compile(folder: Path) -> None:
    """Bytecode that Python never compares with the source: half of a cold start."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"),
            *("-s", str(folder), "-p", TASK_ROOT, str(folder)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stdout + done.stderr


def _zip(zip_file: Path, folders: list[Path]) -> None:
    entries = {
        path.relative_to(folder).as_posix(): path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
    }
    with zipfile.ZipFile(zip_file, "w", zipfile.ZIP_DEFLATED) as written:
        for name, path in sorted(entries.items()):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.create_system = 3  # Unix, which the permissions below are for
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            written.writestr(entry, path.read_bytes())
