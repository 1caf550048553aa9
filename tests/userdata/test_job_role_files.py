"""What a job's shell and its containers find of the job's role: the files that the stage writes."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.userdata.test_job_credentials import SECRET, Node, node
from userdata.bundle import in_order, read, read_stage
from userdata.stages import NODE_STAGES

__all__ = ["node"]

URL = "http://127.0.0.1:1017/"
ASKS = "import json,sys,urllib.request as u;" + (
    "r=u.Request(sys.argv[1],headers={'Authorization':sys.argv[2]});print(u.urlopen(r).read().decode())"
)


class Written:
    """The files of a node whose jobs lie below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.jobs = folder, folder / "jobs"
        self.own, self.hook = folder / "job-role.sh", folder / "hook.sh"
        self.environ, self.mounts = folder / "environ", folder / "mounts"
        (folder / "etc").mkdir()
        self.own.write_text(self.printed("job_role", "own"))
        self.hook.write_text(self.printed("job_role", "hook").replace("/etc/tidegate", str(folder)))

    def printed(self, stage: str, function: str) -> str:
        env = {"RUN_DIR": str(self.folder), "AWS_REGION": "us-east-1", "PATH": os.environ["PATH"]}
        script = f"{read(f'node/{stage}.sh')}\n{function}"
        done = subprocess.run(["bash", "-uc", script], env=env, capture_output=True, check=True)
        return done.stdout.decode()

    def arrives(self, job: str) -> str:
        """The Prolog has made the job's folder."""
        token = self.jobs / job / "token"
        token.parent.mkdir(parents=True)
        token.write_text(f"{job}.5ec0e7")
        return str(token)

    def enters(self, **environment: str) -> tuple[list[str], list[str]]:
        """What a container of pyxis has then: its environment, and its mounts."""
        self.environ.write_text("")
        self.mounts.write_text("")
        told = {"ENROOT_ENVIRON": str(self.environ), "ENROOT_MOUNTS": str(self.mounts)}
        env = {"PATH": os.environ["PATH"], **told, **environment}
        subprocess.run(["bash", str(self.hook)], env=env, check=True)
        return self.environ.read_text().splitlines(), self.mounts.read_text().splitlines()

    def sources(self, shell: str, **environment: str) -> dict[str, str]:
        env = {"PATH": os.environ["PATH"], **environment}
        done = subprocess.run(
            [shell, "-euc", f". {self.own}; env"],
            env=env,
            capture_output=True,
            check=True,
            text=True,
        )
        lines = (line.partition("=") for line in done.stdout.splitlines())
        return {name: value for name, _, value in lines if name.startswith("AWS_")}


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def test_a_container_has_its_job_s_secret_and_is_told_where(written: Written) -> None:
    token = written.arrives("12")
    written.arrives("13")

    environ, mounts = written.enters(SLURM_JOB_ID="12")

    assert environ == [
        f"AWS_CONTAINER_CREDENTIALS_FULL_URI={URL}",
        f"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE={token}",
    ]
    (line,) = mounts
    source, target, kind, options = line.split()
    assert (source, target, kind) == (token, token, "none")
    assert {"x-create=file", "bind", "ro"} <= {*options.split(",")}


