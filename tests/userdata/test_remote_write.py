"""What the head's Prometheus sends to a workspace of Amazon's: real Prometheus, the real relay.

The workspace is a stand-in that knows signatures, see `workspace.py`.
"""

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import override
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml
from botocore.credentials import Credentials

from tests.userdata.workspace import Workspace
from userdata.monitoring import (
    REMOTE_WRITE_PORT,
    REMOTE_WRITE_TOKEN,
    Monitoring,
    RemoteWrite,
    monitoring_files,
)

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None,
    reason="real path: Debian's package prometheus is not installed",
)
REGION = "eu-west-1"
OWN = Credentials("ASIAHEAD", "own/+", "own==")
LENT = Credentials("ASIALENT", "lent/+", "lent==")
ROLE = "arn:aws:iam::210987654321:role/metrics"
ASSUMED = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<Credentials><AccessKeyId>{0.access_key}</AccessKeyId><SecretAccessKey>{0.secret_key}</SecretAccessKey>
<SessionToken>{0.token}</SessionToken><Expiration>{1}</Expiration></Credentials></AssumeRoleResult>
</AssumeRoleResponse>"""
MONITORING = Monitoring("dev", interval_s=1, remote_write=RemoteWrite("https://x", REGION))
TEXT = "tidegate_agent_slurm_up 1\n"


@dataclass
class Head:
    folder: Path
    web: int
    relay: int
    processes: list[subprocess.Popen[bytes]]

    def local(self, query: str) -> float:
        """What Prometheus itself says; 0 for nothing."""
        asked = urlencode({"query": query})
        with urlopen(f"http://127.0.0.1:{self.web}/api/v1/query?{asked}") as answer:
            found = json.load(answer)["data"]["result"]
        return float(found[0]["value"][1]) if found else 0.0

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def runs(self) -> bool:
        return all(each.poll() is None for each in self.processes)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


@contextmanager
def answering(handle: Callable[[str], str]) -> Iterator[int]:
    """A server of whatever `handle` makes of a body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(handle(body).encode())

        def do_POST(self) -> None:
            self.do_GET()

        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def config(folder: Path, ports: dict[int, int]) -> Path:
    """The head's own configuration, with other ports and the secret in this folder."""
    for name, text in monitoring_files(MONITORING).items():
        for usual, here in ports.items():
            text = text.replace(f"127.0.0.1:{usual}", f"127.0.0.1:{here}")
        (folder / name).write_text(text.replace(REMOTE_WRITE_TOKEN, str(folder / "token")))
    return folder / "prometheus.yml"


@contextmanager
def head(folder: Path, url: str, **changes: str) -> Iterator[Head]:
    """Prometheus and the relay as a head has them; `changes`: of the relay's environment."""
    with ExitStack() as stack:
        exporter = stack.enter_context(answering(lambda _: TEXT))
        web, relay = free_port(), free_port()
        file = config(folder, {9090: web, 9100: exporter, REMOTE_WRITE_PORT: relay})
        (folder / "token").write_text("5ec0e7")
        told = {
            "URL": url,
            "REGION": REGION,
            "TOKEN": str(folder / "token"),
            "PORT": str(relay),
        }
        env = {
            **{key: os.environ[key] for key in ("PATH", "HOME")},
            **{f"TIDEGATE_REMOTE_WRITE_{name}": value for name, value in told.items()},
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": OWN.access_key,
            "AWS_SECRET_ACCESS_KEY": OWN.secret_key,
            "AWS_SESSION_TOKEN": str(OWN.token),
            **changes,
        }
        run = "from tidegate.agent.remote_write import main; main()"
        commands = {
            "relay": [sys.executable, "-c", run],
            "prometheus": [
                *("prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder}/data"),
                f"--web.listen-address=127.0.0.1:{web}",
            ],
        }
        processes = []
        for name, argv in commands.items():
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            processes.append(subprocess.Popen(argv, env=env, stdout=log, stderr=log))
        try:
            yield Head(folder, web, relay, processes)
        finally:
            # Prometheus would wait a minute for what the workspace refuses.
            for each in processes:
                each.kill()
                each.wait()


def until(holds: Callable[[], bool], most_s: float = 40) -> bool:
    ends_s = time.monotonic() + most_s
    while time.monotonic() < ends_s:
        if holds():
            return True
        time.sleep(0.2)
    return holds()


