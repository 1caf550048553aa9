"""`.ci/run` is as on a fresh machine, whoever starts it.

It runs here with stand-ins for `make test` that tell what they got.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Where registries are; nothing that was installed.
REGISTRIES = {"https_proxy": "http://proxy:3128", "SSL_CERT_FILE": "/etc/company.pem"}
LEFT_BY_OTHERS = {
    "UV_CACHE_DIR": "/somewhere",
    "PIP_FIND_LINKS": "/wheels",
    "PYTHONPATH": "/theirs",
    "PYENV_ROOT": "/theirs",
    "AWS_PROFILE": "mine",
    "TIDEGATE_SLURM_ROOT": "/tree",
}


def checkout(folder: Path, *, test: str) -> Path:
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", folder / ".ci/run")
    (folder / "Makefile").write_text("test:\n\t@scripts/test.sh\n")
    (folder / "scripts").mkdir()
    script = folder / "scripts/test.sh"
    script.write_text(f"#!/bin/sh\n{test}\n")
    script.chmod(0o755)
    return folder


def run(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", ".ci/run"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(Path.home()), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of the tests, and as FILES what their home holds."""
    folder = Path(tmp_path_factory.mktemp("checkout"))
    checkout(folder, test='env; echo "FILES=$(ls -A "$HOME")"; pwd >"$HOME/left"')
    mine = folder / "mine"
    mine.mkdir()
    (mine / "uv").symlink_to("/bin/true")
    path = {"PATH": f"{mine}:{os.environ['PATH']}", "CI": "true"}
    done = run(folder, {**LEFT_BY_OTHERS, **REGISTRIES, **path})
    assert done.returncode == 0, done.stderr
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def test_the_home_is_empty_and_goes_with_the_run(seen):
    assert seen["FILES"] == ""
    assert not Path(seen["HOME"]).exists()


def test_the_path_is_the_system_s_own(seen):
    assert seen["PATH"] == SYSTEM_PATH


def test_of_the_environment_only_the_way_to_the_registries_is_left(seen):
    assert not LEFT_BY_OTHERS.keys() & seen.keys()
    assert {name: seen.get(name) for name in REGISTRIES} == REGISTRIES


def test_the_real_path_is_required(seen):
    assert (seen["TIDEGATE_REQUIRE_REAL"], seen["CI"]) == ("1", "true")


def test_what_the_machine_has_is_told_first(tmp_path):
    done = run(checkout(tmp_path, test="echo tests"), {})

    *told, tests = done.stdout.splitlines()
    assert tests == "tests"
    words = {line.split()[2]: line.split(maxsplit=3)[3] for line in told}
    assert {"system", "python3", "uv", "node", "slurmd", "shellcheck", "HOME"} <= words.keys()
    assert words["uv"] == (shutil.which("uv", path=SYSTEM_PATH) or "none")
    assert words["python3"].startswith(f"{shutil.which('python3', path=SYSTEM_PATH)}: Python 3.")


def test_a_failure_is_the_run_s_own(tmp_path):
    assert run(checkout(tmp_path, test="exit 3"), {}).returncode != 0
