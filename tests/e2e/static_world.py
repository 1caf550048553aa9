"""Run by test_static_nodes.py: a node of the user's own beside bought ones, on real parts.

Prints one JSON object: what Slurm said of the user's node at each step, and of the others.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from local.demo.asks import SINGLES
from local.demo.cluster import CLUSTER_FILE
from local.demo.real_stage import RealStage
from local.namespaces import enter

PATIENCE_S = 90.0

# It has the type and the feature that the pool's nodes have, and idles for longer than theirs may.
STATIC = """\
  static:
    - NodeName=rack-1 NodeAddr=127.0.0.1 Port=6918 CPUs=2 RealMemory=2000 Feature=own State=UNKNOWN
    - PartitionName=rack Nodes=rack-1 MaxTime=INFINITE State=UP
"""
SBATCH = ("sbatch", "--parsable", "-p", "rack", "--mem=100", "-o/dev/null", "--wrap=sleep 2")

# On the head, under a host name of its own; with the two scripts that docs/deploying.md asks for.
START = """\
unshare --uts --mount bash -c '
    hostname rack-1
    for kind in prolog epilog; do
        mkdir -p /etc/tidegate/$kind.d
        printf "#!/bin/sh\\n" >/etc/tidegate/$kind.d/none.sh
        chmod 755 /etc/tidegate/$kind.d/none.sh
    done
    mkdir -p /var/spool/rack-1
    mount --bind /var/spool/rack-1 /var/spool/slurmd
    setsid slurmd --conf-server "$(hostname -I | cut -d" " -f1)":6817 </dev/null >/dev/null 2>&1'
"""


def cluster_file(folder: Path) -> Path:
    """The demo's cluster file with a node of the user's own."""
    copy = Path(shutil.copy(CLUSTER_FILE, folder))
    before, mark, after = copy.read_text().partition('  version: "22.05"\n')
    assert mark
    copy.write_text(before + mark + STATIC + after)
    return copy


def until(stage: RealStage, what: str, ask: Callable[[], bool]) -> None:
    until_s = time.time() + PATIENCE_S
    while not ask():
        if time.time() > until_s:
            seen = run(stage, "scontrol", "show", "job", "-o") + run(stage, "sinfo", "-N", "-l")
            sys.exit(f"not within {PATIENCE_S:.0f} s: {what}\n{seen}")
        stage.wait(0.2)


def run(stage: RealStage, *argv: str) -> str:
    done = stage.head.run(list(argv))
    return done.stdout + done.stderr


def state(stage: RealStage) -> str:
    return run(stage, "sinfo", "-h", "-n", "rack-1", "-p", "rack", "-o", "%T %E").strip()


def main() -> None:
    enter()
    with TemporaryDirectory() as folder, RealStage(cluster_file(Path(folder))) as stage:
        run(stage, "bash", "-c", START)
        until(stage, "rack-1 is idle", lambda: state(stage).startswith("idle"))
        own = run(stage, *SBATCH)
        job_id = stage.submit(SINGLES[0])
        until(stage, "both jobs ran", lambda: all(map(stage.completed, (own.strip(), job_id))))
        until(stage, "the bought node is gone", lambda: not stage.seen.instances)
        until(stage, "and out of Slurm", lambda: not stage.seen.reading.nodes)
        idle = state(stage)
        run(stage, "scontrol", "update", "NodeName=rack-1", "State=DRAIN", "Reason=new disk")
        second = stage.submit(SINGLES[0])
        until(stage, "a second job ran", lambda: bool(stage.completed(second)))
        until(stage, "its node is gone", lambda: not stage.seen.instances)
        told = {"bought": len(stage.chronicle.launched), "idle": idle, "drained": state(stage)}
        json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
