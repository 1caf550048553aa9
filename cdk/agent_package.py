"""The head's agent as one archive, for whatever Python 3.12 or 3.13 and processor the head has.

A head's image has no package of ours, and the boot must not depend on a registry: the archive
holds the locked packages too. Compiled ones are in a folder of each target, all the rest is there
once. The same sources give the same bytes.
"""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import NamedTemporaryFile

from cdk import wheels
from cdk.wheels import Target, add_wheels, cache_of, cached, digest, own_files
from userdata import bundle

# botocore's; what the agent calls.
SERVICES = ("events", "s3", "sqs", "sts")
# Those of Ubuntu 24.04 and Debian 13. Ours are written for 3.13; tests hold that the agent's run
# on 3.12 as well.
PYTHONS = ("3.12", "3.13")
MACHINES = ("x86_64", "aarch64")  # as `platform.machine()` says it
COMPILED = ("pydantic-core",)
REQUIREMENTS = "cdk/agent_requirements.txt"  # scripts/lock-agent.sh makes it from uv.lock
OWN_FOLDERS = ("tidegate",)
NOT_IN_AGENT = (
    *("tidegate/cli/", "tidegate/sim/", "tidegate/service/", "tidegate/data/"),
    *("tidegate/adapters/dynamodb", "tidegate/adapters/ec2"),
    *(f"tidegate/wiring/{name}" for name in ("function", "hours", "interruption", "planner")),
)
MAIN = "tidegate/agent/archive_main.py"
# Whatever changes here may change what is built.
BUILDER = (Path(wheels.__file__), Path(bundle.__file__), Path(__file__))

type Files = dict[str, bytes]


def agent_package(root: Path) -> Path:
    """The archive with everything. Errors: BadConfig, when uv is missing or fails."""
    packages = cached(wheels_folder(root), lambda folder: _add_all_wheels(root, folder))
    key = digest(root, [*_of_wheels(root), *_sources(root)])
    return cached(
        cache_of(root) / f"agent-{key}.tgz",
        lambda file: _write(file, _own(root) | _files_below(packages)),
    )


def own_agent_package(root: Path) -> Path:
    """The archive with our own code alone, for machines whose Python has the packages."""
    key = digest(root, [*BUILDER, *_sources(root)])
    return cached(cache_of(root) / f"own_agent-{key}.tgz", lambda file: _write(file, _own(root)))


def wheels_folder(root: Path) -> Path:
    """Where the packages are once they are unpacked, another one for another builder."""
    return cache_of(root) / f"agent_wheels-{digest(root, _of_wheels(root))}"


def _of_wheels(root: Path) -> list[Path]:
    return [root / REQUIREMENTS, *BUILDER]


def _sources(root: Path) -> list[Path]:
    return list(own_files(root, OWN_FOLDERS, without=NOT_IN_AGENT))


def _own(root: Path) -> Files:
    files = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in own_files(root, OWN_FOLDERS, without=NOT_IN_AGENT)
    }
    return {"__main__.py": (root / MAIN).read_bytes(), **files}


def _write(file: Path, files: Files) -> None:
    # Of 31 MB the smallest archive takes 2.1 s of processor time; one that is 0.5 % larger 0.8 s.
    file.write_bytes(bundle.gzipped(bundle.tar_of(files), level=6))


def _add_all_wheels(root: Path, folder: Path) -> None:
    """The packages in `lib`, but those with compiled code in a folder of each target."""
    compiled = "\n".join(_blocks(root, is_compiled=True))
    plain = "\n".join(_blocks(root, is_compiled=False))
    _add(folder / "lib", plain, _target(PYTHONS[0], MACHINES[0]))
    for python, machine in product(PYTHONS, MACHINES):
        name = f"cp{python.replace('.', '')}-{machine}"
        _add(folder / name, compiled, _target(python, machine))


def _blocks(root: Path, *, is_compiled: bool) -> Iterator[str]:
    """The packages of the requirements, each with the lines of its hashes."""
    for block in re.split(r"\n(?=\w)", (root / REQUIREMENTS).read_text()):
        if (block.split("==")[0] in COMPILED) == is_compiled:
            yield block


def _target(python: str, machine: str) -> Target:
    return Target(python=python, platform=f"{machine}-manylinux_2_28", services=SERVICES)


def _add(folder: Path, requirements: str, target: Target) -> None:
    with NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(requirements)
        file.flush()
        add_wheels(folder, target, requirements=Path(file.name))


def _files_below(folder: Path) -> Files:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
