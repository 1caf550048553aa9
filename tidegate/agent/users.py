"""The head's users, published on the shared folder so that nodes know their names.

Slurm sends numbers only: on a node that does not know uid 1001 jobs run, but every look-up of
a name fails (ssh, conda, getpass). Nodes read these files with libnss-extrausers or a copy.

What is published is also what a new head takes its users from (userdata/head/users.sh), so nobody
goes from it because a head does not know him: only who was in this head's own files before, and is
in none of them any more, was removed, by a person.
"""

import contextlib
import grp
import logging
import os
import pwd
import secrets
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tidegate.agent.accounts import (
    NOBODY,
    Known,
    People,
    decode_known,
    encode_known,
    is_person,
    merged,
    people_in,
)
from tidegate.core.model.errors import BadConfig
from tidegate.core.model.frozen import frozen

FOLDER = Path(".tidegate") / "users"
REFRESH_S = 60.0

logger = logging.getLogger(__name__)


@frozen
class Accounts:
    """The two files, as text. No password hashes: `x` stands in their place."""

    passwd: str
    group: str


def head_people() -> People:
    """Whom this machine knows, with LDAP or SSSD where these may be listed."""
    return People(tuple(pwd.getpwall()), tuple(grp.getgrall()))


def render_accounts(
    users: Iterable[pwd.struct_passwd], groups: Iterable[grp.struct_group]
) -> Accounts:
    """People's accounts and the groups they are in, in the order of their numbers."""
    people = {user.pw_uid: user for user in users if is_person(user.pw_uid)}
    names = {user.pw_name for user in people.values()}
    primary = {user.pw_gid for user in people.values()}
    passwd = [
        _line(
            user.pw_name, "x", user.pw_uid, user.pw_gid, user.pw_gecos, user.pw_dir, user.pw_shell
        )
        for _, user in sorted(people.items())
    ]
    group = [
        _line(one.gr_name, "x", one.gr_gid, ",".join(sorted(names & set(one.gr_mem))))
        for one in sorted(groups, key=lambda one: (one.gr_gid, one.gr_name))
        if is_person(one.gr_gid) and (one.gr_gid in primary or names & set(one.gr_mem))
    ]
    return Accounts("".join(filter(None, passwd)), "".join(filter(None, group)))


def _line(*values: str | int) -> str:
    """One line of passwd or group; "" when a value would break its form."""
    texts = [str(value) for value in values]
    return "" if any(set(text) & set(":\n\r\0") for text in texts) else ":".join(texts) + "\n"


def publish_accounts(shared_dir: Path, accounts: Accounts) -> bool:
    """Write what changed, each file at once or not at all; whether anything was written.

    Errors: BadConfig (somebody else owns the folder), OSError.
    """
    folder = own_folder(shared_dir, FOLDER)
    changed = [
        replace_if_changed(folder / name, text)
        for name, text in (("passwd", accounts.passwd), ("group", accounts.group))
    ]
    return any(changed)


def own_folder(shared_dir: Path, folder: Path) -> Path:
    """The folder, ours and writable by nobody else: a user who owns it could become anyone.

    Errors: BadConfig (somebody else owns it), OSError.
    """
    path = shared_dir
    for part in folder.parts:
        path = path / part
        path.mkdir(mode=0o755, exist_ok=True)
        found = path.lstat()
        is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid in (0, os.geteuid())
        if not is_ours or found.st_mode & 0o022:
            raise BadConfig(f"{path} must be a folder that only root or the agent can write to.")
    return path


def replace_if_changed(path: Path, text: str) -> bool:
    """Write it at once or not at all; whether anything was written. Errors: OSError."""
    # Comments of people may be in any encoding: bytes go through as they are.
    data = text.encode(errors="surrogateescape")
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == data:
            return False
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(file.fileno(), 0o644)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    return True


def _text(path: Path) -> str:
    """What the file holds; "" when there is none. Errors: OSError."""
    try:
        return path.read_bytes().decode(errors="surrogateescape")
    except FileNotFoundError:
        return ""


class UserList:
    """Keeps the published accounts up to date; says once when it cannot.

    `state_dir`: a folder that goes with this head, where it notes whom its own files knew; None:
    it has none, and nobody is ever taken off the list. `etc`: where these files are.
    """

    def __init__(
        self,
        shared_dir: Path,
        state_dir: Path | None,
        *,
        now_s: Callable[[], float] = time.monotonic,
        people: Callable[[], People] = head_people,
        etc: Path = Path("/etc"),
    ) -> None:
        self._shared_dir = shared_dir
        self._known_file = state_dir / "users.json" if state_dir else None
        self._now_s = now_s
        self._people = people
        self._etc = etc
        self._refreshed_at_s: float | None = None
        self._problem = ""

    def refresh(self) -> None:
        """Publish the head's accounts when the last time is a minute ago."""
        now_s = self._now_s()
        if self._refreshed_at_s is not None and now_s - self._refreshed_at_s < REFRESH_S:
            return
        self._refreshed_at_s = now_s
        try:
            problem = self._publish()
        except (OSError, BadConfig) as error:
            problem = f"The head's users cannot be published: {error}"
        if problem and problem != self._problem:
            logger.warning("%s", problem)
        self._problem = problem

    def _publish(self) -> str:
        """What is wrong with what was published; "" when nothing is. Errors: OSError, BadConfig."""
        head, files = self._people(), self._read(self._etc)
        if not any(user.pw_uid == 0 for user in files.users):
            raise BadConfig(f"{self._etc}/passwd knows no root, so it is not believed.")
        before = self._before()
        gone = before.without(Known.of(head)).without(Known.of(files))
        # First, so that whoever is published from now on can be removed, whatever happens.
        self._remember(before | Known.of(files))
        found = merged(head, self._read(self._shared_dir / FOLDER), gone)
        if publish_accounts(self._shared_dir, render_accounts(found.users, found.groups)):
            logger.info("Published the head's users to %s.", self._shared_dir / FOLDER)
        self._remember(Known.of(files))
        if not found.left_out:
            return ""
        return (
            f"{', '.join(found.left_out)}: not published, since the number belongs to somebody "
            f"whom an earlier head published; give another number (usermod -u, groupmod -g)."
        )

    def _read(self, folder: Path) -> People:
        return people_in(_text(folder / "passwd"), _text(folder / "group"))

    def _before(self) -> Known:
        return decode_known(_text(self._known_file)) if self._known_file else NOBODY

    def _remember(self, known: Known) -> None:
        if self._known_file:
            replace_if_changed(self._known_file, encode_known(known))
