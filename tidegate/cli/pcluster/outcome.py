"""What comes of a translation: the file, what is lost, what is to be filled in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from tidegate.cli.pcluster.codes import CODES, WITHOUT_HARM
from tidegate.cli.pcluster.keys import LOST, NEEDLESS, TRANSLATED, VERSION, Lost
from tidegate.core.model.frozen import frozen
from tidegate.wire.problems import did_you_mean, problems_of, shown

# Of an image that comes along.
OTHER_SLURM = "ParallelCluster's own images have another Slurm; build one: tidegate image plan"

type Yaml = dict[str, Any]
type Path = tuple[str, ...]

_KNOWN = frozenset({*TRANSLATED, *LOST, *NEEDLESS})
_SECTIONS = frozenset(
    part
    for key in _KNOWN
    for index, char in enumerate(key)
    if char == "."
    for part in (key[:index], key[:index].removesuffix("[]"))
)


@frozen
class Loss:
    """Something of the configuration that the cluster file does not say, and what that means."""

    place: str
    lost: Lost

    def __str__(self) -> str:
        return f"{self.place}: {self.lost.means} [{self.lost.code}]"


@frozen
class Gap:
    """What ParallelCluster does not say and a cluster file must; `stand_in` only to check it.

    `is_open` False: what ParallelCluster says stands in the file, and somebody must see to it.
    """

    path: Path
    text: str
    stand_in: object
    is_open: bool = True


@dataclass(slots=True)
class Translated:
    """`file`: a cluster file, complete but for the gaps. `notes`: what needs nothing here."""

    file: Yaml
    losses: list[Loss] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def lose(self, place: str, code: str, means: str, *, is_heavy: bool = True) -> None:
        """Told once, however many pools come of the place."""
        assert code in CODES or code == WITHOUT_HARM, f"nobody could accept {code}"
        loss = Loss(place, Lost(code, means, is_heavy))
        if loss not in self.losses:
            self.losses.append(loss)

    def has_lost(self, place: str) -> bool:
        return any(each.place == place for each in self.losses)

    def heavy(self, accepted: frozenset[str]) -> list[Loss]:
        """What makes the cluster dearer or weaker, and nobody accepted."""
        return [
            each for each in self.losses if each.lost.is_heavy and each.lost.code not in accepted
        ]

    def complete(self) -> Yaml:
        """The file with a stand-in in each gap."""
        filled = _copy(self.file)
        for gap in self.gaps:
            here = filled
            for name in gap.path[:-1]:
                here = here[int(name)] if isinstance(here, list) else here.setdefault(name, {})
            here[gap.path[-1]] = gap.stand_in
        return dict(filled)


def _copy(value: Any) -> Any:
    match value:
        case dict():
            return {name: _copy(each) for name, each in value.items()}
        case list():
            return [_copy(each) for each in value]
    return value


def reason(error: ValidationError, model: type[BaseModel]) -> str:
    """Why a part may not stand in a cluster file."""
    return problems_of(error, model)[0].text


def judge(text: Mapping[str, Any], done: Translated) -> None:
    """Tells of every key that the translator does not read what becomes of it."""
    for key, place, value in _leaves(text, "", ""):
        if lost := LOST.get(key):
            if value not in lost.unless and not _is_off(value):
                done.losses.append(Loss(place, lost))
        elif why := NEEDLESS.get(key):
            done.notes.append(f"{place}: {why}")
        elif key not in TRANSLATED:
            near = did_you_mean(place.rpartition(".")[2], _names_beside(key))
            done.lose(place, "unknown-key", f"ParallelCluster {VERSION} has no such key{near}")


def _is_off(value: object) -> bool:
    """Nothing is lost with an empty part, or one that says that it is not wanted."""
    return not value and value is not False if not isinstance(value, dict) else _is_none(value)


def _is_none(part: Mapping[str, object]) -> bool:
    return part.get("Enabled") is False or all(each is None for each in part.values())


def _leaves(part: Mapping[str, Any], above: str, place: str) -> Iterator[tuple[str, str, Any]]:
    """Every key that an entry is about, or that none knows, with its place and value."""
    for name, value in part.items():
        key = f"{above}{name}"
        where = f"{place}{shown(name)}"
        if key in _KNOWN or key not in _SECTIONS:
            yield key, where, value
        elif isinstance(value, dict):
            yield from _leaves(value, f"{key}.", f"{where}.")
        elif isinstance(value, list):
            for index, each in enumerate(value):
                if isinstance(each, dict):
                    called = each.get("Name") or index
                    yield from _leaves(each, f"{key}[].", f"{where}[{shown(called)}].")


def _names_beside(key: str) -> list[str]:
    above = key.rpartition(".")[0]
    start = f"{above}." if above else ""
    return sorted(
        {
            each.removeprefix(start).split(".")[0].removesuffix("[]")
            for each in _KNOWN
            if each.startswith(start)
        }
    )
