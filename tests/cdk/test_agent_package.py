"""The agent's archive, built as for a deployment and run on the Pythons that heads have."""

import ast
import hashlib
import os
import pwd
import re
import shutil
import struct
import subprocess
import tarfile
from pathlib import Path

import pytest

from cdk.agent_package import (
    MACHINES,
    PYTHONS,
    REQUIREMENTS,
    SERVICES,
    agent_package,
    own_agent_package,
)
from tests.cdk.made import ROOT

OLDEST = (3, 12)
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}


@pytest.fixture(scope="session")
def built() -> Path:
    return agent_package(ROOT)


@pytest.fixture(scope="session")
def unpacked(built, tmp_path_factory) -> Path:
    folder = Path(tmp_path_factory.mktemp("agent"))
    with tarfile.open(built) as archive:
        archive.extractall(folder, filter="data")
    return folder


def test_the_archive_has_one_copy_of_all_but_compiled_packages(unpacked):
    folders = {f"cp{each.replace('.', '')}-{name}" for each in PYTHONS for name in MACHINES}

    assert {path.name for path in unpacked.iterdir()} == {
        *("__main__.py", "tidegate", "lib"),
        *folders,
    }
    assert not list((unpacked / "lib").rglob("*.so*"))
    for folder in folders:
        (library,) = (unpacked / folder).rglob("*.so*")
        machine = struct.unpack_from("<H", library.read_bytes(), 18)[0]
        assert machine == ELF_MACHINES[folder.split("-")[1]]


def python_of(version: str) -> Path | None:
    """An interpreter, on the path or of pyenv, whose commands on the path may lead nowhere."""
    name = f"python{version}"
    ours = [Path(folder) / name for folder in os.environ["PATH"].split(os.pathsep)]
    # The account's home, which HOME need not be: scripts/setup.sh looks there as well.
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    theirs = home.glob(f".pyenv/versions/{version}.*/bin/{name}")
    found = (each for each in (*ours, *theirs) if each.exists() and "shims" not in each.parts)
    return next(found, None)


@pytest.mark.parametrize("version", PYTHONS)
def test_the_agent_runs_with_nothing_but_the_archive(unpacked, version):
    python = python_of(version)
    if not python:
        pytest.skip(f"no Python {version} here")
    done = subprocess.run(
        [python, "-I", "-S", str(unpacked)], capture_output=True, text=True, check=False, env={}
    )

    assert done.returncode == 2, done.stderr
    assert "TIDEGATE_CLUSTER  Field required" in done.stderr


def test_the_agent_s_code_is_of_the_oldest_python(unpacked):
    for path in (unpacked / "tidegate").rglob("*.py"):
        ast.parse(path.read_text(), feature_version=OLDEST)


def test_the_agent_s_packages_are_those_of_the_lock():
    asked = set(re.findall(r"^(\S+)==(\S+) ", (ROOT / REQUIREMENTS).read_text(), re.MULTILINE))
    lock = re.findall(r'^name = "(.+)"\nversion = "(.+)"', (ROOT / "uv.lock").read_text(), re.M)

    assert asked
    assert asked <= set(lock), "scripts/lock-agent.sh locks them again"


def test_every_service_that_the_agent_calls_has_its_model(unpacked):
    data = {path.name for path in (unpacked / "lib/botocore/data").iterdir() if path.is_dir()}
    calling = (ROOT / "tidegate/wiring/agent.py", ROOT / "tidegate/adapters/clients.py")
    clients = re.findall(r'client\("(\w+)"', "".join(each.read_text() for each in calling))

    assert data == set(clients) == set(SERVICES)


def test_the_same_sources_give_the_same_bytes(built, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")  # without uv, as a fresh machine's
    again = tmp_path / "again"
    for name in ("tidegate", "cdk"):
        shutil.copytree(ROOT / name, again / name, ignore=shutil.ignore_patterns("__pycache__"))

    assert agent_package(again).read_bytes() == built.read_bytes()


def test_a_change_of_the_agent_makes_another_archive(tmp_path):
    root = tmp_path / "changed"
    shutil.copytree(ROOT / "tidegate", root / "tidegate")
    before = hashlib.sha256(own_agent_package(root).read_bytes()).digest()
    (root / "tidegate/agent/loop.py").write_text("x = 1\n")

    assert hashlib.sha256(own_agent_package(root).read_bytes()).digest() != before
