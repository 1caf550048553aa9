"""The sandbox, as somebody uses it who wants to see a cluster before there is one."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from local.namespaces import can_enter
from local.sandbox.cluster import write_sandbox_file
from tidegate.core.model.errors import BadConfig
from tidegate.core.model.frozen import frozen
from tidegate.wire.config import load_cluster

REPOSITORY = Path(__file__).parents[2]
DEV = REPOSITORY / "clusters" / "dev.yaml"
BOUND_S = 240.0
MARK = "TIDEGATE_TEST_MARK"

NEEDS_ROOT = pytest.mark.skipif(
    can_enter() is not None, reason="the sandbox's machines are namespaces, which need root"
)

UNTIL_SAYS = r"""
set -e
until_says() {
    for _ in $(seq 300); do
        if $1 2>&1 | grep -q "$2"; then return; fi
        sleep 0.2
    done
    $1
    exit 1
}
"""
# What a newcomer types, with waits that end as soon as they may.
DAY = (
    UNTIL_SAYS
    + r"""
sbatch --gres=gpu:t4:1 -o first.out --wrap 'hostname; nvidia-smi -L; sleep 60'
as grace sbatch --gres=gpu:t4:99 --wrap true || echo "grace is refused"
until_says "squeue -h -t R" " 1 "
tidegate why 1
tidegate user add linus --group vision
tidegate user list
as linus id -nG
node=$(squeue -h -j 1 -o %N)
console $node | tail -1
reclaim $node
reclaim i-0123 || echo "which is exit code $?"
until_says "tidegate events" "EC2 reclaims its node"
scancel 1
tidegate stop now --until 1h
until_says "tidegate nodes" "no node"
later 11 || echo "it is $? again"
# While it stops squeue fails in other words.
for _ in $(seq 8); do
    later 5
    sleep 3
    told=$(squeue 2>&1 || true)
    [[ $told != *"is stopped"* ]] || break
done
echo "$told"
tidegate keep-up --until 1h
until_says "sinfo" "gpu"
cat first.out
stat -c 'its mode is %a' first.out
echo "the day is over"
exit 5
"""
)


@frozen
class Traces:
    """What a sandbox could leave on this computer, which others use as well."""

    folder: Path
    people: tuple[str, ...]
    mounts: frozenset[str]

    @property
    def environment(self) -> dict[str, str]:
        """Of the sandbox: all that it starts bears the folder's name and has its files there."""
        return {**os.environ, "TMPDIR": str(self.folder), MARK: self.folder.name}

    def left(self) -> dict[str, list[str]]:
        """Files, processes (with their sockets), mounts and users that were not there before."""
        files = [str(each) for each in self.folder.rglob("*")]
        mounts = [each for each in _mounts() - self.mounts if str(self.folder) in each]
        people = sorted(set(_people()) - set(self.people))
        running = [str(each) for each in Path("/proc").glob("[0-9]*") if self._started(each)]
        return {"files": files, "processes": running, "mounts": mounts, "people": people}

    def _started(self, process: Path) -> bool:
        try:
            return f"{MARK}={self.folder.name}".encode() in (process / "environ").read_bytes()
        except OSError:  # it has just ended, or is somebody else's
            return False


def _mounts() -> frozenset[str]:
    return frozenset(Path("/proc/self/mounts").read_text().splitlines())


def _people() -> tuple[str, ...]:
    return tuple(Path("/etc/passwd").read_text().splitlines())


@pytest.fixture
def traces() -> Iterator[Traces]:
    """Its folder has a short name: sockets are in it, whose paths have 107 letters at most."""
    with TemporaryDirectory(prefix="tg-") as folder:
        yield Traces(Path(folder), _people(), _mounts())


NOTHING: dict[str, list[str]] = {"files": [], "processes": [], "mounts": [], "people": []}


