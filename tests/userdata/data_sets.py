"""A node's files below one folder, and the programs that load data sets in them."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

USERDATA = Path(__file__).parents[2] / "userdata"
BASH = ["/bin/bash"]
PLACE = "s3://sets/imagenet"

# Lists the sizes in `listed`, copies what is in `objects`, and fails with the words of `says` or
# `sync_says` where they are. Counts its calls. Of a metadata service that answers the try in
# `answers` alone it takes no credentials before (botocore, configprovider.py: one try of a second).
AWS = """#!/bin/bash
echo "$*" >>{here}/calls
if ((${{AWS_METADATA_SERVICE_NUM_ATTEMPTS:-1}} < $(cat {here}/answers 2>/dev/null || echo 1))); then
    echo 'Unable to locate credentials. You can configure credentials by running "aws login".' >&2
    exit 253
fi
case "$1 $2" in
    "s3api list-objects-v2")
        [[ ! -e {here}/says ]] || {{ cat {here}/says >&2; exit 254; }}
        echo "A newer version of me is there" >&2
        cat {here}/listed 2>/dev/null || echo None ;;
    "s3 sync")
        cp -r {here}/objects/. "${{*: -1}}"
        [[ ! -e {here}/sync_says ]] || {{ cat {here}/sync_says; exit 1; }} ;;
esac
"""
# A disk of 1,000,000 bytes on which `taken` are others' and the rest is what lies in the sets.
DF = """#!/bin/bash
read -r taken <{here}/taken
ours=$(find {here}/scratch -type f -path '*/files/*' -printf '%s\\n' | paste -sd+)
echo Header
[[ $* == *size* ]] && echo 1000000 || echo $((1000000 - taken - (${{ours:-0}})))
"""


@dataclass(frozen=True)
class Node:
    """A node's files below `here`; the programs' own paths lead there."""

    here: Path
    allowed: str = "sets\nothers/open"

    def __post_init__(self) -> None:
        for folder in ("bundle/files", "bin", "scratch/tidegate-data", "etc", "objects"):
            (self.here / folder).mkdir(parents=True)
        for folder in ("asked", "used"):
            (self.here / "run/data-sets" / folder).mkdir(parents=True)
        self._copy("lib.sh", "bundle/lib.sh")
        self._copy("node/data-sets.sh", "bundle/files/data-sets.sh")
        self._copy("node/tidegate-data.sh", "bin/tidegate-data")
        self._command("aws", AWS)
        self._command("df", DF)
        (self.here / "etc/data-sets").write_text(f"{self.allowed}\n")
        (self.here / "taken").write_text("0\n")

    def _copy(self, source: str, target: str) -> None:
        text = (USERDATA / source).read_text()
        for path, name in (
            ("/etc/tidegate", "etc"),
            ("/run/tidegate", "run"),
            ("/scratch", "scratch"),
            ("/dev/console", "console"),
        ):
            text = text.replace(path, str(self.here / name))
        (self.here / target).write_text(text)

    def _command(self, name: str, text: str) -> None:
        command = self.here / "bin" / name
        command.write_text(text.format(here=self.here))
        command.chmod(0o755)

    def put(self, objects: dict[str, str], *, listed: list[int] | None = None) -> None:
        for key, text in objects.items():
            file = self.here / "objects" / key
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        sizes = [len(text) for text in objects.values()] if listed is None else listed
        (self.here / "listed").write_text("".join(f"{size}\n" for size in sizes))

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        env = {
            "PATH": f"{self.here / 'bin'}:{os.environ['PATH']}",
            "AWS_REGION": "us-east-1",
            **more,
        }
        program = str(self.here / "bundle/files/data-sets.sh")
        return subprocess.run(
            [*BASH, program, *words], env=env, capture_output=True, text=True, check=False
        )

    def load(self, *places: str, **more: str) -> None:
        self.run("ask", *places, **more)
        done = self.run("load", "once", **more)
        assert (done.returncode, done.stderr) == (0, "")

    def job(self, kind: str, job_id: str, comment: str = "") -> None:
        done = self.run(kind, SLURM_JOB_ID=job_id, SLURM_JOB_COMMENT=comment)
        assert (done.returncode, done.stderr) == (0, "")

    def asks(self, place: str, wait_s: str = "0") -> tuple[int, str, str]:
        """As a job asks for its folder: code, output, errors."""
        done = subprocess.run(
            [*BASH, str(self.here / "bin/tidegate-data"), place, wait_s],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout.strip(), done.stderr.strip()

    def folder(self, name: str) -> Path:
        return self.here / "scratch/tidegate-data" / name

    @property
    def calls(self) -> list[str]:
        file = self.here / "calls"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def told(self) -> str:
        file = self.here / "console"
        return file.read_text() if file.exists() else ""


@dataclass(frozen=True)
class Boot:
    """One run of the stage: what it printed, and what it asked of systemd."""

    node: Node

    def run(self, *, tag: str = "", has_disk: bool = True) -> str:
        here = self.node.here
        stage = (USERDATA / "node/data_sets.sh").read_text()
        for path, name in (
            ("/etc/systemd/system", "units"),
            ("/usr/local/bin", "bin"),
            ("/etc/tidegate", "etc"),
            ("/scratch", "scratch"),
        ):
            (here / name).mkdir(exist_ok=True)
            stage = stage.replace(path, str(here / name))
        (here / "bundle/files/tidegate-data.sh").write_text("#!/bin/bash\n")
        script = f"""set -euo pipefail
cd {here}/bundle
source ./lib.sh
PREFETCH=sets
imds_if_any() {{ [[ $1 == tags/instance/tidegate:data ]] && {tag or "true"}; }}
mountpoint() {{ {"true" if has_disk else "false"}; }}
systemctl() {{ echo "systemctl $*"; }}
stat() {{ echo root; }}
{stage}
apply"""
        env = {"PATH": os.environ["PATH"]}
        done = subprocess.run(
            ["bash", "-c", script], env=env, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout
