"""The head's users, published on the shared folder so that nodes know their names.

Slurm sends numbers only: on a node that does not know uid 1001 jobs run, but every look-up of
a name fails (ssh, conda, getpass). Nodes read these files with libnss-extrausers or a copy.
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

from tidegate.core.errors import BadConfig
from tidegate.core.frozen import frozen

MIN_UID = 1_000
MAX_UID = 60_000  # exclusive; above it distributions keep numbers for themselves
FOLDER = Path(".tidegate") / "users"
REFRESH_S = 60.0

logger = logging.getLogger(__name__)


@frozen
class Accounts:
    """The two files, as text. No password hashes: `x` stands in their place."""

    passwd: str
    group: str


def head_accounts() -> Accounts:
    """The people this machine knows, with LDAP or SSSD where these may be listed."""
    return render_accounts(pwd.getpwall(), grp.getgrall())


def render_accounts(
    users: Iterable[pwd.struct_passwd], groups: Iterable[grp.struct_group]
) -> Accounts:
    """People's accounts and the groups they are in, in the order of their numbers."""
    people = {user.pw_uid: user for user in users if MIN_UID <= user.pw_uid < MAX_UID}
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
        if MIN_UID <= one.gr_gid < MAX_UID and (one.gr_gid in primary or names & set(one.gr_mem))
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
    folder = _own_folder(shared_dir)
    changed = [
        _replace_if_changed(folder / name, text)
        for name, text in (("passwd", accounts.passwd), ("group", accounts.group))
    ]
    return any(changed)


def _own_folder(shared_dir: Path) -> Path:
    """The folder, ours and writable by nobody else: a user who owns it could become anyone."""
    path = shared_dir
    for part in FOLDER.parts:
        path = path / part
        path.mkdir(mode=0o755, exist_ok=True)
        found = path.lstat()
        is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid in (0, os.geteuid())
        if not is_ours or found.st_mode & 0o022:
            raise BadConfig(f"{path} must be a folder that only root or the agent can write to.")
    return path


def _replace_if_changed(path: Path, text: str) -> bool:
    # A file that is absent or no text is written anew.
    with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
        if path.read_text() == text:
            return False
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(handle, "w") as file:
        os.fchmod(file.fileno(), 0o644)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    return True


class UserList:
    """Keeps the published accounts up to date; says once when it cannot."""

    def __init__(self, shared_dir: Path, now_s: Callable[[], float] = time.monotonic) -> None:
        self._shared_dir = shared_dir
        self._now_s = now_s
        self._refreshed_at_s: float | None = None
        self._problem = ""

    def refresh(self) -> None:
        """Publish the head's accounts when the last time is a minute ago."""
        now_s = self._now_s()
        if self._refreshed_at_s is not None and now_s - self._refreshed_at_s < REFRESH_S:
            return
        self._refreshed_at_s = now_s
        problem = ""
        try:
            if publish_accounts(self._shared_dir, head_accounts()):
                logger.info("Published the head's users to %s.", self._shared_dir / FOLDER)
        except (OSError, BadConfig) as error:
            problem = str(error)
        if problem and problem != self._problem:
            logger.warning("The head's users cannot be published: %s", problem)
        self._problem = problem