@NEEDS_ROOT
def test_a_newcomers_day_on_a_terminal(tmp_path: Path, traces: Traces) -> None:
    """A shell of its own with job control, the exit code of its last word, and no trace of it."""
    day = tmp_path / "day.sh"
    day.write_text(DAY)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tidegate.cli.main", "sandbox", "--cluster", str(DEV)]
    shell = subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env=traces.environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    said = _read_until(ours, "sandbox:")
    assert traces.left()["processes"], "they are seen while it runs"
    os.write(ours, f"sleep 9 & jobs; tidegate status | head -1; exec bash {day}\n".encode())
    said += _read_until(ours, "")

    assert shell.wait(BOUND_S) == 5, said
    assert traces.left() == NOTHING
    assert "Not here, as on AWS alone: schedules" in said
    assert re.search(r"\[1\]\+ +Running", said)
    assert "dev: up" in said
    assert "grace is refused" in said
    assert "linus: number" in said
    assert re.search(r"^linus +\d+ +linus, vision +/shared/home/linus +0 +0", said, re.MULTILINE)
    assert "\r\nlinus vision\r\n" in said
    assert re.search(r"ready after [\d.]+ s", said)
    assert "EC2 has told that it takes i-" in said
    assert "There is no node i-0123. There are: i-" in said
    assert "which is exit code 1" in said
    assert "usage: later MINUTES, from 1 to 10" in said
    assert "it is 1 again" in said
    assert "its mode is 644" in said, "nobody else writes what a job says"
    assert "The head is stopped." in said
    assert re.search(r"^i-\w+\r\nGPU 0: local", said, re.MULTILINE), "its node and its GPU"


# What the engineers of tests/e2e/pcluster.yaml look at before they decide.
MIGRATION = (
    UNTIL_SAYS
    + r"""
as root install -d -m 1777 /scratch2/ada
cat >train.sh <<'END'
#!/bin/bash
env | grep ^FI_PROVIDER
fi_info -p efa | grep -c domain
cat /etc/from-hook
hostname | tee /scratch2/ada/ran
END
login sbatch -p train --gres=gpu:h100:8 -o train.out train.sh
sbatch -p licensed --gres=gpu:t4:1 --wrap true
until_says "squeue -h -t all -j 1 -o %T" COMPLETED
cat train.out
login 1 cat /etc/from-hook /scratch2/ada/ran
login findmnt -no TARGET /old-home
as grace login id -un
login 2 true || echo "which is exit code $?"
as root cat /etc/from-hook
until_s=$((SECONDS + 60))
until told=$(tidegate why 2 || true); [[ $told == *"no licence server"* ]]; do
    ((SECONDS < until_s)) || break
    sleep 1
done
echo "$told"
tidegate nodes
"""
)
SCRIPT = '#!/bin/bash\n. /etc/parallelcluster/cfnconfig\necho "$cfn_node_type $*" >/etc/from-hook\n'
FAILS = "#!/bin/bash\necho no licence server\nexit 3\n"


@NEEDS_ROOT
def test_a_parallelcluster_is_played_up_to_a_job(tmp_path: Path, traces: Traces) -> None:
    """With EFA in its block, its login node, its scripts, of which one fails, and its storage."""
    tools = tmp_path / "our-tools"
    tools.mkdir()
    for name in ("head", "login", "node"):
        (tools / f"{name}.sh").write_text(SCRIPT)
    (tools / "licences.sh").write_text(FAILS)
    source = Path(__file__).parent / "pcluster.yaml"
    played = subprocess.run(
        [
            *(sys.executable, "-m", "tidegate.cli.main", "sandbox", "--cluster", str(source)),
            *("--hooks", str(tmp_path), "--command", MIGRATION),
        ],
        cwd=REPOSITORY,
        env=traces.environment,
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )

    said = played.stdout + played.stderr
    assert played.returncode == 0, said
    assert traces.left() == NOTHING
    assert "Not here, as on AWS alone: head, logs, images, pools.train-h100.placement_group" in said
    assert "Hooks that run a stand-in: https://example.com/tools/start.sh. To run yours" in said
    job = r"^FI_PROVIDER=efa\n32\nComputeFleet imagenet\n(i-\w+)\nLoginNode \n(i-\w+)\n/old-home\n"
    found = re.search(rf"{job}grace\n", said, re.MULTILINE)
    assert found, said
    assert found[1] == found[2]
    assert "There is no login node 2" in said
    assert "which is exit code 1" in said
    assert "\nHeadNode --quota home\n" in said
    node = rf"^{found[1]} +train-h100, p5.48xlarge/us-east-1b/capacity-block "
    assert re.search(node, said, re.MULTILINE), said
    told = "hook 1 (s3://our-tools/licences.sh) exited with 3: no licence server"
    waits = "job 2 waits: g4dn.xlarge/us-east-1b/reserved rests after a node of it failed"
    assert waits in said, said
    assert told in said, said


