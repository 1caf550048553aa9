"""The spot watcher of a node on a real slurmctld: alone, beside the service, without a head."""

import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.e2e.test_agent_real import Running, cluster, fresh_name, running
from tests.make import SAVING
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.orders import OrderKind

__all__ = ["cluster", "running"]

# Longer than our patience: what the watcher does at the end of a notice comes too late.
RECLAIM = str(DrainReason(DrainCode.RECLAIM, "EC2 reclaims this spot instance"))
NOTICE_S = 120
WATCHER = Path("userdata/node/spot-watch.sh")
# A job that tells when its trap is set, notes each signal, and lives on.
NOTES = (
    "trap 'echo got >> {file}' USR1; touch {file}.ready; for i in $(seq 3000); do sleep 0.1; done"
)


@contextmanager
def watching(slurm: RealSlurm, name: str, *, notice_s: float) -> Iterator["subprocess.Popen[str]"]:
    """The watcher of node `name`, which finds a notice of so many seconds at once."""
    ends_at = datetime.fromtimestamp(time.time() + notice_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    curl = slurm.folder / "bin" / "curl"
    curl.parent.mkdir(exist_ok=True)
    curl.write_text(
        "#!/bin/bash\nwhile [[ $1 != -o ]]; do shift; done\n"
        f'echo \'{{"action": "terminate", "time": "{ends_at}"}}\' >"$2"\nprintf 200\n'
    )
    curl.chmod(curl.stat().st_mode | stat.S_IXUSR)
    script = shutil.copy(WATCHER, slurm.folder / WATCHER.name)
    slurm.run("mkdir", "-p", "/run/tidegate")
    path = f"PATH={curl.parent}:/usr/sbin:/usr/bin:/sbin:/bin"
    argv = [*slurm.prefix, "env", path, "bash", str(script), name, "0.2"]
    process = subprocess.Popen(
        argv,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # nsenter forks, and does not pass on what ends it
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def refusing(slurm: RealSlurm, **calls: set[int]) -> Iterator[None]:
    """The watcher's commands of Slurm fail at these of their calls, as without a head."""
    folder = slurm.folder / "bin"
    folder.mkdir(exist_ok=True)
    for command, numbers in calls.items():
        count = folder / f"{command}.calls"
        shim = folder / command
        shim.write_text(
            f"#!/bin/bash\necho >> {count}\n"
            f"[[ ' {' '.join(map(str, numbers))} ' != *\" $(wc -l <{count}) \"* ]] || exit 1\n"
            f'PATH=/usr/sbin:/usr/bin:/sbin:/bin exec {command} "$@"\n'
        )
        shim.chmod(0o755)
    try:
        yield
    finally:
        for command in calls:
            (folder / command).unlink()
            (folder / f"{command}.calls").unlink(missing_ok=True)


def job_on(slurm: RealSlurm, name: str, *options: str, notes: Path | None = None) -> str:
    script = NOTES.format(file=notes) if notes else "sleep 300"
    job_id = slurm.submit("--gres=gpu:t4:1", *options, script=script)
    slurm.port.poke([name])
    eventually("the job runs", lambda: slurm.state(job_id) == "RUNNING")
    if notes:
        eventually("its trap is set", Path(f"{notes}.ready").exists)
    return job_id


def jobs_on(slurm: RealSlurm, name: str) -> set[str]:
    """What is on this node; a job that was requeued may already run on another."""
    return {one.job_id for one in slurm.port.read().jobs if name in one.node_names}


def without(job_id: str, job_ids: set[str]) -> set[str]:
    """Empty as long as the job is among them."""
    return set() if job_id in job_ids else job_ids


def runs_on(slurm: RealSlurm, job_id: str, name: str) -> bool:
    return job_id in jobs_on(slurm, name)


def reason(slurm: RealSlurm, name: str) -> str:
    return next(node.reason for node in slurm.port.read().nodes if node.name == name)


def test_a_silent_service_leaves_the_jobs_to_the_node(cluster: RealSlurm) -> None:
    name, other = fresh_name(), fresh_name()
    cluster.join(name)
    notes = cluster.folder / "notes"
    asked = job_on(cluster, name, "--comment=tidegate:ckpt=B:SIGUSR1@4", notes=notes)
    by_option = cluster.folder / "by-option"
    signal = f"#SBATCH --signal=B:USR1@4\n{NOTES.format(file=by_option)}"
    job_on_script = cluster.submit("--gres=gpu:t4:1", script=signal)
    cluster.port.poke([name])
    eventually("it runs", lambda: cluster.state(job_on_script) == "RUNNING")
    plain = job_on(cluster, name)
    stays = job_on(cluster, name, "--no-requeue")
    cluster.join(other)
    began_s = time.monotonic()

    with watching(cluster, name, notice_s=40):
        eventually("signalled", notes.exists)
        print(f"notice to signal, service silent: {time.monotonic() - began_s:.2f} s")
        assert reason(cluster, name) == SAVING
        eventually("signalled as its script asks", by_option.exists)
        here = eventually("requeued", lambda: without(asked, jobs_on(cluster, name)))
        assert plain in here
        eventually("the other too", lambda: not runs_on(cluster, plain, name))
        took_s = time.monotonic() - began_s

    assert (notes.read_text(), by_option.read_text()) == ("got\n", "got\n")
    moved = next(each for each in cluster.port.read().jobs if each.job_id == job_on_script)
    assert moved.node_names != (name,)
    assert took_s < 40 - 15
    assert cluster.state(stays) == "RUNNING"
    cluster.clear()


def test_both_ways_at_once_signal_and_requeue_a_job_once(running: Running) -> None:
    slurm, name = running.slurm, fresh_name()
    slurm.join(name)
    notes = slurm.folder / "both"
    job_id = job_on(slurm, name, "--comment=tidegate:ckpt=USR1@8", notes=notes)

    with watching(slurm, name, notice_s=NOTICE_S) as watcher:
        running.order(OrderKind.DRAIN, name, text=RECLAIM)
        for _ in range(2):  # as every look asks again
            running.order(OrderKind.SIGNAL, job_id, text="USR1", on_nodes=(name,))
        eventually("signalled", notes.exists)
        assert watcher.wait(60) == 0, "the watcher leaves the rest to the service"
        running.order(OrderKind.REQUEUE, job_id, only_if=("RUNNING",), on_nodes=(name,))
        eventually("requeued", lambda: not runs_on(slurm, job_id, name))

    assert notes.read_text() == "got\n"
    assert reason(slurm, name) == RECLAIM


def test_a_service_that_comes_late_does_not_signal_again(running: Running) -> None:
    slurm, name = running.slurm, fresh_name()
    slurm.join(name)
    notes = slurm.folder / "late"
    job_id = job_on(slurm, name, "--comment=tidegate:ckpt=USR1@30", notes=notes)

    with watching(slurm, name, notice_s=90):
        eventually("signalled", notes.exists)
        running.order(OrderKind.DRAIN, name, text=RECLAIM)
        late = running.order(OrderKind.SIGNAL, job_id, text="USR1", on_nodes=(name,))
        running.results(late)

    assert notes.read_text() == "got\n"
    assert reason(slurm, name) == SAVING


def test_a_head_that_comes_back_in_time_still_hears_of_the_notice(cluster: RealSlurm) -> None:
    name = fresh_name()
    cluster.join(name)
    cluster.run("scontrol", "shutdown", "slurmctld")

    with watching(cluster, name, notice_s=NOTICE_S):
        time.sleep(3)
        cluster.start_slurmctld()
        eventually("drained", lambda: "DRAIN" in cluster.node_words(name))

    cluster.clear()


def test_what_slurm_does_not_answer_is_asked_again(cluster: RealSlurm) -> None:
    name = fresh_name()
    cluster.join(name)
    notes = cluster.folder / "asked-again"
    job_id = job_on(cluster, name, "--comment=tidegate:ckpt=B:USR1@4", notes=notes)

    # The first drain with both its questions; what the job asks for; its signal.
    with (
        refusing(cluster, scontrol={1, 2, 3, 4}, squeue={2}, scancel={1}),
        watching(cluster, name, notice_s=NOTICE_S),
    ):
        eventually("signalled", notes.exists)
        eventually("requeued", lambda: not runs_on(cluster, job_id, name))

    assert notes.read_text() == "got\n"
    assert reason(cluster, name) == SAVING
    cluster.clear()


def test_a_gang_that_loses_two_nodes_is_signalled_by_the_first_of_them(
    cluster: RealSlurm,
) -> None:
    later, sooner = sorted(fresh_name() for _ in range(2))
    cluster.join(later, sooner)
    notes = cluster.folder / "gang"
    asked = ("-N2", "--comment=tidegate:ckpt=B:USR1@4")
    job_id = job_on(cluster, later, *asked, notes=notes)

    with watching(cluster, sooner, notice_s=NOTICE_S):
        time.sleep(1.5)
        with watching(cluster, later, notice_s=NOTICE_S):
            eventually("signalled", notes.exists)
            eventually("requeued", lambda: not runs_on(cluster, job_id, later))

    assert notes.read_text() == "got\n"
    assert {reason(cluster, name) for name in (later, sooner)} == {SAVING}
    cluster.clear()
