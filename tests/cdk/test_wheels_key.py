"""When packages are fetched again: when their lock or what unpacks them is another one."""

import json
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from cdk.wheels import cached, own_files
from tests.cdk.made import ROOT

KEYS = """
import json, sys
from pathlib import Path
from cdk import agent_package, packaging

root, changed = Path.cwd(), {}
def keys():
    return [each.wheels_folder(root).name for each in (agent_package, packaging)]
for name in sys.argv[1:]:
    before = keys()
    with (root / name).open("a") as file:
        file.write("# more\\n")
    pairs = zip(("agent", "functions"), before, keys())
    changed[name] = [whose for whose, old, new in pairs if old != new]
print(json.dumps(changed))
"""
EXPECTED = {
    "cdk/wheels.py": ["agent", "functions"],
    "cdk/agent_package.py": ["agent"],
    "cdk/packaging.py": ["functions"],
    "cdk/agent_requirements.txt": ["agent"],
    "uv.lock": ["functions"],
    "pyproject.toml": ["functions"],
    "lambdas/planner.py": [],
}


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Whose packages are fetched again after a change of each file, in a copy of all of them."""
    root = Path(tmp_path_factory.mktemp("checkout"))
    for name in ("cdk", "lambdas", "tidegate", "userdata"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("uv.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, root / name)
    done = subprocess.run(
        [sys.executable, "-c", KEYS, *EXPECTED],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
        env={"PYTHONPATH": str(root)},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", EXPECTED)
def test_a_change_fetches_the_packages_that_it_concerns(
    changed: dict[str, list[str]], name: str
) -> None:
    assert changed[name] == EXPECTED[name]


def test_a_build_that_several_ask_for_at_once_is_made_once(tmp_path: Path) -> None:
    made, at_once = list[str](), Barrier(4)

    def make(file: Path) -> None:
        made.append(file.name)
        time.sleep(0.1)
        file.write_text("whole")

    def asked(_: int) -> str:
        at_once.wait(60)
        return cached(tmp_path / "built-1.zip", make).read_text()

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(asked, range(4))] == ["whole"] * 4
    assert made == ["built-1.zip"]
    assert {each.name for each in tmp_path.iterdir()} == {"built-1.zip", "built.lock"}


def test_each_table_is_among_what_a_change_builds_anew():
    found = {path.name for path in own_files(ROOT, ("tidegate/data",), without=())}

    assert found == {path.name for path in (ROOT / "tidegate" / "data").iterdir() if path.is_file()}
