"""Slurm's packages in S3, fetched by the stage's own functions from a stand-in for S3."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, quote, quote_plus, unquote, urlsplit

import pytest

USERDATA = Path(__file__).parents[2] / "userdata"
ROLE = {"AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": "se/cr+et=", "Token": "to/ken+=="}
INDEX = {"slurm/noble/InRelease": b"signed", "slurm/noble/Packages": b"index"}
DEB = "slurm/noble/pool/slurmd_23.11.4+ds~1_amd64.deb"
FETCH = (
    "REPOSITORY_URL=s3://packages/slurm/noble/ REPOSITORY_KEY_URL={};"
    ' find_slurm_source; echo "$source_url $key_url"'
)
HTTPS_KEY = FETCH.format("https://example.com/k")
IN_THE_PLACE_OF_IMDS = """
imds() {
    case $1 in
        iam/security-credentials/) echo node ;;
        iam/security-credentials/node) echo "$KEYS" ;;
        placement/region) echo us-east-1 ;;
        services/domain) echo amazonaws.com ;;
    esac
}
"""


@dataclass
class Bucket:
    """A bucket called `packages` that lists two objects at a time.

    `errors`: by path, what S3 says of it. `sizes`: what the list says, where that is untrue.
    """

    objects: dict[str, bytes] = field(default_factory=lambda: {**INDEX, DEB: b"package"})
    errors: dict[str, tuple[int, str]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def answer(self, url: str) -> tuple[int, bytes]:
        parts = urlsplit(url)
        path = unquote(parts.path)
        self.asked.append(path)
        if path in self.errors:
            status, code = self.errors[path]
            text = f"<Error>\n<Code>{code}</Code>\n<Message>it says</Message></Error>"
            return status, text.encode()
        if not parts.query:
            return 200, self.objects[path.removeprefix("/packages/")]
        # As a signature has them.
        words = parts.query.split("&")
        assert words == sorted(words)
        assert [word for word in words if quote(unquote(word), safe="=") != word] == []
        return 200, self.listed(parse_qs(parts.query))

    def listed(self, asked: dict[str, list[str]]) -> bytes:
        assert asked["list-type"] == ["2"]
        names = sorted(name for name in self.objects if name.startswith(asked["prefix"][0]))
        first = int(asked.get("continuation-token", ["0/+"])[0].removesuffix("/+"))
        shown, rest = names[first : first + 2], names[first + 2 :]
        rows = "".join(
            f"<Contents><Key>{quote_plus(name, safe='/')}</Key>"
            f"<Size>{self.sizes.get(name, len(self.objects[name]))}</Size></Contents>"
            for name in shown
        )
        more = f"<NextContinuationToken>{first + 2}/+</NextContinuationToken>" if rest else ""
        space = "http://s3.amazonaws.com/doc/2006-03-01/"
        return f'<ListBucketResult xmlns="{space}">{rows}{more}</ListBucketResult>'.encode()


@dataclass
class Machine:
    """Runs the stage's functions; what is `/opt/tidegate` elsewhere is a folder here."""

    folder: Path
    bucket: Bucket
    endpoint: str = ""

    def run(self, script: str = HTTPS_KEY, bounds: str = "") -> tuple[int, str]:
        """Exit code and all that was said."""
        text = "".join((USERDATA / name).read_text() for name in ("lib.sh", "both/packages.sh"))
        for path in ("/run/tidegate", "/var/log/tidegate", "/etc/tidegate", "/opt/tidegate"):
            text = text.replace(path, f"{self.folder}{path}")
        (self.folder / "run/tidegate").mkdir(parents=True, exist_ok=True)
        (self.folder / "opt/tidegate").mkdir(parents=True, exist_ok=True)
        text = text.replace("MAX_OBJECTS=2000 MAX_MIB=2048", bounds or "MAX_OBJECTS=9 MAX_MIB=9")
        done = subprocess.run(
            ["bash", "-c", f"set -euo pipefail\n{text}{IN_THE_PLACE_OF_IMDS}{script}"],
            cwd=USERDATA,
            env={
                "PATH": os.environ["PATH"],
                "AWS_ENDPOINT_URL_S3": self.endpoint,
                "KEYS": json.dumps(ROLE),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout + done.stderr

    def has(self) -> dict[str, bytes]:
        """The files that were fetched."""
        top = self.folder / "opt/tidegate/packages"
        files = (each for each in top.rglob("*") if each.is_file())
        return {str(each.relative_to(top)): each.read_bytes() for each in files}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    bucket = Bucket()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert "/us-east-1/s3/aws4_request," in self.headers["Authorization"]
            status, body = bucket.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield Machine(tmp_path, bucket, f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    server.server_close()


def test_what_lies_under_the_prefix_becomes_a_folder_that_apt_may_read(machine: Machine) -> None:
    machine.bucket.objects |= {"slurm/noble-old/Packages": b"x", "slurm/noble/pool/": b""}

    code, said = machine.run(f"umask 077; {HTTPS_KEY}")

    assert code == 0, said
    assert machine.has() == {
        "InRelease": b"signed",
        "Packages": b"index",
        "pool/slurmd_23.11.4+ds~1_amd64.deb": b"package",
    }
    assert machine.bucket.asked.count("/packages") == 2
    top = machine.folder / "opt/tidegate/packages"
    assert {each.stat().st_mode & 0o777 for each in (top, top / "pool")} == {0o755}
    assert (top / "Packages").stat().st_mode & 0o777 == 0o644


def test_a_name_that_could_leave_the_folder_is_left_out(machine: Machine) -> None:
    names = ["../../../run/x", "pool/../x", ".x", "a b", "-x", "a//b"]
    machine.bucket.objects |= {f"slurm/noble/{name}": b"bad" for name in names}

    code, said = machine.run()

    assert code == 0, said
    assert [name for name in names if f"left out: 'slurm/noble/{name}'" not in said] == []
    assert set(machine.has()) == {"InRelease", "Packages", "pool/slurmd_23.11.4+ds~1_amd64.deb"}
    assert not [each for each in machine.folder.rglob("*") if each.name == "x"]


@pytest.mark.parametrize(
    ("path", "status", "code", "words"),
    [
        ("", 403, "AccessDenied", "s3://packages/slurm/noble/: AccessDenied: it says; the machine"),
        (f"/{DEB}", 403, "AccessDenied", f"s3://packages/{DEB}: AccessDenied: it says; the"),
        ("", 404, "NoSuchBucket", "s3://packages/slurm/noble/: NoSuchBucket: it says"),
        ("", 301, "PermanentRedirect", "it says; the bucket is not in us-east-1"),
    ],
)
def test_what_no_other_try_could_mend_is_said_with_s3_s_own_word(
    machine: Machine, path: str, status: int, code: str, words: str
) -> None:
    machine.bucket.errors[f"/packages{path}"] = (status, code)

    ended, said = machine.run()

    assert ended == 78
    assert words in said.replace("%2B", "+")


def test_a_fetch_that_breaks_off_is_tried_again_and_leaves_what_was_there(
    machine: Machine,
) -> None:
    machine.run()
    machine.bucket.objects["slurm/noble/Packages"] = b"newer"
    machine.bucket.errors[f"/packages/{DEB}"] = (503, "SlowDown")

    code, said = machine.run()

    assert (code, "SlowDown: it says" in said) == (1, True)
    assert machine.has()["Packages"] == b"index"


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ("MAX_OBJECTS=2 MAX_MIB=9", "more than 2 objects lie under s3://packages/slurm/noble/"),
        ("MAX_OBJECTS=9 MAX_MIB=4", "5 MiB lie under s3://packages/slurm/noble/, more than 4"),
    ],
)
def test_more_than_a_repository_of_slurm_is_not_fetched(
    machine: Machine, bounds: str, words: str
) -> None:
    machine.bucket.sizes[DEB] = 5 << 20

    code, said = machine.run(bounds=bounds)

    assert (code, words in said) == (78, True), said
    assert machine.bucket.asked == ["/packages"] * 2


def test_a_prefix_without_objects_is_a_mistake(machine: Machine) -> None:
    code, said = machine.run(HTTPS_KEY.replace("noble", "jammy"))

    assert (code, "nothing lies under s3://packages/slurm/jammy/" in said) == (78, True)


def test_only_what_is_in_s3_is_asked_of_it(machine: Machine) -> None:
    machine.bucket.objects["keys/slurm.asc"] = b"BEGIN PGP"
    folder = f"file://{machine.folder}/opt/tidegate/packages"

    _, both = machine.run(FETCH.format("s3://packages/keys/slurm.asc"))
    _, folder_alone = machine.run()

    assert both == f"{folder} {folder}.key\n"
    assert (machine.folder / "opt/tidegate/packages.key").read_bytes() == b"BEGIN PGP"
    assert folder_alone == f"{folder} https://example.com/k\n"
