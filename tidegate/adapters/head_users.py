"""The people of a cluster, by the head's own command: userdata/head/tidegate-user.sh."""

from collections.abc import Sequence
from typing import Protocol

from tidegate.core.model.errors import Permanent
from tidegate.core.model.frozen import frozen

PROGRAM = "/usr/local/sbin/tidegate-user"
FIELDS = 6
# Of people and groups, as the head's command takes them.
NAME = r"^[a-z_][a-z0-9_-]{0,30}$"


class Shell(Protocol):
    """Runs a command on the head as its administrator."""

    def run(self, *argv: str) -> str: ...


@frozen
class User:
    """One of the cluster's people. `number`: the same on head and nodes, and on the head after this
    one. `keys`: with how many SSH keys they may log in. `jobs`: in Slurm's queue now; None: Slurm
    does not answer.
    """

    name: str
    number: int
    groups: tuple[str, ...]
    home: str
    keys: int
    jobs: int | None


@frozen
class HeadUsers:
    """Errors of each method: SlurmUnavailable, the head's command refused and says why; Permanent,
    no session on the head can be had.
    """

    shell: Shell

    def all(self) -> tuple[User, ...]:
        """In the order of their numbers."""
        lines = self.shell.run(PROGRAM, "list").splitlines()
        return tuple(_user(line) for line in lines if line)

    def add(
        self, name: str, *, keys: Sequence[str] = (), groups: Sequence[str] = (), account: str = ""
    ) -> str:
        """Make somebody known, or give more to whom the head knows already; what was done."""
        words = [name]
        for option, values in (("--key", keys), ("--group", groups), ("--account", [account])):
            words += [word for value in values if value for word in (option, value)]
        return self.shell.run(PROGRAM, "add", *words).strip()

    def remove(self, name: str) -> str:
        """Forget somebody who has no jobs; their home stays. What was done."""
        return self.shell.run(PROGRAM, "remove", name).strip()


def _user(line: str) -> User:
    found = line.split("\t")
    if len(found) != FIELDS or not found[1].isdigit() or not found[4].isdigit():
        raise Permanent(f"{PROGRAM} of the head said what is not understood: {line[:200]!r}")
    name, number, groups, home, keys, jobs = found
    told = int(jobs) if jobs.isdigit() else None
    return User(name, int(number), tuple(groups.split(",")), home, int(keys), told)
