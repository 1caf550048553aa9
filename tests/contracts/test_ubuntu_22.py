"""Ubuntu 22.04's own curl, Python and apt run what nodes of that system run at their boot.

`scripts/contracts.sh` says how a tree of it is made and names it; without one nothing of this
runs. Slurm and the EFS mount helper come from signed repositories in files, all else from Ubuntu.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from userdata.bundle import HERE, assignments
from userdata.packages import NODE_PACKAGES, NODE_PROGRAMS
from userdata.render import Repository, signing_lines
from userdata.repository import repository_settings

TREE = os.environ.get("TIDEGATE_JAMMY_TREE", "")
pytestmark = pytest.mark.skipif(not TREE, reason="needs the tree that scripts/contracts.sh names")
ROLE = {"AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": "se/cr+et=", "Token": "to/ken+=="}
# A daemon that tells its version, and a program.
PACKAGES = {
    "slurm/slurmd": "/usr/sbin/slurmd",
    "slurm/slurm-client": "/usr/bin/scontrol",
    "efs/amazon-efs-utils": "/usr/sbin/mount.efs",
}


@dataclass(frozen=True)
class Jammy:
    """A tree of Ubuntu 22.04 that keeps nothing; calls are made in it by chroot."""

    root: Path

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["chroot", str(self.root), "bash", "-c", script],
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )


@pytest.fixture
def jammy() -> Iterator[Jammy]:
    with TemporaryDirectory(prefix="jammy-", dir="/var/tmp") as made:
        folder = Path(made)
        for each in ("upper", "work", "root"):
            (folder / each).mkdir()
        options = f"lowerdir={TREE},upperdir={folder}/upper,workdir={folder}/work"
        root = str(folder / "root")
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, root], check=True)
        try:
            shutil.copy("/etc/resolv.conf", folder / "root/etc/resolv.conf")
            yield Jammy(folder / "root")
        finally:
            subprocess.run(["umount", "-l", root], check=True)


class Recorder(BaseHTTPRequestHandler):
    """Answers everything, and keeps the headers."""

    seen: list[dict[str, str]]

    def do_GET(self) -> None:
        self.seen.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_curl_7_81_sends_a_signature_that_is_aws_s(jammy):
    Recorder.seen = []
    server = HTTPServer(("127.0.0.1", 0), Recorder)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/assets/0a1b.tgz"
    keys = json.dumps(ROLE)
    script = (
        f"set -e; region=us-east-1 keys='{keys}'\n{signing_lines('ubuntu22.04')}signed s3 {url}"
    )

    done = jammy.run(script)
    server.shutdown()
    server.server_close()

    assert done.returncode == 0, done.stderr
    (head,) = Recorder.seen
    assert head["user-agent"] == "curl/7.81.0"
    request = AWSRequest("GET", url)
    for name in ("x-amz-date", "x-amz-content-sha256", "x-amz-security-token"):
        request.headers[name] = head[name]
    request.context["timestamp"] = head["x-amz-date"]
    signer = SigV4Auth(Credentials(*ROLE.values()), "s3", "us-east-1")
    text = signer.string_to_sign(request, signer.canonical_request(request))
    assert head["authorization"].endswith(f"Signature={signer.signature(text, request)}")


def publish(root: Path, *releases: str) -> None:
    """Two signed repositories, in files: one of Slurm, one like AWS's with the mount helper."""
    home = root / "repositories/gpg"
    home.mkdir(parents=True, mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet"]
    ask = ["--passphrase", "", "--quick-generate-key", "Test <t@example.com>", "rsa2048"]
    subprocess.run([*gpg, *ask], check=True, capture_output=True)
    key = subprocess.run([*gpg, "--export"], check=True, capture_output=True).stdout
    for path, program in PACKAGES.items():
        of, name = path.split("/")
        (root / "repositories" / of).mkdir(exist_ok=True)
        (root / "repositories" / of / ("efs-utils.gpg" if of == "efs" else "key")).write_bytes(key)
        flat = {"slurm": "slurm", "efs": "efs/repo/deb/ubuntu/22.04"}[of]
        folder = root / "repositories" / flat
        folder.mkdir(parents=True, exist_ok=True)
        for version in releases if of == "slurm" else ("3.0.0",):
            made = root / f"repositories/build/{name}-{version}"
            build(made, folder, name, version, program)
    sign(gpg, root / "repositories/slurm", "./")
    suite = root / "repositories/efs/repo/deb/ubuntu/22.04"
    sign(gpg, suite, "dists/22.04/main/binary-amd64")


def build(made: Path, folder: Path, name: str, version: str, program: str) -> None:
    """A package with one program."""
    (made / "DEBIAN").mkdir(parents=True)
    (made / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: {version}-1\nArchitecture: all\n"
        "Maintainer: t@example.com\nDescription: x\n"
    )
    file = made / program[1:]
    file.parent.mkdir(parents=True)
    file.write_text(f"#!/bin/sh\necho slurm-wlm {version}\n")
    file.chmod(0o755)
    subprocess.run(["dpkg-deb", "-b", made, folder], check=True, capture_output=True)


def sign(gpg: list[str], folder: Path, index: str) -> None:
    """apt's index of the packages in a folder, and its signed list of indexes."""
    (folder / index).mkdir(parents=True, exist_ok=True)
    found = subprocess.run(
        ["dpkg-scanpackages", "-m", "."], cwd=folder, check=True, capture_output=True
    ).stdout
    file = folder / index / "Packages"
    file.write_bytes(found)
    top = folder / ("dists/22.04" if index.startswith("dists") else ".")
    sums = subprocess.run(["sha256sum", file], check=True, capture_output=True, text=True).stdout
    named = "Codename: 22.04\nComponents: main\nArchitectures: amd64\n" if top != folder else ""
    line = f" {sums.split()[0]} {len(found)} {file.relative_to(top)}"
    text = f"{named}Date: Sat, 21 Nov 2026 00:00:00 UTC\nSHA256:\n{line}\n"
    subprocess.run([*gpg, "--clearsign", "-o", top / "InRelease"], input=text.encode(), check=True)


def install(jammy: Jammy, wanted: str) -> subprocess.CompletedProcess[str]:
    """One try of the stage `packages`, by the boot's own runner."""
    boot = jammy.root / "opt/tidegate/boot"
    (boot / "stages").mkdir(parents=True)
    for name in ("boot.sh", "lib.sh", "sign.py"):
        shutil.copy(HERE / name, boot / name)
    shutil.copy(HERE / "both/packages.sh", boot / "stages/packages.sh")
    (boot / "graph.node").write_text("packages 400 0 -\n")
    repository = Repository("file:///repositories/slurm", "file:///repositories/slurm/key", wanted)
    settings = {
        "ROLE": "node",
        "PROGRAMS": NODE_PROGRAMS,
        "PACKAGES": NODE_PACKAGES,
        "EFS_HELPER_URL": "file:///repositories/efs",
        **repository_settings(repository),
    }
    (jammy.root / "etc/tidegate").mkdir()
    (jammy.root / "etc/tidegate/boot.env").write_text(assignments(settings))
    return jammy.run("/opt/tidegate/boot/boot.sh try packages")


def test_real_apt_installs_the_release_of_the_cluster_s_repository(jammy):
    publish(jammy.root, "23.11.10", "24.11.5")

    done = install(jammy, "23.11")

    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert jammy.run("slurmd -V").stdout == "slurm-wlm 23.11.10\n"
    assert "64030" in jammy.run("id -u slurm").stdout
    programs = jammy.run(f"for each in {NODE_PROGRAMS}; do command -v $each; done").stdout
    assert len(programs.split()) == len(NODE_PROGRAMS.split())
    assert not (jammy.root / "etc/munge/munge.key").exists()


def test_ubuntu_s_own_old_slurm_does_not_take_the_place_of_another_release(jammy):
    publish(jammy.root, "24.11.5")

    done = install(jammy, "23.11")

    assert done.returncode == 78
    assert "has no Slurm 23.11 for this system" in done.stdout