def test_a_container_of_a_job_without_a_role_starts_and_has_none(written: Written) -> None:
    stale = written.arrives("11")

    for more in ({"SLURM_JOB_ID": "12"}, {}):
        inherited = {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": stale, **more}
        assert written.enters(**inherited) == ([], [])


def test_a_component_of_a_heterogeneous_job_finds_its_own(written: Written) -> None:
    token = written.arrives("22")
    ids = {"SLURM_JOB_ID": "21", "SLURM_JOB_ID_HET_GROUP_0": "21", "SLURM_JOB_ID_HET_GROUP_1": "22"}

    assert written.enters(**ids)[0][1].endswith(token)
    assert written.sources("sh", **ids)["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] == token


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_batch_script_sources_it_and_keeps_a_region_of_its_own(
    written: Written, shell: str
) -> None:
    token = written.arrives("12")

    found = written.sources(shell, SLURM_JOB_ID="12", AWS_REGION="eu-west-1")

    assert found == {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": URL,
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token,
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    assert written.sources(shell, SLURM_JOB_ID="13") == {}


def test_tasks_outside_of_containers_are_told_the_same(written: Written) -> None:
    token = written.arrives("12")
    prolog = written.printed("task_env", "prolog").replace("/etc/tidegate", str(written.folder))
    (written.folder / "task.env").write_text("")

    def told(**environment: str) -> list[str]:
        env = {"PATH": os.environ["PATH"], **environment}
        done = subprocess.run(["bash", "-c", prolog], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    stale = "/run/tidegate/jobs/9/token"
    unset = [
        "unset AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "unset AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    ]
    exports = [
        f"export AWS_CONTAINER_CREDENTIALS_FULL_URI={URL}",
        f"export AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE={token}",
    ]
    assert told(SLURM_JOB_ID="12") == exports
    inherits = {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": stale}
    assert told(SLURM_JOB_ID="12", **inherits) == [*unset, *exports]
    assert told(SLURM_JOB_ID="13", **inherits) == unset
    own = {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/home/ada/token"}
    assert told(SLURM_JOB_ID="13", **own) == []


def starts(folder: Path, port: int) -> subprocess.CompletedProcess[str]:
    """The stage, with a service manager that says yes to everything."""
    text = (
        read("node/job_role.sh")
        .replace("PORT=1017", f"PORT={port}")
        .replace("TRIES=100", "TRIES=2")
    )
    text = text.replace("/etc/", f"{folder}/")
    commands = "systemctl() { :; }; put_file() { cat >$1; }; has_file() { :; }"
    env = {"RUN_DIR": str(folder), "AWS_REGION": "x", "JOB_ROLES": "=a", "CONTAINERS": ""}
    return subprocess.run(
        ["bash", "-uc", f"{commands}\n{text}\napply && check"],
        env={"CLUSTER": "c", "PATH": os.environ["PATH"], **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    (tmp_path / "systemd/system").mkdir(parents=True)
    (tmp_path / "tidegate").mkdir()
    return tmp_path


def test_no_node_joins_whose_service_does_not_answer(etc: Path) -> None:
    """systemd calls a service active that ends in a second, since its port is taken."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    done = starts(etc, port)

    assert done.returncode == 1
    assert f"nobody answers jobs on port {port}" in done.stdout


def test_a_node_whose_service_answers_goes_on(etc: Path, node: Node) -> None:
    done = starts(etc, node.server.server_port)

    assert (done.returncode, done.stdout) == (0, "")


def test_no_file_system_is_mounted_before_the_service_has_its_port() -> None:
    """The kernel's NFS client takes any port from 665 to 1023 for its own end, for itself alone."""
    stages = (read_stage(path) for path in NODE_STAGES)

    ordered = [each.name for each in in_order(stages)]

    assert ordered.index("job_role") < ordered.index("file_systems")
    assert "job_role" in read_stage("both/file_systems").after, "stages run side by side"


def test_root_of_a_container_is_the_job_s_user_to_the_service(node: Node) -> None:
    """pyxis maps the user to root in a namespace of users."""
    asks = [sys.executable, "-c", ASKS, f"http://127.0.0.1:{node.server.server_port}/", SECRET]
    inside = ["unshare", "--user", "--map-root-user", *asks]

    done = subprocess.run(inside, capture_output=True, text=True, check=False)
    if "unshare failed" in done.stderr:
        pytest.skip(f"real path: needs user namespaces: {done.stderr.strip()}")

    assert json.loads(done.stdout)["AccessKeyId"] == "ASIA1", done.stderr
    (node.job / "uid").write_text(f"{os.getuid() + 1}\n")
    refused = subprocess.run(inside, capture_output=True, text=True, check=False)
    assert "403" in refused.stderr
