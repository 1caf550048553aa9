"""A head that gets its agent from an archive, then another one, then one that is not as told.

Until the second one it has Prometheus as well, where this machine has the package.

A program of its own, since pytest stays outside the namespaces: prints what happened as JSON.

    python -m tests.boot.agent_world ARCHIVE
"""

import json
import shutil
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cdk.agent_package import own_agent_package
from local import namespaces
from local.boot.agents_way import agent_started_s, make_agents_way
from local.boot.cloud import AWS_PORT, BUNDLES, Cloud, publish_agent, start_cloud
from local.boot.machines import LOCAL_SLURM, READY, data_of_head
from local.boot.values import HEAD
from local.machine import Machine, MachineSpec
from local.waiting import wait_for
from local.world import World, WorldSettings
from tests.e2e.restart_world import run
from userdata.monitoring import METRICS_DIR, REMOTE_WRITE_TOKEN, Monitoring, RemoteWrite
from userdata.render import BundleAt, HeadValues

ROOT = Path(__file__).parents[2]
PROMETHEUS = "http://127.0.0.1:9090/api/v1"
# Out of reach here: what came of the writes is tests/userdata/test_remote_write.py's to see.
WORKSPACE = RemoteWrite("http://127.0.0.1:9/workspaces/ws-1/api/v1/remote_write", "us-east-1")
HAS_PROMETHEUS = all(map(shutil.which, ("prometheus", "prometheus-node-exporter")))
HOME = "/opt/tidegate/agent"
RELAY_LOG = "/var/log/units/tidegate-remote-write.log"
# Of the running agent: its command line, and the compiled code that it loaded.
LOOK = """pid=$(pgrep -u slurm -f '{home}/[0-9a-f]*$') || exit 0
tr '\\0' ' ' </proc/$pid/cmdline; echo
grep -oE '/[^ ]*pydantic_core[^ ]*' /proc/$pid/maps | sort -u
"""


@dataclass
class Stage:
    head: Machine

    def asked(self, query: str) -> dict[str, float]:
        """What the head's Prometheus answers, by name, state, outcome and job of each series."""
        asked = ["curl", "-sG", f"{PROMETHEUS}/query", "--data-urlencode", f"query={query}"]
        said = self.head.run(asked).stdout
        found = json.loads(said)["data"]["result"] if said else []
        names = ("__name__", "state", "outcome", "job")
        keys = (" ".join(filter(None, map(each["metric"].get, names))) for each in found)
        return {key: float(each["value"][1]) for key, each in zip(keys, found, strict=True)}

    def scraped(self) -> dict[str, Any]:
        """What came of the agent's metrics, once they are there."""
        wait_for(lambda: self.asked("tidegate_agent_slurm_up == 1"))
        wait_for(lambda: "tried again" in self.head.run(["cat", RELAY_LOG]).stdout)
        rules = self.head.run(["curl", "-s", f"{PROMETHEUS}/rules"]).stdout
        return {
            "agent": self.asked('{__name__=~"tidegate_(agent|slurm).*",kind=""}'),
            "up": self.asked("up"),
            "disk": self.asked("node_filesystem_size_bytes"),
            "alerts": sum(each["type"] == "alerting" for each in all_rules(json.loads(rules))),
            "listens": run(self.head, "ss -Hltn | awk '{print $4}'").split(),
            "mode": run(self.head, "stat -c '%U %a' /run/tidegate/metrics/*"),
            "secret": run(self.head, f"stat -c '%U %G %a' {REMOTE_WRITE_TOKEN}"),
            "relay": run(self.head, "ps -o user= -p $(pgrep -f [r]emote-write)").split(),
            "relay_says": run(self.head, f"cat {RELAY_LOG}"),
            "log": run(self.head, "cat /var/log/units/prometheus*")[-2000:],
        }

    def look(self) -> dict[str, Any]:
        return {
            "agent": self.head.run(["bash", "-c", LOOK.format(home=HOME)]).stdout.splitlines(),
            "folders": run(self.head, f"ls {HOME}").split(),
        }


def all_rules(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [rule for group in answer["data"]["groups"] for rule in group["rules"]]


def boot(cloud: Cloud, world: World, values: HeadValues) -> Machine:
    data = data_of_head(cloud, values)
    return world.boot(MachineSpec("i-0123456789abcdef0", "m7i.large", data, is_head=True))


def daemons(head: Machine) -> list[str]:
    return head.run(["pgrep", "-l", "prometheus"]).stdout.split()


def tampered(cloud: Cloud, archive: Path) -> BundleAt:
    at = publish_agent(cloud, archive)
    key = "tampered.tgz"
    cloud.client("s3").put_object(Bucket=BUNDLES, Key=key, Body=archive.read_bytes() + b"x")
    return replace(at, key=key)


def scenario(whole: Path) -> dict[str, Any]:
    cloud = start_cloud()
    with World(WorldSettings(AWS_PORT)) as world:
        own = own_agent_package(ROOT)
        way = make_agents_way(cloud)
        values = replace(HEAD, slurm=LOCAL_SLURM, munge=cloud.munge, agent_env=way)
        values = replace(values, update_poll_s=1, agent=publish_agent(cloud, whole))
        plain = values
        if HAS_PROMETHEUS:
            told = (*way, ("TIDEGATE_METRICS_DIR", METRICS_DIR))
            monitoring = Monitoring("dev", interval_s=1, remote_write=WORKSPACE)
            values = replace(values, agent_env=told, monitoring=monitoring)
        stage = Stage(boot(cloud, world, values))
        head = stage.head
        assert wait_for(lambda: READY in head.console.read_text()), head.console.read_text()
        wait_for(lambda: agent_started_s(cloud))
        seen: dict[str, Any] = {"first": stage.look(), "first_s": agent_started_s(cloud)}
        seen["scraped"] = stage.scraped() if HAS_PROMETHEUS else None

        newer = replace(plain, agent=publish_agent(cloud, own))
        changed_s = time.time()
        data_of_head(cloud, newer)
        wait_for(lambda: agent_started_s(cloud) > changed_s)
        seen |= {"second": stage.look(), "second_s": agent_started_s(cloud) - changed_s}
        wait_for(lambda: not daemons(head))
        seen["daemons_after"] = daemons(head)
        wait_for(lambda: not run(head, "pgrep -f [r]emote-write || true").split())
        seen["secret_after"] = run(head, f"ls {REMOTE_WRITE_TOKEN} 2>/dev/null || true")

        data_of_head(cloud, replace(plain, agent=tampered(cloud, whole)))
        wait_for(lambda: "agent_code failed" in head.console.read_text())
        seen |= {"tampered": stage.look(), "console": head.console.read_text()}
    return seen


if __name__ == "__main__":
    namespaces.enter()
    print(json.dumps(scenario(Path(sys.argv[1]))))
