"""What the exporters of a node tell the head's Prometheus."""

from typing import Any

from local.machine import Machine
from local.waiting import wait_for


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


def telling_of_efa(machine: Machine) -> dict[str, Any]:
    """Whether its counters come to node exporter; the devices here have none."""
    if machine.run(["sh", "-c", "command -v prometheus-node-exporter"]).returncode:
        return {"file": [], "read": []}
    folder = "/run/tidegate/metrics"
    wait_for(lambda: not machine.run(["test", "-e", f"{folder}/efa.prom"]).returncode)
    read = "curl -s http://127.0.0.1:9100/metrics | grep ^node_textfile_scrape_error"
    return {
        "file": machine.run(["ls", folder]).stdout.split(),
        "read": machine.run(["sh", "-c", read]).stdout.split(),
    }
