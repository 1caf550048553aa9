"""The functions' code as one zip file: ours, the locked packages, and bytecode for both.

Without Docker: uv takes the wheels for Lambda's own platform. The same sources give the same
bytes, so that a deployment without a change changes nothing.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from modulefinder import ModuleFinder
from pathlib import Path
from tempfile import TemporaryDirectory

from cdk import wheels
from cdk.wheels import Target, add_wheels, cache_of, cached, digest, export_group, own_files

# botocore's; those whose clients the functions are wired with.
SERVICES = (
    "cloudwatch",
    "dynamodb",
    "ec2",
    "events",
    "pricing",
    "resource-groups",
    "s3",
    "sesv2",
    "sns",
    "sqs",
)
LAMBDA = Target(python="3.13", platform="aarch64-manylinux_2_28", services=SERVICES)
GROUP = "functions"

# Whatever changes here may change what is built.
BUILDER = (Path(wheels.__file__), Path(__file__))

# Where Lambda unpacks the code; tracebacks name files there.
TASK_ROOT = "/var/task"

# What a function may be made of; it carries what it can import of it.
OWN_FOLDERS = ("lambdas", "tidegate")
HANDLERS, TABLES = "lambdas", "tidegate/data"

# Zip files know no time before this one, and any time of building would change the bytes.
EPOCH = (1980, 1, 1, 0, 0, 0)


def package(root: Path) -> Path:
    """The zip file with everything. Errors: BadConfig, when uv is missing or fails."""
    packages = cached(wheels_folder(root), lambda folder: _add_wheels(root, folder))
    key = digest(root, [*_of_wheels(root), *_sources(root)])
    return cached(
        cache_of(root) / f"functions-{key}.zip", lambda file: _build(root, file, wheels=packages)
    )


def own_code_package(root: Path) -> Path:
    """The zip file with our own code alone, for tests that never run it."""
    key = digest(root, [*BUILDER, *_sources(root)])
    return cached(cache_of(root) / f"own-{key}.zip", lambda file: _build(root, file))


def wheels_folder(root: Path) -> Path:
    """Where the packages are once they are unpacked, another one for another builder."""
    return cache_of(root) / f"wheels-{digest(root, _of_wheels(root))}"


def _of_wheels(root: Path) -> list[Path]:
    return [root / "uv.lock", root / "pyproject.toml", *BUILDER]


def _sources(root: Path) -> list[Path]:
    """More than a function carries: what it imports is not known before it is built."""
    return list(own_files(root, OWN_FOLDERS, without=()))


def _carried(root: Path) -> set[Path]:
    """Our modules that a function can import, at its start or later, and tables they name."""
    finder = ModuleFinder(path=[str(root)])
    for handler in (root / HANDLERS).glob("*.py"):
        finder.import_hook(f"{HANDLERS}.{handler.stem}")
    files = (getattr(each, "__file__", None) for each in finder.modules.values())
    modules = {Path(file) for file in files if file}
    text = "".join(module.read_text(encoding="utf-8") for module in modules)
    return modules | {each for each in (root / TABLES).iterdir() if f'"{each.name}"' in text}


def _add_wheels(root: Path, folder: Path) -> None:
    requirements = folder.parent / "requirements.txt"
    export_group(root, GROUP, requirements)
    add_wheels(folder, LAMBDA, requirements=requirements)
    _compile(folder)


def _build(root: Path, zip_file: Path, *, wheels: Path | None = None) -> None:
    with TemporaryDirectory(dir=zip_file.parent) as folder:
        own = Path(folder)
        for file in _carried(root):
            copy = own / file.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        _compile(own)
        _store_methods(own)
        _zip(zip_file, [own, *([wheels] if wheels else [])])


def _store_methods(folder: Path) -> None:
    """The methods of dataclasses as bytecode: a quarter of a cold start. Imports all of it."""
    _python(folder, "-B", "-c", "from lambdas.precompiled import store; store()")


def _compile(folder: Path) -> None:
    """Bytecode that Python never compares with the source: half of a cold start."""
    modules = ("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash")
    _python(folder, *modules, "-s", str(folder), "-p", TASK_ROOT, str(folder))


def _python(folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
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
