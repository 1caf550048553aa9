"""The recipes: what of them holds without heavy packages; scripts/jupyterhub.sh tries all of it.

JupyterHub's own parts are stand-ins here: the configuration runs, and its rules are asked.
"""

import asyncio
import os
import pwd
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.doc_commands import ROOT
from tidegate.wire.hooks import HooksModel

RECIPE = ROOT / "docs" / "recipes" / "jupyterhub"
PAGE = (ROOT / "docs" / "jupyterhub.md").read_text()
ME = pwd.getpwuid(os.getuid())


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the configuration defines; `said`: section -> what it sets there."""
    auth = ModuleType("jupyterhub.auth")
    auth.__dict__["Authenticator"] = type(
        "Authenticator", (), {"log": SimpleNamespace(warning=print)}
    )
    for name, module in (("batchspawner", ModuleType("batchspawner")), ("jupyterhub.auth", auth)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "jupyterhub", ModuleType("jupyterhub"))
    sections: dict[str, SimpleNamespace] = defaultdict(SimpleNamespace)
    said = type("Sections", (), {"__getattr__": lambda _, name: sections[name]})()
    file = RECIPE / "jupyterhub_config.py"
    seen: dict[str, Any] = {"__file__": str(file), "get_config": lambda: said, "said": sections}
    exec(compile(file.read_text(), str(file), "exec"), seen)
    return seen


def logged_in(
    config: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch, *, name: str, says: str
) -> str | None:
    """Whom the hub takes somebody for, whose password `unmunge` says this of."""
    (folder / "unmunge").write_text(f"#!/bin/sh\n{says}\n")
    (folder / "unmunge").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    asked = config["MungeAuthenticator"]().authenticate(None, {"username": name, "password": "x"})
    found: str | None = asyncio.run(asked)
    return found


def test_the_hub_takes_people_for_who_munge_says_that_they_are(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config["HOMES"] = Path(ME.pw_dir).parent
    good = f"printf 'UID: {ME.pw_uid}\\n\\njupyterhub'"
    other_purpose = good.replace("jupyterhub", "slurm")

    def whom(name: str, says: str) -> str | None:
        return logged_in(config, tmp_path, monkeypatch, name=name, says=says)

    assert whom(ME.pw_name, good) == ME.pw_name
    assert whom("somebody", good) is None
    assert whom(ME.pw_name, other_purpose) is None
    assert whom(ME.pw_name, f"{good}; exit 17") is None
    config["HOMES"] = Path("/shared/home")
    assert whom(ME.pw_name, good) is None


def test_a_profile_is_chosen_and_nothing_beside_it(config: dict[str, Any]) -> None:
    spawner = SimpleNamespace()

    config["choose"](spawner, {"profile": "1 T4, 8 hours"})

    assert vars(spawner) == {"req_gres": "gpu:t4:1", "req_runtime": "8:00:00"}
    for asked in ({"profile": "all"}, {"options": "--uid=0"}, {"profile": ["1 T4, 8 hours"]}):
        with pytest.raises((ValueError, TypeError)):
            config["choose"](spawner, asked)


def test_each_profile_fills_what_the_job_s_script_asks_for(config: dict[str, Any]) -> None:
    spawner = config["said"]["SlurmSpawner"]
    asked = set(re.findall(r"\{\{(\w+)\}\}", spawner.batch_script))
    of_batchspawner = {"homedir", "keepvars", "cmd", "partition", "options"}

    for profile in config["PROFILES"].values():
        assert asked - of_batchspawner <= {each.removeprefix("req_") for each in profile}
    assert config["START_S"] >= 2 * 900  # timings.boot_bound_s, as it comes


def test_the_hub_becomes_nobody_of_the_image(tmp_path: Path) -> None:
    """Also where `set -e` looks away: root was somebody to the first version of it."""
    lines = (RECIPE / "install.sh").read_text()
    (function,) = re.findall(r"^become\(\) \{\n.*?^\}\n", lines, re.MULTILINE | re.DOTALL)
    made = ["bash", "-c", f"folder=/shared/jupyterhub\n{function}\nbecome"]
    script = tmp_path / "jupyterhub-as"
    script.write_text(subprocess.run(made, capture_output=True, text=True, check=True).stdout)

    for person in ("root", "daemon", "0", "nobody-there", ""):
        done = subprocess.run(
            ["bash", "-p", str(script), person, "squeue"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (person, done.returncode != 0, done.stdout) == (person, True, "")


def test_the_page_s_hooks_are_hooks() -> None:
    block = PAGE.split("```yaml\n")[1].split("```")[0]

    hooks = HooksModel.model_validate(yaml.safe_load(block)["hooks"])

    for each in (*hooks.on_head_configured, *hooks.on_login_configured):
        assert each.inline
        verb = each.inline.split()[-1]
        assert re.search(rf"^{verb}\(\) \{{", (RECIPE / "install.sh").read_text(), re.MULTILINE)


def test_the_notebook_s_own_file_can_be_read() -> None:
    file = RECIPE / "jupyter_server_config.py"

    compile(file.read_text(), str(file), "exec")


# Slurm's commands as `hand-over` asks them: job 7, and what the other cluster answers.
SLURM = """#!/bin/bash
echo "${0##*/} $1" >>told
case "${0##*/} $1" in
    "scontrol show") echo "JobId=7 MORE JobState=STATE Reason=None" ;;
    sbatch*) [[ $SLURM_CONF == far.conf ]] && THERE ;;
    scancel*) [[ ! -e deaf ]] ;;
esac
"""
HELD = ["scontrol show", "scontrol write", "scontrol hold", "scontrol show"]
SENT = [*HELD, "sbatch --parsable"]


@pytest.mark.parametrize(
    ("state", "more", "there", "asked", "said"),
    [
        ("PENDING", "", "echo 9", [*SENT, "scancel 7"], "is job 9 of the other"),
        ("PENDING", "", "touch deaf; echo 9", [*SENT, "scancel 7"], "it is job 9 of the other"),
        ("PENDING", "", "exit 1", SENT, "scontrol release 7"),
        # Slurm holds what runs as well, and says nothing.
        ("RUNNING", "", "echo 9", [*HELD, "scontrol release"], "it has begun"),
        ("PENDING", "ArrayJobId=7 ArrayTaskId=1-3", "echo 9", ["scontrol show"], "an array"),
        ("PENDING", "HetJobId=7", "echo 9", ["scontrol show"], "heterogeneous"),
    ],
)
def test_a_job_is_handed_over_while_it_waits_and_never_waits_in_both_clusters(
    tmp_path: Path, state: str, more: str, there: str, asked: list[str], said: str
) -> None:
    for name in ("scontrol", "sbatch", "scancel"):
        text = SLURM.replace("MORE", more).replace("STATE", state).replace("THERE", there)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "far.conf").touch()

    done = subprocess.run(
        [ROOT / "docs/recipes/second-region/hand-over.sh", "7", "far.conf", "-t", "60"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )

    assert (tmp_path / "told").read_text().splitlines() == asked
    assert said in done.stdout + done.stderr
    assert (done.returncode == 0) == (there == "echo 9" and "scancel 7" in asked)
