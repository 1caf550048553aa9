"""How one of Slurm's commands is run, and what it said."""

import re
import subprocess
from collections.abc import Callable, Sequence

from tidegate.core.model.errors import SlurmUnavailable
from tidegate.core.model.frozen import frozen

MAX_COMMENT_CHARS = 1_000

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\s]+")


def one_line(text: str) -> str:
    """The text without control characters, at most 1,000 characters long."""
    return _CONTROL.sub(" ", text).strip()[:MAX_COMMENT_CHARS]


@frozen
class Finished:
    """A command's exit code and what it printed; code -1: it was stopped at its time-out."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """Its last words: Slurm prints the cause after the details."""
        lines = [line for line in (self.err + "\n" + self.out).splitlines() if line.strip()]
        return one_line(lines[-1]) if lines else f"exit code {self.code} without a word"


# Runs an argv list for at most so many seconds. Errors: SlurmUnavailable (no such command).
type Runner = Callable[[Sequence[str], float], Finished]


@frozen
class CommandRunner:
    """Runs Slurm's commands with a fixed environment: UTC, English, uncut task lists.

    `prefix` stands before every command, for example `nsenter` into a test's namespaces.
    """

    slurm_conf: str = ""
    prefix: tuple[str, ...] = ()

    def __call__(self, argv: Sequence[str], timeout_s: float) -> Finished:
        try:
            done = subprocess.run(
                [*self.prefix, *argv],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            return Finished(-1, _decode(error.stdout), _decode(error.stderr))
        except OSError as error:
            raise SlurmUnavailable(f"{argv[0]} cannot be run: {error}.") from error
        return Finished(done.returncode, _decode(done.stdout), _decode(done.stderr))

    def _environment(self) -> dict[str, str]:
        # Nothing is inherited: SQUEUE_FORMAT, SLURM_TIME_FORMAT or TZ would change the text.
        conf = {"SLURM_CONF": self.slurm_conf} if self.slurm_conf else {}
        return {
            "PATH": "/opt/slurm/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
            "TZ": "UTC",
            "LC_ALL": "C",
            "SLURM_BITSTR_LEN": "0",
            **conf,
        }


def _decode(raw: bytes | str | None) -> str:
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw or ""
