"""Heads and nodes really boot: rendered user data, real munge, slurmctld, slurmd and nftables.

boot_world.py runs in namespaces and says what happened; the tests look at that.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local.namespaces import WORLD_DIR, can_enter
from tests.e2e.secrecy import BETWEEN

ROOT = Path(__file__).parent.parent.parent
WHY_NOT = can_enter()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"real path: {WHY_NOT}")

type Seen = dict[str, Any]


def world(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.boot_world", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def seen() -> Seen:
    process = world("scenario")
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err[-3000:]
    found: Seen = json.loads(out)
    return found


def node(seen: Seen, key: str) -> dict[str, str]:
    row: dict[str, str] = seen["nodes"][seen["ids"][key]]
    return row


@pytest.mark.parametrize(
    ("key", "gres", "features", "memory"),
    [
        ("t4x1", "gpu:t4:1", "cheap,g4dn.xlarge,g4dn,spot", "15564"),
        ("t4x4", "gpu:t4:4", "gpu,g4dn.12xlarge,g4dn,on-demand,team-ml,fast", "186777"),
        ("a10gx4", "gpu:a10g:4", "gpu,g5.12xlarge,g5,spot,team-ml,fast", "186777"),
    ],
)
def test_a_node_joins_idle_under_its_instance_id(seen, key, gres, features, memory):
    found = node(seen, key)

    assert found["State"] == "IDLE+DYNAMIC_NORM"
    assert found["Gres"] == gres
    assert found["ActiveFeatures"] == features
    assert found["RealMemory"] == memory
    assert found["NodeHostName"] == seen["ids"][key]


def test_a_member_of_a_gang_joins_drained(seen):
    assert node(seen, "gated")["State"] == "IDLE+DRAIN+DYNAMIC_NORM"


@pytest.mark.parametrize("step", ["batch", "step"])
def test_a_user_of_the_head_finds_herself_at_home_in_a_job(seen, step):
    user, uid, home, *_ = seen["job"][step]

    assert (user, uid, home) == ("alice", "2001", "/shared/home/alice")
    assert seen["job"]["owner"] == ["2001"]


def test_the_first_job_of_a_new_user_leaves_its_output_in_her_home(seen):
    assert seen["job"]["out"] == ["slurm-1.out"], seen["job"]["sbatch"]


def test_who_has_no_home_gets_one_at_a_login(seen):
    assert seen["home_at_login"] == "/shared/home/bob bob"


@pytest.mark.parametrize("step", ["batch", "step"])
def test_a_job_sees_the_gpus_it_asked_for(seen, step):
    assert seen["job"][step][3] == "0,1"


def test_a_job_that_names_no_memory_leaves_room_for_others(seen):
    assert seen["job"]["tres"] == ["TRES=cpu=1,mem=3891M,node=1,billing=1"]


def test_node_names_resolve_on_the_head(seen):
    assert seen["names_on_head"] == [0, 0, 0, 0]


@pytest.mark.parametrize("step", ["batch", "step"])
def test_node_names_resolve_in_a_job(seen, step):
    assert seen["job"][step][4] == "5"  # four nodes and the head


@pytest.mark.parametrize("step", ["batch", "step"])
def test_a_job_cannot_reach_the_metadata_service(seen, step):
    assert seen["job"][step][5] == "closed"


def test_on_the_head_only_root_and_the_agent_reach_the_metadata_service(seen):
    assert seen["imds"] == {"root": True, "slurm": True, "alice": False}


@pytest.mark.parametrize("step", ["batch", "step"])
def test_a_job_has_the_node_s_limits_and_not_those_of_the_shell_that_sent_it(seen, step):
    assert seen["job"][step][7:] == seen["job"]["limits"]
    assert "65536" not in seen["job"]["limits"]  # what `ulimit -l 64` says


@pytest.mark.parametrize("step", ["batch", "step"])
def test_a_job_cannot_reach_the_shared_files_past_the_mount(seen, step):
    """Their proxy asks nobody: who opens a connection is whoever they say, on the file system."""
    assert seen["job"][step][6] == "closed"


def test_on_the_head_only_root_reaches_the_shared_files_past_the_mount(seen):
    assert seen["files"] == {"root": True, "slurm": False, "alice": False}


@pytest.mark.parametrize("machine", ["head", "node"])
def test_the_shared_files_stay_closed_when_the_firewall_was_restarted(seen, machine):
    assert seen["firewall"][machine]["files"] == ["root"]


def test_nobody_becomes_root_by_a_shared_file(seen):
    assert {"nosuid", "nodev"} <= set(seen["shared"].split(","))


@pytest.mark.parametrize("machine", ["head", "node"])
@pytest.mark.parametrize("moment", BETWEEN)
def test_the_metadata_service_stays_closed_when_the_firewall_is_restarted(seen, machine, moment):
    assert seen["firewall"][machine][moment] == ["root"]


def test_the_munge_key_is_in_no_file_but_its_own(seen):
    assert seen["key_in"] == []


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("wrong_key", "stage munge failed (exit 78): this is the Munge key"),
        ("throttled_secret", "stage munge failed"),
        (
            "gpu_missing",
            "stage health failed (exit 78): g5.12xlarge has 4 GPUs; 3 are on the PCI bus",
        ),
        ("no_shared_folder", "stage shared failed (exit 1): no file system: nothing:/"),
    ],
)
def test_a_node_that_cannot_become_ready_says_why_and_powers_off(seen, fault, words):
    assert seen["broken"][fault]["ended"]
    assert words in seen["broken"][fault]["console"]


def test_a_node_that_hangs_is_powered_off_by_its_dead_man(seen):
    assert seen["broken"]["hanging"]["ended"]
    assert "not ready after 2 s" in seen["broken"]["hanging"]["console"]


def test_an_instance_whose_machine_powered_off_is_terminated(seen):
    assert seen["refused"] == "terminated"


def test_no_broken_node_was_ever_in_slurm(seen):
    assert set(seen["names_at_end"]) == set(seen["ids"].values())


def test_a_spot_node_drains_itself_on_the_notice_and_then_goes(seen):
    assert seen["spot"]["drained"]
    said = "tidegate: EC2 says that it reclaims this spot instance (noticed until 20"
    assert seen["spot"]["reason"].startswith(said)
    assert seen["spot"]["gone"]
    assert seen["spot"]["terminated"]


def test_nothing_of_this_computers_own_slurm_is_in_a_machine(seen):
    assert seen["leaked"] == []


@pytest.fixture
def held() -> Iterator[subprocess.Popen[str]]:
    """A world with a machine that is up."""
    # Not to the end of its output, which whoever outlives the world would keep open.
    with world("hold") as process:
        yield process
        process.kill()


def descendants(pid: int) -> list[int]:
    """`pid` and all below it, parents first."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        listed = [int(child) for t in tasks for child in (t / "children").read_text().split()]
    except OSError:
        return []  # it ended meanwhile
    return [pid, *(found for child in listed for found in descendants(child))]


