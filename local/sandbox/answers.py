"""What every sandbox answers: EC2 takes a node back, hours pass, a function is asked."""

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from local.cloud import LocalCloud
from local.router.router import Router
from local.sandbox.cluster import LATER_MAX_S
from tidegate.wire.config import ClusterFile

REPOSITORY = Path(__file__).parents[2]
# Beyond that the functions would take the head's last report for too old.
AT_ONCE_MAX_S = 600.0


class NotDone(Exception):
    """What was asked cannot be done, and why."""


class Played(Protocol):
    """A cluster that somebody plays with. `instances`: nodes, their offerings, EC2's states."""

    cluster_file: Path
    file: ClusterFile
    cloud: LocalCloud
    router: Router

    def instances(self) -> tuple[tuple[str, str, str], ...]: ...

    def notice(self, instance_id: str) -> None: ...

    def pass_scheduled(self, seconds: float) -> None: ...


def reclaim(stage: Played, name: str) -> str:
    """EC2 takes the node back. Errors: NotDone."""
    there = stage.instances()
    offering = next((offering for one, offering, _ in there if one == name), None)
    if offering is None:
        known = ", ".join(one for one, _, _ in there) or "none"
        raise NotDone(f"There is no node {name}. There are: {known}")
    if not offering.endswith("/spot"):
        raise NotDone(f"{name} is {offering}: EC2 takes back spot nodes only.")
    stage.notice(name)
    seconds = stage.file.cluster.timings.spot_notice_s
    return f"EC2 has told that it takes {name} back in {seconds:g} s."


def later(stage: Played, minutes: str) -> str:
    """AWS's clock alone goes on: schedules fire, Slurm's jobs run as before. Errors: NotDone."""
    seconds = 60.0 * int(minutes) if minutes.isdecimal() else 0.0
    if not 0.0 < seconds <= AT_ONCE_MAX_S:
        raise NotDone(f"usage: later MINUTES, from 1 to {AT_ONCE_MAX_S / 60:g}")
    if stage.router.clock.offset_s + seconds > LATER_MAX_S:
        ahead_min = stage.router.clock.offset_s / 60
        raise NotDone(f"AWS is {ahead_min:.0f} min ahead: that is the most")
    stage.pass_scheduled(seconds)
    return f"For AWS {minutes} min are over: what its schedules do by then is done."


def invoking(stage: Played) -> Callable[[str, bytes, bool], bytes]:
    """What runs a function that somebody asks for by its name."""

    def invoke(function: str, payload: bytes, is_waited_for: bool) -> bytes:
        run, event = stage.router.functions.invoke, json.loads(payload)
        if is_waited_for:
            return json.dumps(run(function, event).answer).encode()
        threading.Thread(target=run, args=(function, event), daemon=True).start()
        return b""

    return invoke


def environment(
    stage: Played, folder: Path, home: str, outside: Mapping[str, str]
) -> dict[str, str]:
    """Of the shell: the commands, the local cloud, and nobody's own keys."""
    kept = {k: v for k, v in outside.items() if not k.startswith(("AWS_", "TIDEGATE_"))}
    return {
        **kept,
        "PATH": f"{folder / 'bin'}:{outside.get('PATH', '')}",
        "SANDBOX": str(folder),
        "SANDBOX_USER": "ada",
        "TIDEGATE_CLUSTER": str(stage.cluster_file),
        "AWS_ENDPOINT_URL": stage.cloud.endpoint_url,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": stage.file.region,
        "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": home,
        "PYTHONPATH": str(REPOSITORY),
    }
