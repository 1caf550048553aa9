"""What whoever plays with the sandbox has at hand: commands, and somebody who answers them."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from local.demo.real_stage import RealStage
from local.namespaces import WORLD_DIR
from local.sandbox.answers import REPOSITORY, NotDone, environment, invoking, later, reclaim

BIN = Path(__file__).parent / "bin"
SLURM = (
    *("sbatch", "srun", "salloc", "squeue", "sinfo", "scancel", "scontrol"),
    *("sacct", "sacctmgr", "sprio", "sshare", "sdiag", "sreport"),
)
POLL_S = 0.1
CONSOLE_LINES = 200


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
        for name in ("as", "aws", "login"):
            shutil.copy(BIN / name, self.folder / "bin" / name)
        self._tell_machines()
        self.stage.cloud.invoke_by(invoking(self.stage))
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
        return environment(self.stage, self.folder, "/shared/home/ada", outside)

    def _serve(self) -> None:
        while not self._is_over.wait(POLL_S):
            self._tell_machines()
            for asked in sorted((self.folder / "asked").glob("[!.]*")):
                name = asked.read_text().strip()
                asked.unlink()
                answer = self.folder / "said" / f".{asked.name}"
                answer.write_text(self._answer(asked.name.partition("-")[0], name))
                answer.rename(answer.with_name(asked.name))

    def _tell_machines(self) -> None:
        """Where processes of head and login nodes are; only the id of one that is stopped."""
        for number, instance_id in enumerate([self.stage.head_id, *self.stage.login_ids]):
            machine = self.stage.hypervisor.machine(instance_id)
            pid = machine.init_pid if machine and machine.is_alive else "-"
            file = self.folder / (f"login.{number}" if number else "head")
            said = f"{pid} {instance_id}\n"
            if not file.exists() or file.read_text() != said:
                file.write_text(said)

    def _answer(self, verb: str, name: str) -> str:
        """The exit code in a line of its own, then what is said."""
        answers: dict[str, Callable[[str], str]] = {
            "reclaim": partial(reclaim, self.stage),
            "console": self._console,
            "later": partial(later, self.stage),
        }
        try:
            return f"0\n{answers[verb](name)}\n"
        except NotDone as why:
            return f"1\n{why}\n"

    def _console(self, name: str) -> str:
        log = self.stage.world.log_dir / f"{Path(name).name}.log"
        if not log.exists():
            known = ", ".join(sorted(each.stem for each in self.stage.world.log_dir.glob("*.log")))
            raise NotDone(f"No machine {name} has booted here. There were: {known}")
        return "\n".join(log.read_text(errors="replace").splitlines()[-CONSOLE_LINES:])


def _mount(*args: str) -> None:
    subprocess.run(["mount", *args], check=True)