def namespaces(pids: Iterable[int | str]) -> set[Path]:
    """Links to the namespaces of these processes."""
    return {link for pid in pids for link in Path(f"/proc/{pid}/ns").glob("*")}


def numbers(links: Iterable[Path]) -> set[int]:
    found: set[int] = set()
    for link in links:
        with contextlib.suppress(OSError):  # it ended meanwhile, or is not for us to look at
            found.add(link.stat().st_ino)
    return found


def hold_open(links: Iterable[Path], stack: contextlib.ExitStack) -> set[int]:
    """The numbers of these namespaces, which the kernel gives to no other one meanwhile."""
    held: set[int] = set()
    for link in links:
        with contextlib.suppress(OSError):
            file = stack.enter_context(link.open())
            held.add(os.fstat(file.fileno()).st_ino)
    return held


def processes_in(namespaces_held: set[int]) -> list[str]:
    """Processes in any of these namespaces; the dead that wait for their parent do not count."""
    everyone = [path.name for path in Path("/proc").glob("[0-9]*")]
    return [pid for pid in everyone if numbers(namespaces([pid])) & namespaces_held]


@pytest.mark.parametrize(
    ("which", "number"),
    [
        (0, signal.SIGKILL),  # the process the user started
        (1, signal.SIGKILL),  # process 1 of the namespaces
        (2, signal.SIGKILL),  # the program itself
        (0, signal.SIGTERM),
        (0, signal.SIGINT),
    ],
)
def test_nothing_is_left_when_a_world_is_killed(held, which, number):
    process = held
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    with contextlib.ExitStack() as stack:
        pids = descendants(process.pid)
        theirs = hold_open(namespaces(pids), stack) - numbers(namespaces([os.getpid()]))

        os.kill(pids[which], number)
        process.wait(timeout=60)
        until_s = time.monotonic() + 30
        while processes_in(theirs) and time.monotonic() < until_s:
            time.sleep(0.05)

        assert len(theirs) > 5
        assert not processes_in(theirs)
    assert str(WORLD_DIR) not in Path("/proc/mounts").read_text()


def test_a_machine_ends_whose_unshare_had_not_tied_it_to_itself_yet(tmp_path):
    """unshare asks the kernel for it after its fork, which on a busy computer may be late."""
    shim = tmp_path / "unshare"
    program = shutil.which("unshare")
    shim.write_text(
        f"""#!/bin/bash
words=()
for word; do [[ $word == --kill-child=* ]] || words+=("$word"); done
exec {program} "${{words[@]}}"
"""
    )
    shim.chmod(0o755)

    with world("hold", f"{tmp_path}:{os.environ['PATH']}") as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        process.terminate()

        assert process.wait(timeout=60) == 128 + signal.SIGINT, "by KeyboardInterrupt"
