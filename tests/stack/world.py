"""The cluster of these tests, and its stack deployed in the local cloud."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import yaml

from local.cloud import LocalCloud
from local.deploy import deploy
from local.router.clock import VirtualClock
from local.router.router import Router
from local.stack_world import StackWorld
from tidegate.wire.config import load_cluster

CLUSTER_FILE = Path(__file__).with_name("cluster.yaml")
NAME = "stacked"
STACK = f"tidegate-{NAME}"

# What the file says for a cluster of a stricter account.
KEY = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-1111-2222-3333-444455556666"
PACKAGES, PACKAGES_KEY = "strict-packages", "keys/slurm.asc"
IN_S3 = {"url": f"s3://{PACKAGES}/slurm", "key": f"s3://{PACKAGES}/{PACKAGES_KEY}"}
STRICT = {
    "kms_key": KEY,
    "network": {"flow_logs": "rejected"},
    "logs": {"nodes": True},
    "slurm": {"version": "23.11", "accounting": True, "repositories": {"ubuntu24.04": IN_S3}},
}

# A Tuesday far enough in the future; the file's night is from 20:00 to 20:30 in Tokyo.
TOKYO = ZoneInfo("Asia/Tokyo")
MORNING = datetime(2035, 11, 27, 19, 50, tzinfo=TOKYO)
EVENING = datetime(2035, 11, 27, 20, 1, tzinfo=TOKYO)
# The week that was over then.
WEEK = "2035-W47"
NEXT_MORNING = datetime(2035, 11, 27, 20, 31, tzinfo=TOKYO)


def strict_file(folder: Path) -> Path:
    """The same cluster file with a key of its own, flow logs, logs of nodes, packages in S3."""
    described = yaml.load(CLUSTER_FILE.read_text(), Loader=yaml.BaseLoader)
    file = folder / "strict.yaml"
    file.write_text(yaml.safe_dump({**described, **STRICT}))
    return file


@contextmanager
def stacked(
    assembly: Path, file: Path = CLUSTER_FILE, *, starts: datetime | None = MORNING
) -> Iterator[StackWorld]:
    """The stack, freshly deployed. `starts` None: at this machine's own time."""
    with LocalCloud() as cloud:
        read = load_cluster(file)
        deployment = deploy(cloud, assembly, f"tidegate-{read.cluster.name}")
        # Before there is a router: it would fire everything that lies between.
        clock = VirtualClock()
        if starts:
            clock.jump_to(starts)
        with Router(cloud, clock=clock) as router:
            yield StackWorld(cloud, deployment, router, read)
