"""The sandbox's way onto the head: as whom, and in which folder."""

import os
import subprocess
from pathlib import Path

import pytest

ON_HEAD = Path(__file__).parents[2] / "local" / "sandbox" / "bin" / "on-head"


@pytest.mark.parametrize(
    ("user", "home"),
    [("ada", "/shared/home/ada"), ("root", "/root"), ("grace", "/shared/home/grace")],
)
def test_a_command_runs_as_its_user_in_a_folder_that_is_there(
    tmp_path: Path, user: str, home: str
) -> None:
    (tmp_path / "head").write_text(str(os.getpid()) if Path("/proc/self").exists() else "")
    if not Path("/proc/self").exists():
        pytest.skip("the real sandbox is Linux's alone: no /proc")
    entered = tmp_path / "nsenter"
    entered.write_text('#!/bin/bash\nprintf "%s\\n" "${@: -4}"\n')
    entered.chmod(0o755)
    environment = {"SANDBOX": str(tmp_path), "SANDBOX_USER": user}
    environment["PATH"] = f"{tmp_path}:{os.environ['PATH']}"

    done = subprocess.run(
        [ON_HEAD, "scontrol", "ping"],
        env=environment,
        cwd="/tmp",
        capture_output=True,
        text=True,
        check=True,
    )

    command = f"umask 022 && cd {home} && exec scontrol ping "
    assert done.stdout.splitlines() == ["-l", user, "-c", command]