def test_what_prometheus_scrapes_is_in_the_workspace(tmp_path: Path) -> None:
    with Workspace(REGION, [OWN]) as workspace, head(tmp_path, workspace.url) as made:
        came = until(lambda: workspace.samples.get("tidegate_agent_slurm_up", 0) > 2)

        assert came, (made.said("relay"), made.said("prometheus"), workspace.refused)
        assert not workspace.refused
        assert all(("cluster", "dev") in labels for labels in workspace.series)
        assert not [name for name in workspace.samples if name.startswith("scrape_")]
        # How far behind it is can be asked of the head's own Prometheus.
        lag = "prometheus_remote_storage_highest_timestamp_in_seconds - ignoring(remote_name, url)"
        lag += " prometheus_remote_storage_queue_highest_sent_timestamp_seconds"
        assert until(lambda: 0 <= made.local(lag) < 30)
        assert made.local("prometheus_remote_storage_samples_failed_total") == 0


def test_a_workspace_of_another_region_is_not_signed_for(tmp_path: Path) -> None:
    with Workspace("us-east-1", [OWN]) as workspace, head(tmp_path, workspace.url) as made:
        assert until(lambda: bool(workspace.refused))

        assert workspace.refused[0] == f"signed for {[REGION, 'aps', 'aws4_request']}"
        assert until(lambda: "lets nobody write" in made.said("relay"))
        assert not workspace.samples


def test_nothing_is_lost_while_the_right_to_write_is_not_there_yet(tmp_path: Path) -> None:
    with Workspace(REGION, []) as workspace, head(tmp_path, workspace.url) as made:
        assert until(lambda: len(workspace.refused) > 2)
        workspace.answers[:] = [429, 500, 503]
        workspace.keys.append(OWN)

        counted = "count_over_time(tidegate_agent_slurm_up[5m])"
        until(lambda: workspace.samples.get("tidegate_agent_slurm_up", 0) > 5)
        there = made.local(counted)
        assert until(lambda: workspace.samples["tidegate_agent_slurm_up"] >= there)
        assert made.local("prometheus_remote_storage_samples_failed_total") == 0
        # Once for each news, not for each write.
        assert made.said("relay").count("lets nobody write") == 1


def test_without_credentials_prometheus_runs_all_the_same(tmp_path: Path) -> None:
    none = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"), "")
    with Workspace(REGION, [OWN]) as workspace, head(tmp_path, workspace.url, **none) as made:
        assert until(lambda: "Unable to locate credentials" in made.said("relay"))
        assert until(lambda: made.local("tidegate_agent_slurm_up") == 1)

        assert made.runs()
        assert workspace.requests == 0


def test_another_account_s_workspace_is_written_to_as_its_role(tmp_path: Path) -> None:
    asked: list[str] = []
    ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))

    def sts(body: str) -> str:
        asked.append(body)
        return ASSUMED.format(LENT, ends)

    with answering(sts) as port, Workspace(REGION, [LENT]) as workspace:
        as_role = {
            "TIDEGATE_REMOTE_WRITE_ROLE": ROLE,
            "AWS_ENDPOINT_URL_STS": f"http://127.0.0.1:{port}",
        }
        with head(tmp_path, workspace.url, **as_role) as made:
            came = until(lambda: workspace.samples.get("tidegate_agent_slurm_up", 0) > 2)

            assert came, (made.said("relay"), workspace.refused)
            assert len(asked) == 1
            assert urlencode({"RoleArn": ROLE}) in asked[0]


def test_who_does_not_show_the_secret_writes_nothing(tmp_path: Path) -> None:
    with Workspace(REGION, [OWN]) as workspace, head(tmp_path, workspace.url) as made:
        assert until(lambda: workspace.requests > 0)

        door = http.client.HTTPConnection("127.0.0.1", made.relay)
        for shown in ({}, {"Authorization": "Bearer 5ec0e8"}):
            door.request("POST", "/", b"x", shown)
            answer = door.getresponse()
            assert answer.status == 403
            assert answer.read() == b"this is the door of the head's Prometheus"
        door.close()
        # Such a body has not the headers of a write, which the workspace would say.
        assert not workspace.refused


@pytest.mark.parametrize("write", [None, RemoteWrite("https://x", REGION)])
def test_prometheus_takes_the_configuration(tmp_path: Path, write: RemoteWrite | None) -> None:
    files = monitoring_files(Monitoring("dev", remote_write=write))
    (tmp_path / "token").write_text("5ec0e7")
    for name, text in files.items():
        (tmp_path / name).write_text(text.replace(REMOTE_WRITE_TOKEN, f"{tmp_path}/token"))

    done = subprocess.run(
        ["promtool", "check", "config", tmp_path / "prometheus.yml"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr + done.stdout
    found = yaml.safe_load(files["prometheus.yml"])
    assert ("remote_write" in found) is bool(write)
    jobs = [each["job_name"] for each in found["scrape_configs"]]
    assert ("prometheus" in jobs) is bool(write)
