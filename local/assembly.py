"""Synthesizes the CDK app for a cluster file, as `cdk synth` does, without the CLI.

The same text and the same sources give the same assembly, so it is kept: for all worlds of a test
run, and for the next demo.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from fcntl import LOCK_EX, flock
from pathlib import Path

from moto.core.models import DEFAULT_ACCOUNT_ID

from cdk.wheels import digest

ROOT = Path(__file__).parents[1]
KEPT = ROOT / ".tools" / "assemblies"
NUM_KEPT = 40
# All that an assembly is made of, but the cluster file.
FOLDERS = ("cdk", "lambdas", "tidegate", "userdata")
FILES = ("app.py", "cdk.json", "pyproject.toml", "uv.lock")


class NotSynthesized(Exception):
    """The app refused; the message is what it said."""


def synthesize(cluster_file: Path, out: Path) -> Path:
    """The cloud assembly of one cluster, in `out`.

    Functions hold their own code only: other packages are built for Lambda's processor, and
    the local cloud takes them from this interpreter. CloudFormation's own validation, the
    longest part of it, is left to the tests of the template. Errors: NotSynthesized.
    """
    return once(cluster_file, out, lambda folder: _synthesize(cluster_file, folder))


def once(cluster_file: Path, out: Path, make: Callable[[Path], None]) -> Path:
    """`out`, with a copy of what `make` has made of this file and of the sources as they are."""
    text = hashlib.sha256(cluster_file.read_bytes()).hexdigest()
    copy_kept(KEPT / f"{digest(ROOT, list(_sources(ROOT)))}-{text[:16]}", out, make)
    return out


def copy_kept(kept: Path, out: Path, make: Callable[[Path], None]) -> None:
    """Copy `kept`, which is made first where it is not there. Who comes meanwhile waits."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.with_suffix(".lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not kept.exists():
            new = kept.with_suffix(".new")
            shutil.rmtree(new, ignore_errors=True)
            make(new)
            new.rename(kept)
            _forget_unused(kept.parent)
        os.utime(kept)
        shutil.copytree(kept, out, dirs_exist_ok=True)


def _forget_unused(folder: Path) -> None:
    with (folder / "all.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        kept = [each for each in folder.iterdir() if each.is_dir() and not each.suffix]
        for old in sorted(kept, key=lambda each: each.stat().st_mtime, reverse=True)[NUM_KEPT:]:
            shutil.rmtree(old)
            old.with_suffix(".lock").unlink(missing_ok=True)


def _sources(root: Path) -> Iterator[Path]:
    yield from (root / name for name in FILES)
    for folder in FOLDERS:
        for at, folders, names in (root / folder).walk():
            folders[:] = sorted(each for each in folders if each != "__pycache__")
            yield from (at / name for name in sorted(names))


def _synthesize(cluster_file: Path, out: Path) -> None:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    context |= {"cluster": str(cluster_file.resolve()), "package": "source"}
    environment = os.environ | {
        "CDK_OUTDIR": str(out),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "CDK_DEFAULT_ACCOUNT": DEFAULT_ACCOUNT_ID,
        "CDK_VALIDATION": "false",
    }
    done = subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NotSynthesized(done.stderr)
