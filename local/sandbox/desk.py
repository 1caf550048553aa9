"""What whoever plays with the sandbox has at hand: commands, and somebody who answers them."""

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from local.demo.real_stage import HeadDidNotBoot, RealStage
from local.namespaces import WORLD_DIR
from local.sandbox.cluster import LATER_MAX_S

BIN = Path(__file__).parent / "bin"
REPOSITORY = Path(__file__).parents[2]
SLURM = (
    *("sbatch", "srun", "salloc", "squeue", "sinfo", "scancel", "scontrol"),
    *("sacct", "sacctmgr", "sprio", "sshare", "sdiag", "sreport"),
)
POLL_S = 0.1
CONSOLE_LINES = 200
# Beyond that the functions would take the head's last report for too old.
AT_ONCE_MAX_S = 600.0


@dataclass(slots=True)
class Desk:
    """Use it as a context. Commands ask by a file in `asked`, and wait for one in `said`.

    The shell has a disk of its own over this computer's, with the cluster's /shared in it: what is
    written elsewhere is gone when it ends.
    """

    stage: RealStage
    folder: Path = WORLD_DIR / "sandbox"
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> "Desk":
        for name in ("bin", "asked", "said"):
            (self.folder / name).mkdir(parents=True)
        self._make_root()
        tidegate = f'#!/bin/bash\nexec {sys.executable} -m tidegate.cli.main "$@"\n'
        (self.folder / "bin" / "tidegate").write_text(tidegate)
        (self.folder / "bin" / "tidegate").chmod(0o755)
        for name in ("on-head", *SLURM):
            shutil.copy(BIN / "on-head", self.folder / "bin" / name)
        for name in ("reclaim", "console", "later"):
            shutil.copy(BIN / "ask", self.folder / "bin" / name)
        for name in ("as", "aws"):
            shutil.copy(BIN / name, self.folder / "bin" / name)
        self._tell_the_head()
        self.stage.cloud.invoke_by(self._invoke)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._thread:
            self._thread.join()

    @property
    def root(self) -> Path:
        return self.folder / "root"

    def _make_root(self) -> None:
        upper, work = self.folder / "upper", self.folder / "work"
        for folder in (upper, work, self.root):
            folder.mkdir()
        layers = f"lowerdir=/,upperdir={upper},workdir={work}"
        _mount("-t", "overlay", "overlay", "-o", layers, str(self.root))
        (self.root / "shared").mkdir(exist_ok=True)
        _mount("--bind", str(self.stage.world.shared_dir), str(self.root / "shared"))
        for seen in ("/proc", "/dev", str(WORLD_DIR)):
            _mount("--rbind", seen, f"{self.root}{seen}")
        # What lies on disks of its own, as the interpreter may, is not in the overlay.
        for path in dict.fromkeys((REPOSITORY, Path(sys.prefix), Path(sys.base_prefix))):
            if path.stat().st_dev != Path("/").stat().st_dev:
                (self.root / path.relative_to("/")).mkdir(parents=True, exist_ok=True)
                _mount("--bind", str(path), str(self.root / path.relative_to("/")))

    def environment(self, outside: Mapping[str, str]) -> dict[str, str]:
        """Of the shell: the commands, the local cloud, and nobody's own keys."""
        kept = {k: v for k, v in outside.items() if not k.startswith(("AWS_", "TIDEGATE_"))}
        return {
            **kept,
            "PATH": f"{self.folder / 'bin'}:{outside.get('PATH', '')}",
            "SANDBOX": str(self.folder),
            "SANDBOX_USER": "ada",
            "TIDEGATE_CLUSTER": str(self.stage.cluster_file),
            "AWS_ENDPOINT_URL": self.stage.cloud.endpoint_url,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_REGION": self.stage.file.region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "HOME": "/shared/home/ada",
            "PYTHONPATH": str(REPOSITORY),
        }

    def _invoke(self, function: str, payload: bytes, is_waited_for: bool) -> bytes:
        run, event = self.stage.router.functions.invoke, json.loads(payload)
        if is_waited_for:
            return json.dumps(run(function, event).answer).encode()
        threading.Thread(target=run, args=(function, event), daemon=True).start()
        return b""

    def _serve(self) -> None:
        while not self._is_over.wait(POLL_S):
            self._tell_the_head()
            for asked in sorted((self.folder / "asked").glob("[!.]*")):
                name = asked.read_text().strip()
                asked.unlink()
                answer = self.folder / "said" / f".{asked.name}"
                answer.write_text(self._answer(asked.name.partition("-")[0], name))
                answer.rename(answer.with_name(asked.name))

    def _tell_the_head(self) -> None:
        """Where its processes are; nothing while it is stopped."""
        try:
            machine = self.stage.head
            said = str(machine.init_pid) if machine.is_alive else ""
        except HeadDidNotBoot:
            said = ""
        head = self.folder / "head"
        if not head.exists() or head.read_text() != said:
            head.write_text(said)

    def _answer(self, verb: str, name: str) -> str:
        answers: dict[str, Callable[[str], str]] = {
            "reclaim": self._reclaim,
            "console": self._console,
            "later": self._later,
        }
        return answers[verb](name) + "\n"

    def _reclaim(self, name: str) -> str:
        there = self.stage.instances()
        offering = next((offering for one, offering, _ in there if one == name), None)
        if offering is None:
            known = ", ".join(one for one, _, _ in there) or "none"
            return f"There is no node {name}. There are: {known}"
        if not offering.endswith("/spot"):
            return f"{name} is {offering}: EC2 takes back spot nodes only."
        self.stage.notice(name)
        seconds = self.stage.file.cluster.timings.spot_notice_s
        return f"EC2 has told that it takes {name} back in {seconds:g} s."

    def _later(self, minutes: str) -> str:
        """AWS's clock alone goes on: schedules fire, Slurm's jobs run as before."""
        seconds = 60.0 * int(minutes) if minutes.isdecimal() else 0.0
        if not 0.0 < seconds <= AT_ONCE_MAX_S:
            return f"usage: later MINUTES, from 1 to {AT_ONCE_MAX_S / 60:g}"
        if self.stage.router.clock.offset_s + seconds > LATER_MAX_S:
            return f"AWS is {self.stage.router.clock.offset_s / 60:.0f} min ahead: that is the most"
        self.stage.pass_scheduled(seconds)
        return f"{minutes} min have passed for AWS: what its schedules do by then is done."

    def _console(self, name: str) -> str:
        log = self.stage.world.log_dir / f"{Path(name).name}.log"
        if not log.exists():
            known = ", ".join(sorted(each.stem for each in self.stage.world.log_dir.glob("*.log")))
            return f"No machine {name} has booted here. There were: {known}"
        return "\n".join(log.read_text(errors="replace").splitlines()[-CONSOLE_LINES:])


def _mount(*args: str) -> None:
    subprocess.run(["mount", *args], check=True)
