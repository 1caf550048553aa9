"""The dead man's switch of a node, on a real slurmctld that goes and comes back."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.e2e.test_agent_real import cluster, fresh_name

__all__ = ["cluster"]

USERDATA = Path("userdata")
AFTER_S, POLL_S = 4, 1
LIB = (
    'RUN_DIR={run}\nconsole() {{ echo "$*" >>{run}/console; }}\n'
    'put_event() {{ [[ ! -e {run}/off ]] && echo "$*" >>{run}/events; return 1; }}\n'
)


class Watcher:
    """The watcher in a folder of its own; `off`: whether it has powered the machine off."""

    def __init__(self, slurm: RealSlurm, name: str) -> None:
        self.slurm = slurm
        self.run = slurm.folder / f"watch-{name}"
        (self.run / "files").mkdir(parents=True)
        (self.run / "bin").mkdir()
        (self.run / "lib.sh").write_text(LIB.format(run=self.run))
        shutil.copy(USERDATA / "node" / "head-watch.sh", self.run / "files")
        self.says("systemctl", f"[[ $1 == poweroff ]] && touch {self.run}/off")

    def says(self, command: str, script: str) -> None:
        """What a command does instead of its own work."""
        path = self.run / "bin" / command
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    def is_off(self) -> bool:
        return (self.run / "off").exists()

    def silence_s(self) -> float:
        with suppress(FileNotFoundError, ValueError):
            return int((self.run / "silence").read_text()) / 100
        return 0.0

    @contextmanager
    def running(self, after_s: int = AFTER_S) -> Iterator["subprocess.Popen[bytes]"]:
        path = f"PATH={self.run}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        script = str(self.run / "files" / "head-watch.sh")
        process = subprocess.Popen(
            [*self.slurm.prefix, "env", path, "bash", script, str(after_s), str(POLL_S)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # nsenter forks, and does not pass on what ends it
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_an_idle_node_ends_when_its_head_is_gone_and_no_sooner(cluster: RealSlurm) -> None:
    watcher = Watcher(cluster, fresh_name())

    with watcher.running():
        time.sleep(AFTER_S + 4 * POLL_S)
        assert not watcher.is_off()
        assert watcher.silence_s() == 0.0

        stop(cluster)
        began_s = time.monotonic()
        eventually("it is off", watcher.is_off)
        took_s = time.monotonic() - began_s

    start(cluster)
    print(f"silent for {AFTER_S} s: off after {took_s:.1f} s")
    assert took_s >= AFTER_S
    assert "no step runs: powers off" in (watcher.run / "console").read_text()
    # Told before, and off although nobody could be told.
    kind, member, silent_s = (watcher.run / "events").read_text().splitlines()[0].split()
    assert (kind, member) == ("NodeOrphaned", '"silent_s":')
    assert AFTER_S <= int(silent_s) < AFTER_S + 10 * POLL_S


def test_a_node_with_a_step_stays_until_slurmctld_knows_its_end(cluster: RealSlurm) -> None:
    name = fresh_name()
    cluster.join(name)
    end = cluster.folder / f"end-{name}"
    wait = f"until [[ -e {end} ]]; do sleep 0.2; done"
    job_id = cluster.submit("--gres=gpu:t4:1", script=f"bash -c '{wait}'")
    cluster.port.poke([name])
    eventually("the job runs", lambda: cluster.state(job_id) == "RUNNING")
    watcher = Watcher(cluster, name)

    with watcher.running():
        stop(cluster)
        eventually("it is silent", lambda: watcher.silence_s() > AFTER_S + 5 * POLL_S)
        assert not watcher.is_off()
        end.touch()
        time.sleep(5 * POLL_S)  # its end is not told yet: the job would run again
        assert not watcher.is_off()
        start(cluster)
        eventually("no step is left", lambda: not has_steps(cluster))
        stop(cluster)
        eventually("it is off", watcher.is_off)

    start(cluster)
    cluster.clear()


def test_a_head_that_comes_back_in_time_begins_the_count_anew(cluster: RealSlurm) -> None:
    watcher = Watcher(cluster, fresh_name())

    with watcher.running(after_s=15):
        stop(cluster)
        eventually("it is silent", lambda: watcher.silence_s() > 3)
        start(cluster)
        eventually("it hears again", lambda: watcher.silence_s() == 0.0)

    assert not watcher.is_off()


def test_a_watcher_that_is_killed_goes_on_from_what_it_had_counted(cluster: RealSlurm) -> None:
    watcher = Watcher(cluster, fresh_name())
    watcher.says("scontrol", "exit 1")

    with watcher.running(after_s=600):
        eventually("it counts", lambda: watcher.silence_s() > 3)
    before_s = watcher.silence_s()
    with watcher.running(after_s=600):
        eventually("it counts on", lambda: watcher.silence_s() > before_s)

    assert watcher.silence_s() < before_s + 10


def test_a_machine_that_stood_still_has_not_waited(cluster: RealSlurm) -> None:
    watcher = Watcher(cluster, fresh_name())
    watcher.says("scontrol", "exit 1")
    script = watcher.run / "files" / "head-watch.sh"
    script.write_text(script.read_text().replace("/proc/uptime", f"{watcher.run}/uptime"))
    (watcher.run / "uptime").write_text("100.00 1.00\n")

    with watcher.running(after_s=600):
        eventually("it counts", (watcher.run / "silence").exists)
        (watcher.run / "uptime").write_text("90000.08 1.00\n")
        eventually("it goes on", lambda: watcher.silence_s() > 0)
        time.sleep(5 * POLL_S)

    assert watcher.silence_s() == POLL_S + 60
    assert not watcher.is_off()


def test_slurmctlds_own_messages_count_where_its_name_cannot_be_resolved(
    cluster: RealSlurm,
) -> None:
    watcher = Watcher(cluster, fresh_name())
    watcher.says(
        "scontrol",
        '[[ $1 == show ]] || exit 1; echo "Last slurmctld msg time = $(date +%s.%N)"',
    )

    with watcher.running():
        time.sleep(AFTER_S + 5 * POLL_S)
        assert not watcher.is_off()
        watcher.says("scontrol", '[[ $1 == show ]] && echo "Last slurmctld msg time = then"')
        eventually("it is off", watcher.is_off)


def test_slurms_place_holder_is_no_step(cluster: RealSlurm) -> None:
    watcher = Watcher(cluster, fresh_name())
    watcher.says("scontrol", "exit 1")
    holder = watcher.run / "bin" / "slurmstepd"
    shutil.copy("/bin/sleep", holder)
    argv = [*cluster.prefix, "bash", "-c", f"exec -a 'slurmstepd infinity' {holder} 60"]
    with subprocess.Popen(argv, start_new_session=True) as process:
        eventually("it is there", lambda: has_steps(cluster))
        try:
            with watcher.running():
                eventually("it is off", watcher.is_off)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            cluster.run("pkill", "-x", "slurmstepd")


def has_steps(slurm: RealSlurm) -> bool:
    argv = [*slurm.prefix, "pgrep", "-r", "R,S,D", "-x", "slurmstepd"]  # no zombies
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def stop(slurm: RealSlurm) -> None:
    slurm.run("bash", "-c", "kill $(cat /run/slurmctld.pid)")
    eventually("slurmctld has ended", lambda: "DOWN" in ping(slurm))


def start(slurm: RealSlurm) -> None:
    slurm.restart()
    eventually("slurmctld answers", lambda: "is UP" in ping(slurm))


def ping(slurm: RealSlurm) -> str:
    argv = [*slurm.prefix, "scontrol", "ping"]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout
