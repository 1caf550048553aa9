"""Which of a node's logs CloudWatch's agent ships, by the configuration that the stage writes."""

import json
import subprocess
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

STAGE = Path(__file__).parents[2] / "userdata" / "node" / "cloudwatch.sh"


def collected() -> list[Mapping[str, Any]]:
    done = subprocess.run(
        ["bash", "-c", f"LOG_GROUP=/tidegate/dev/nodes; source {STAGE}; config"],
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[Mapping[str, Any]] = json.loads(done.stdout)["logs"]["logs_collected"]["files"][
        "collect_list"
    ]
    return found


def shipped(modified_s: Mapping[str, float]) -> dict[str, str]:
    """The agent's choice of files, and the stream of each.

    Source: amazon-cloudwatch-agent, plugins/inputs/logfile/logfile.go, getTargetFiles and
    generateLogStreamName: of the files that fit a path the one that was written last, unless
    publish_multi_logs is set; then all of them, each in a stream that has the file's name too.
    """
    found = {}
    for entry in collected():
        fitting = [each for each in modified_s if fnmatch(each, entry["file_path"])]
        if not entry.get("publish_multi_logs"):
            fitting = sorted(fitting, key=lambda each: modified_s[each])[-1:]
        for name in fitting:
            more = f"_{name.replace('/', '_')}" if entry.get("publish_multi_logs") else ""
            found[name] = entry["log_stream_name"] + more
    return found


def test_the_log_of_every_stage_is_shipped_and_not_that_of_the_last_alone() -> None:
    logs = {
        "/var/log/tidegate/packages.log": 1.0,
        "/var/log/tidegate/on_node_start.1.log": 2.0,
        "/var/log/tidegate/stages.jsonl": 3.0,
        "/var/log/slurm/slurmd.log": 4.0,
    }

    found = shipped(logs)

    assert set(found) == set(logs)
    assert len(set(found.values())) == len(logs)
    assert found["/var/log/slurm/slurmd.log"] == "{instance_id}/slurmd"
