"""What a node tells of itself: its exporters to the head's Prometheus, and CloudWatch's agent."""

import json
from pathlib import Path
from typing import Any

from local.machine import Machine
from local.waiting import wait_for
from tests.userdata.neuron import program, report

# Says how it was called, and stays.
DCGM = {"/usr/bin/dcgm-exporter": "#!/bin/sh\necho $* >/etc/local-dcgm\nexec sleep 1000\n"}
# CloudWatch's: its control program reads the configuration as JSON and starts the agent.
AGENT = {
    "/opt/aws/amazon-cloudwatch-agent/bin/amazon-cloudwatch-agent-ctl": "#!/bin/sh\n"
    'python3 -m json.tool "${7#file:}" >/etc/local-agent &&'
    " systemctl start amazon-cloudwatch-agent\n",
    "/etc/systemd/system/amazon-cloudwatch-agent.service": "[Service]\nExecStart=/bin/sleep 1000\n",
}
NEURON_MONITOR = {
    "/opt/aws/neuron/bin/neuron-monitor": (
        Path(__file__).with_name("stubs") / "neuron-monitor"
    ).read_text(),
    "/etc/local-neuron-monitor": json.dumps(report([program({0: 42.0}, gib={0: 3})])) + "\n",
}
# By case: the file, and the series in it. EFA's devices have no counters here.
TOLD = {
    "efa_there": ("efa.prom", []),
    "neuron": (
        "neuron.prom",
        [
            'errors_total{device="0",kind="corrected"} 0',
            'errors_total{device="0",kind="uncorrected"} 0',
            'errors_total{device="1",kind="corrected"} 0',
            'errors_total{device="1",kind="uncorrected"} 0',
            "memory_bytes 6.8719476736e+10",
            'memory_used_bytes{device="0"} 3.221225472e+09',
            'memory_used_bytes{device="1"} 0',
            'use_ratio{device="0"} 0.21',
            'use_ratio{device="1"} 0',
        ],
    ),
}


def exporting(machine: Machine) -> dict[str, Any]:
    """What the exporters of a node tell, and what is left of the jobs of its GPUs."""

    def said(line: str) -> list[str]:
        return machine.run(["sh", "-c", line]).stdout.split()

    wait_for(lambda: not said("ls /run/tidegate/gpu-jobs"))
    return {
        "node": said("curl -s http://127.0.0.1:9100/metrics | grep -oE '^node_(load1 |cpu_s)'"),
        "has_package": bool(said("command -v prometheus-node-exporter")),
        "gpu": said("cat /etc/local-dcgm"),
        "left": said("ls /run/tidegate/gpu-jobs"),
    }


def telling(machine: Machine, name: str) -> dict[str, Any]:
    """Whether node exporter reads what is in this file, and which series."""
    if machine.run(["sh", "-c", "command -v prometheus-node-exporter"]).returncode:
        return {"file": [], "read": []}
    folder = "/run/tidegate/metrics"
    wait_for(lambda: not machine.run(["test", "-e", f"{folder}/{name}"]).returncode)
    read = "curl -s http://127.0.0.1:9100/metrics | grep -E '^(node_textfile_scrape_err|tidegate_)'"
    return {
        "file": machine.run(["ls", folder]).stdout.split(),
        "read": machine.run(["sh", "-c", read]).stdout.splitlines(),
    }