SIMULATED = r"""
set -e
sbatch --gres=gpu:t4:1 --wrap 'sleep 60'
as grace sbatch --gres=gpu:t4:99 --wrap true || echo "grace is refused"
for _ in $(seq 300); do squeue -h -t R | grep -q i- && break; sleep 0.2; done
# What the head told last may be older than squeue, by seconds where the machine is slow.
for _ in $(seq 20); do
    told=$(tidegate why 1 || true)
    [[ $told == *"runs on"* ]] && break
    sleep 0.5
done
echo "$told"
tidegate nodes
reclaim i-0123 || echo "which is exit code $?"
reclaim || echo "and this is $?"
printf '#!/bin/sh\n#SBATCH --parsable\nsleep 1\n' | sbatch
scancel 1
exit 5
"""


def test_without_root_slurm_and_machines_are_simulated(traces: Traces) -> None:
    """Whatever runs on AWS is the product's, deployed, and so are the commands that ask it."""
    played = subprocess.run(
        [sys.executable, "-m", "tidegate.cli.main", "sandbox", "--command", SIMULATED],
        cwd=REPOSITORY,
        env={**traces.environment, "SLURM": "sim"},
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )

    said = played.stdout + played.stderr
    assert played.returncode == 5, said
    assert traces.left() == NOTHING
    assert "Slurm and machines are simulated, because SLURM=sim asks for it." in said
    assert "grace is refused" in said
    assert re.search(r"^job 1 runs on i-\w+", said, re.MULTILINE), said
    assert re.search(r"^i-\w+ +t4, g4dn.xlarge/us-east-1a/spot", said, re.MULTILINE)
    assert "There is no node i-0123. There are: i-" in said
    assert "which is exit code 1" in said
    assert "and this is 2" in said
    assert re.search(r"^2$", said, re.MULTILINE)


def _read_until(file: int, word: str) -> str:
    """What is said up to the word, or with "" to the end."""
    said, until_s = "", time.monotonic() + BOUND_S
    while (not word or word not in said) and time.monotonic() < until_s:
        if not select.select([file], [], [], 1.0)[0]:
            continue
        try:
            said += os.read(file, 65536).decode(errors="replace")
        except OSError:  # the other end is closed
            break
    return said


@pytest.mark.parametrize("name", ["dev", "research"])
def test_what_is_bought_is_as_in_the_file(tmp_path: Path, name: str) -> None:
    theirs = load_cluster(REPOSITORY / "clusters" / f"{name}.yaml").cluster
    written = write_sandbox_file(tmp_path, REPOSITORY / "clusters" / f"{name}.yaml")

    ours = load_cluster(written.path).cluster

    assert [(p.name, p.instance_types, p.limits) for p in ours.pools] == [
        (p.name, p.instance_types, p.limits) for p in theirs.pools
    ]
    assert (ours.name, ours.limits, ours.partitions) == (
        theirs.name,
        theirs.limits,
        theirs.partitions,
    )


def test_a_file_that_is_wrong_is_refused_with_its_problems(tmp_path: Path) -> None:
    source = tmp_path / "wrong.yaml"
    source.write_text(DEV.read_text().replace("g5.xlarge", "g5.xlrge"))

    with pytest.raises(BadConfig, match=r"g5\.xlrge"):
        write_sandbox_file(tmp_path, source)
