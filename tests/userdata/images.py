"""Nodes of a cluster below one folder, pyxis' way of calling its importer, and a registry."""

import os
import re
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

USERDATA = Path(__file__).parents[2] / "userdata"
IMAGE = "docker://registry.example#team/app"
ONE, TWO = (f"sha256:{digit * 64}" for digit in "12")
WHOLE = "squashfs of {}, all of it"

# As enroot 4.1.2 answers, tried against the real one: words to standard error, the digest alone to
# standard output, no import over a file that is there, and the file grows where it is to be. `tag`
# holds what the image's tag names, `moved` what it names after the next import.
ENROOT = """#!/bin/bash
fail() {{ echo "[ERROR] $*" >&2; exit 1; }}
echo "$*" >>{here}/calls
echo "[INFO] Querying registry for permission grant" >&2
[[ ! -e {here}/denied ]] || fail "URL https://registry.example/v2 returned error code: 401"
case $1 in
    digest)
        [[ $2 == docker://* && ! -e {here}/no_digests ]] || fail "Could not retrieve digest from $2"
        cat {here}/tag ;;
    import)
        [[ $2 == --output && ! -e $3 ]] || fail "File already exists: $3"
        digest=${{4##*@}}
        if [[ $digest != sha256:* ]]; then
            digest=$(<{here}/tag)
        elif [[ -e {here}/no_lists ]]; then
            fail "URL https://registry.example/v2 returned error code: 406"
        fi
        printf 'squashfs of' >"$3"
        [[ ! -e {here}/full ]] || fail "Write failed because No space left on device"
        echo $$ >>{here}/importing
        [[ ! -e {here}/slow ]] || sleep "$(<{here}/slow)"
        printf ' %s, all of it' "$digest" >>"$3"
        [[ ! -e {here}/moved ]] || mv {here}/moved {here}/tag ;;
esac
"""


@dataclass(frozen=True)
class Started:
    """What pyxis had of its importer for a step: the squashfs' path, "" where it failed."""

    path: str
    log: str

    @property
    def text(self) -> str:
        return Path(self.path).read_text() if self.path else ""


@dataclass(frozen=True)
class Begun:
    """An importer that runs, in a session of its own as in a step's cgroup."""

    process: subprocess.Popen[str]
    log: Path

    def kill(self) -> None:
        """The importer alone; what it has started lives until the step is cleaned up."""
        self.process.kill()

    def ended(self) -> Started:
        """As importer.c: one line is read, the pipe closed, then the end waited for; with an end
        other than 0, or without a line, the container fails and the log is shown.
        """
        assert self.process.stdout
        line = "" if self.process.poll() else self.process.stdout.readline().removesuffix("\n")
        self.process.stdout.close()
        code = self.process.wait()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        if code != 0 or not line:
            return Started("", self.log.read_text())
        assert line.startswith("/"), line
        return Started(line, self.log.read_text())


@dataclass(frozen=True)
class Site:
    """Nodes that share a home and what root shared; what lies on a node goes by its name."""

    here: Path
    has_cache: bool = True
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder in ("bin", "home", "shared"):
            (self.here / folder).mkdir(parents=True)
        (self.here / "shared").chmod(0o755)
        self.tag(ONE)
        self.command("enroot", ENROOT)
        self.command("logger", '#!/bin/bash\necho "${{*:4}}" >>{here}/journal\n')

    def command(self, name: str, text: str) -> None:
        command = self.here / "bin" / name
        command.write_text(text.format(here=self.here))
        command.chmod(0o755)

    def tag(self, digest: str) -> None:
        (self.here / "tag").write_text(f"{digest}\n")

    def put(self, name: str, text: str = "") -> None:
        (self.here / name).write_text(text)

    def importer(self, node: str, **constants: int) -> Path:
        """The importer as it is on a node, whose paths lead below this folder."""
        at = self.here / node
        if not at.exists():
            (at / f"disk/images-{os.getuid()}").mkdir(parents=True)
            (at / "hostname").write_text(f"{node}\n")
            cache = f" SHARED={self.here}/shared UNUSED_DAYS=14 MAX_GIB=1" if self.has_cache else ""
            (at / "container-cache").write_text(f"DISK={at}/disk{cache}\n")
        text = (USERDATA / "node/tidegate-import.sh").read_text()
        text = text.replace("/etc/tidegate", str(at)).replace("/proc/sys/kernel", str(at))
        for name, value in constants.items():
            text, number = re.subn(rf"\b{name}=\d+", f"{name}={value}", text)
            assert number == 1
        (at / "importer").write_text(text)
        (at / "importer").chmod(0o755)
        return at / "importer"

    def environment(self, step: str) -> dict[str, str]:
        """pyxis gives an importer the job's environment, without what would lead enroot astray
        (pyxis_slurmstepd.c, enroot_deny_env), and its own words.
        """
        job_id, step_id = step.split(".")
        return {
            "PATH": f"{self.here / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.here / "home"),
            "HOSTNAME": "login",
            "PYXIS_RUNTIME_PATH": str(self.here / "run"),
            "PYXIS_VERSION": "0.24.0",
            "SLURM_JOB_UID": str(os.getuid()),
            "SLURM_JOB_ID": job_id,
            "SLURM_STEP_ID": step_id,
            **self.env,
        }

    def begin(self, node: str, step: str, image: str = IMAGE) -> "Begun":
        program = self.here / node / "importer"
        if not program.exists():
            self.importer(node)
        log = self.here / node / f"log-{step}"
        with log.open("w") as errors:
            process = subprocess.Popen(
                [program, "get", image],
                env=self.environment(step),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        return Begun(process, log)

    def start(self, node: str, step: str = "7.0", image: str = IMAGE) -> Started:
        """A step's container up to where pyxis unpacks it."""
        return self.begin(node, step, image).ended()

    def release(self, node: str, step: str = "7.0") -> None:
        """Mostly twice, and an error would stand in the job's log (pyxis_slurmstepd.c)."""
        for _ in range(2):
            done = subprocess.run(
                [self.here / node / "importer", "release"],
                env=self.environment(step),
                capture_output=True,
                text=True,
                check=False,
            )
            assert (done.returncode, done.stdout) == (0, "")

    @property
    def cache(self) -> Path:
        return self.here / "home/.cache/tidegate-containers"

    @property
    def kept(self) -> list[Path]:
        return sorted(self.cache.glob("*.sqsh"))

    @property
    def record(self) -> Path:
        (found,) = (each for each in self.cache.glob("sha256-*") if each.suffix != ".sqsh")
        return found

    def calls(self, kind: str) -> list[str]:
        file = self.here / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if line.startswith(kind)]

    @property
    def journal(self) -> str:
        file = self.here / "journal"
        return file.read_text() if file.exists() else ""
