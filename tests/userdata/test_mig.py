"""The stage that cuts GPUs, where their mode changes by a reset that the machine may not make."""

import os
import subprocess
from pathlib import Path

import pytest

USERDATA = Path(__file__).parents[2] / "userdata"
# Of the library: the rest of it is stood in for.
UNITS = "/^readonly MONITORS/p; /^stop_units/,/^}/p; /^start_units/,/^}/p"
STAGE = USERDATA / "node" / "mig.sh"
SYSTEMCTL = """case $1 in
    is-active) grep -qx "${*: -1}" HERE/active ;;
    *) echo "$*" >>HERE/calls
       [[ $1 != stop ]] || sed -i "/^$2\\$/d" HERE/active
       [[ $1 != start ]] || echo "$2" >>HERE/active ;;
esac"""
# Source: NVIDIA's MIG User Guide, "Enable MIG Mode".
CUT = "[[ ! -s HERE/active ]] || { echo 'In use by another client' >&2; exit 1; }"
PENDING, ENABLED, NEVER = "Disabled, Enabled", "Enabled, Enabled", "[N/A], [N/A]"


def applied(
    folder: Path, modes: str, holders: str = "", launch: str = "echo l-1"
) -> tuple[bool, list[str]]:
    """Of GPUs that say `modes` after a cut that failed: whether the boot goes on, and what
    systemctl was asked to do. With `holders`, words: units that run, and have the GPUs open; the
    cut fails by them alone then. `launch`: what tells the tag of the launch.
    """
    (folder / "active").write_text("".join(f"{each}\n" for each in holders.split()))
    commands = folder / "bin"
    commands.mkdir(exist_ok=True)
    (folder / "run").mkdir(exist_ok=True)
    for name, line in (
        ("nvidia-mig-parted", CUT if holders else "echo error resetting all GPUs >&2; exit 1"),
        ("nvidia-smi", f"[[ $1 == -* ]] && echo '{modes}'"),
        ("systemctl", SYSTEMCTL),
    ):
        line = line.replace("HERE", str(folder))
        (commands / name).write_text(f"#!/bin/bash\n{line}\n")
        (commands / name).chmod(0o755)
    stage = folder / "mig.sh"
    stage.write_text(STAGE.read_text().replace("/var/lib/", f"{folder}/lib/"))
    helpers = (
        f"source <(sed -n '{UNITS}' {USERDATA / 'lib.sh'}); "
        "console() { :; }; sleep() { :; }; "
        "put_file() { if [[ $1 == */lib/* ]]; then cat >$1; else cat >/dev/null; fi; }; "
        f"imds_if_any() {{ [[ $1 == tags/instance/tidegate:launch ]] && {launch}; }}"
    )
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail; {helpers}; source {stage}; apply"],
        env={
            "PATH": f"{commands}:{os.environ['PATH']}",
            "LAYOUT": "8=1g.5gb:7",
            "RUN_DIR": str(folder / "run"),
            "GPU_TYPE": "a100",
        },
        capture_output=True,
        check=False,
    )
    calls = folder / "calls"
    return done.returncode == 0, calls.read_text().splitlines() if calls.exists() else []


def test_a_mode_that_waits_for_a_reset_comes_with_one_reboot(tmp_path: Path) -> None:
    """NVIDIA's own service for MIG does the same where GPUs are passed through to a machine."""
    assert applied(tmp_path, PENDING) == (False, ["reboot"])
    assert applied(tmp_path, PENDING) == (False, ["reboot"])


def test_a_stopped_node_that_is_started_may_reboot_once_more(tmp_path: Path) -> None:
    """EC2 starts it on other hardware, whose GPUs keep a mode of their own."""
    applied(tmp_path, PENDING)

    assert applied(tmp_path, PENDING, launch="echo l-2") == (False, ["reboot", "reboot"])
    assert applied(tmp_path, PENDING, launch="echo l-2") == (False, ["reboot", "reboot"])


def test_a_node_that_is_not_told_its_launch_does_not_reboot(tmp_path: Path) -> None:
    """Else one whose metadata service is silent now and then would boot for ever."""
    assert applied(tmp_path, PENDING, launch="false") == (False, [])


@pytest.mark.parametrize("modes", [ENABLED, NEVER])
def test_a_cut_that_failed_for_another_reason_reboots_nothing(tmp_path: Path, modes: str) -> None:
    assert applied(tmp_path, modes) == (False, [])


def test_monitors_let_the_gpus_go_while_they_are_cut(tmp_path: Path) -> None:
    """The mode of a Hopper is lost by a reboot, so none could help there."""
    _, asked = applied(tmp_path, NEVER, "nvidia-dcgm dcgm-exporter")

    stopped = ["stop nvidia-dcgm", "stop dcgm-exporter"]
    assert asked == [*stopped, *(each.replace("stop", "start") for each in stopped)]


def test_a_runner_that_a_reboot_ends_does_not_say_that_the_boot_failed(tmp_path: Path) -> None:
    boot = (USERDATA / "boot.sh").read_text()
    start = boot.index("give_up() {")
    body = boot[start : boot.index("\n}\n", start) + 3]
    script = f"""
        RUN_DIR={tmp_path} LOG_DIR={tmp_path} ROLE=node; declare -A running=()
        console() {{ echo "$*"; }}; put_event() {{ echo event; }}; is_full() {{ false; }}
        quoted() {{ echo "$1"; }}; systemctl() {{ echo "$*"; }}
        {body}
        give_up runner 143
    """

    def said() -> str:
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return done.stdout

    assert "event\npoweroff" in said()
    (tmp_path / "reboots").touch()
    assert said() == ""
