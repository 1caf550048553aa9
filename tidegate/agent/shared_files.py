"""Looks at files that jobs name, on the file system that all share.

The agent is not root, and yet sees more than a user should learn by it: so it follows no link,
stays in the shared folder, and believes no file of another user.
"""

import os
import pwd
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


class NotLooked(Exception):
    """Why nobody looks at a file, in words for its user."""


def uid_of(user: str) -> int | None:
    """None: the head knows no such user."""
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None


@dataclass(frozen=True, slots=True)
class SharedFiles:
    """`folder`: where such files may be."""

    folder: Path
    uid_of: Callable[[str], int | None] = uid_of

    def text(self, path: Path, user: str, chars_max: int) -> str:
        """The beginning of the user's file.

        Errors: NotLooked; FileNotFoundError, where it is not there yet.
        """
        return self._within(path, lambda name, at: self._read(path, user, (name, at, chars_max)))

    def seen(self, path: Path, user: str, chars_max: int) -> tuple[float, str]:
        """When the user's file was last changed, and its beginning. One that is not to be read
        counts as empty: it may be looked at all the same.

        Errors: NotLooked; FileNotFoundError, where it is not there yet.
        """

        def look(name: str, at: int) -> tuple[float, str]:
            changed_at_s = self._own(path, user, _stat(name, at)).st_mtime
            try:
                return changed_at_s, self._read(path, user, (name, at, chars_max))
            except PermissionError:
                return changed_at_s, ""

        return self._within(path, look)

    def _within[T](self, path: Path, look: Callable[[str, int], T]) -> T:
        if self.folder not in path.parents or ".." in path.parts:
            raise NotLooked(f"{path} is not below {self.folder}")
        try:
            return _in_its_folder(self.folder, path.relative_to(self.folder).parts, look)
        except PermissionError:
            remedy = "chmod o+x its folders, or take another one"
            raise NotLooked(f"the head's agent may not look at {path}: {remedy}") from None
        except FileNotFoundError:
            raise
        except OSError as error:  # ELOOP, ENOTDIR: a link on the way; the file system's trouble
            said = f"{path} leads over a link or cannot be read: {error.strerror}"
            raise NotLooked(said) from None

    def _own(self, path: Path, user: str, found: os.stat_result) -> os.stat_result:
        if not stat.S_ISREG(found.st_mode):
            raise NotLooked(f"{path} is no regular file")
        if found.st_uid != self.uid_of(user):
            raise NotLooked(f"{path} does not belong to {user}")
        return found

    def _read(self, path: Path, user: str, where: tuple[str, int, int]) -> str:
        """Never waits: whoever opens a FIFO would."""
        name, at, chars_max = where
        self._own(path, user, _stat(name, at))
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
        try:
            self._own(path, user, os.fstat(opened))  # it may be another one by now
            return os.read(opened, chars_max).decode("utf-8", errors="replace")
        finally:
            os.close(opened)


def _stat(name: str, at: int) -> os.stat_result:
    return os.stat(name, dir_fd=at, follow_symlinks=False)


def _in_its_folder[T](folder: Path, parts: Sequence[str], look: Callable[[str, int], T]) -> T:
    """With no link on the way: none of these folders is opened for reading."""
    at = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        for name in parts[:-1]:
            inner = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        return look(parts[-1], at)
    finally:
        os.close(at)
