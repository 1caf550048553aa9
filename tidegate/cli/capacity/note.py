"""The note beside a cluster file that a purchase has begun, so that none is made twice."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tidegate.core.model.errors import BadConfig
from tidegate.core.model.frozen import frozen
from tidegate.wire.finite import parse_json

# EC2 shows what was bought within seconds; "Eventual consistency" names no bound.
SHOWN_WITHIN_S = 600.0


@frozen
class Note:
    """One for each cluster file: `offer`, `at_s` of its beginning, and what came of it."""

    path: Path

    @staticmethod
    def beside(file: Path) -> "Note":
        """The note of a cluster file; a link to it has the same one."""
        file = file.resolve()
        return Note(file.with_name(f"{file.name}.purchase"))

    def read(self) -> dict[str, object]:
        """Of a purchase that is not finished. Errors: BadConfig, nobody knows what it says."""
        try:
            found = parse_json(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise BadConfig(
                f"{self.path}: cannot be read: {error}; delete it once tidegate capacity"
                " names no block that is paid for and stands in no file"
            ) from error
        return found if isinstance(found, dict) else {}

    def claim(self, note: Mapping[str, object]) -> None:
        """Notes that a purchase begins. Errors: BadConfig, one has begun already."""
        try:
            with _refusing(self.path), self.path.open("x", encoding="utf-8") as out:
                out.write(json.dumps(note))
                out.flush()
                os.fsync(out.fileno())
        except FileExistsError as error:
            raise BadConfig(
                f"another purchase has begun meanwhile ({self.path}), and nothing was bought"
                " here: the same command says what came of it"
            ) from error

    def settle(self, note: Mapping[str, object], offer_id: str, now_s: float) -> None:
        """After EC2 was looked at and does not show what a purchase of this note bought.

        Errors: BadConfig, it is too early to say that nothing came of it.
        """
        began_s = note.get("at_s")
        if not isinstance(began_s, int | float):
            return
        left_s = SHOWN_WITHIN_S - (now_s - began_s)
        if left_s > 0:
            raise BadConfig(
                f"a purchase of {offer_id} has begun, and EC2 does not show it yet; nothing is"
                f" bought until it must be seen: try again in {left_s / 60:.0f} min"
            )
        if self.read() == note:  # and not that of somebody who began meanwhile
            self.forget()

    def unfinished(self, note: Mapping[str, object]) -> BadConfig:
        """That the purchase of this note comes before any other."""
        other = note.get("offer")
        first = note.get("again") or f"tidegate capacity --buy {other}"
        return BadConfig(
            f"a purchase of {other} is not finished ({self.path}): first finish it with {first}"
        )

    def keep_until_shown(self, *, is_shown: bool) -> str:
        """The note stays for whoever comes again before EC2 shows what was bought; says so."""
        if is_shown:
            self.forget()
        elif self.path.exists():
            return (
                f"EC2 does not show it yet: {self.path} keeps it from being bought twice, and is"
                " removed by the next --buy"
            )
        return ""

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """All of the file or nothing of it, also when the machine stops in between.

    What a link leads to is replaced, not the link. Errors: BadConfig.
    """
    path = path.resolve()
    beside = path.with_name(f".{path.name}.new")
    with _refusing(path):
        with beside.open("w", encoding="utf-8", newline="") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        if path.exists():
            beside.chmod(path.stat().st_mode & 0o777)
        beside.replace(path)


def affordable(offer_id: str, fee: float, currency: str, at_most: float | None) -> None:
    """Errors: BadConfig, it costs more than who pays has said."""
    # In these words, since nothing is more than `nan`.
    if at_most is not None and not fee <= at_most:
        raise BadConfig(
            f"{offer_id} costs {fee:,.2f} {currency} now, more than {at_most:,.2f}: nothing was"
            " bought"
        )


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """A file system that refuses is trouble with one sentence; that a file is there, an answer."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise BadConfig(f"{path}: cannot be written: {error.strerror}") from error
