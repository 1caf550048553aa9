"""What was found out of an account: facts, and the report that can be shown to others."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from enum import StrEnum

from tidegate.cli.deployable import Answer
from tidegate.core.model.frozen import frozen
from tidegate.core.model.text import printable


class Standing(StrEnum):
    """How a fact stands."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    NOT_ASKED = "not asked"


@frozen
class Fact:
    """One statement of an account or a cluster. `claim`: what holds when it is confirmed.

    `details`: what AWS said, why not, or why it was not asked. `is_needed`: there was something to
    ask, so that an answer that is missing is one.
    """

    code: str
    claim: str
    standing: Standing
    details: tuple[str, ...] = ()
    is_needed: bool = True


@frozen
class Stage:
    """How long a part of the launch took, and what it may: seconds. `took_s` None: never ended."""

    name: str
    took_s: float | None
    budget_s: float | None

    @property
    def is_late(self) -> bool:
        """In whole seconds, as both are told: a stage that finds nothing to do takes a moment."""
        if self.budget_s is None:
            return False
        return self.took_s is None or round(self.took_s) > self.budget_s


@frozen
class Report:
    """All facts, in the order in which they were asked. `at`: ISO-8601 UTC."""

    cluster: str
    region: str
    version: str
    at: str
    facts: tuple[Fact, ...]
    stages: tuple[Stage, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 all is confirmed, 1 something is refuted, 3 something could not be asked."""
        if any(each.standing is Standing.REFUTED for each in self.facts):
            return 1
        missing = (each.standing is Standing.NOT_ASKED and each.is_needed for each in self.facts)
        return 3 if any(missing) else 0

    def summary(self) -> str:
        counted = [
            f"{sum(each.standing is standing for each in self.facts)} {standing}"
            for standing in Standing
        ]
        return ", ".join(counted)


def fact_of(answer: Answer) -> Fact:
    """A question's answer as a fact; what could not be asked of it weighs more than what could."""
    problems, notes = map(str, answer.problems), map(str, answer.notes)
    code, claim = answer.code, " ".join(answer.claim.splitlines()[0].split())
    if answer.problems:
        details = (*problems, *(f"not asked: {each}" for each in answer.unasked))
        return Fact(code, claim, Standing.REFUTED, details)
    if answer.unasked:
        return Fact(code, claim, Standing.NOT_ASKED, (*answer.unasked, *notes))
    if answer.needless:
        return Fact(code, claim, Standing.NOT_ASKED, (answer.needless,), is_needed=False)
    return Fact(code, claim, Standing.CONFIRMED, tuple(notes))


def lines(facts: Iterable[Fact]) -> Iterator[str]:
    """For people: a line per fact, and what is to say about it below."""
    for each in facts:
        yield f"{each.standing:<9}  {each.claim}"
        yield from (f"             {printable(detail)}" for detail in each.details)


def stage_lines(stages: Iterable[Stage]) -> Iterator[str]:
    for each in stages:
        budget = "" if each.budget_s is None else f", budget {each.budget_s:g} s"
        late = "LATE  " if each.is_late else "in time" if each.budget_s is not None else "timed"
        yield f"{late:<9}  {each.name}: {_seconds(each.took_s)}{budget}"


def as_markdown(report: Report) -> str:
    """For an issue: nothing in it names the account or anybody in it."""
    hide = redaction()
    rows = [
        f"| {each.standing} | {_cell(each.claim)} | {_cell('; '.join(each.details))} |"
        for each in report.facts
    ]
    timed = [
        f"| {each.name} | {_seconds(each.took_s)} | {_seconds(each.budget_s)} |"
        for each in report.stages
    ]
    title = f"# tidegate probe: {report.cluster} in {report.region}"
    head = [title, "", f"tidegate {report.version}, {report.at}: {report.summary()}.", ""]
    table = ["| | fact | what was seen |", "|---|---|---|", *rows]
    stages = ["", "| stage | took | budget |", "|---|---|---|", *timed] if timed else []
    return "\n".join(map(hide, [*head, *table, *stages])) + "\n"


def as_data(report: Report) -> str:
    """The same as JSON."""
    hide = redaction()
    data = asdict(report) | {"exit_code": report.exit_code, "summary": report.summary()}
    return hide(json.dumps(data, indent=2)) + "\n"


# What tells whose account it is: numbers of accounts, names of users and sessions, addresses.
_ACCOUNT = re.compile(r"(?<!\d)\d{12}(?!\d)")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PERSON = re.compile(r"\b(user|assumed-role|federated-user)/[\w+=,.@/-]+")
_ADDRESS = re.compile(
    r"\b(?!10\.|127\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.)\d{1,3}(?:\.\d{1,3}){3}\b"
)
_MESSAGE = re.compile(r"(Encoded authorization failure message: )\S+")
# Ids of EC2 and EFS; those of images stay, since a reader may need them.
_ID = re.compile(r"\b((?!ami)[a-z]{1,6}(?:-[a-z]+)?)-([0-9a-f]{8}|[0-9a-f]{17})\b")


def redaction() -> Callable[[str], str]:
    """Hides what is nobody else's business; the same id has the same name in all texts."""
    known: dict[str, str] = {}

    def numbered(found: re.Match[str]) -> str:
        kind = found[1]
        of_kind = sum(each.startswith(f"{kind}-(") for each in known.values())
        return known.setdefault(found[0], f"{kind}-({of_kind + 1})")

    def hide(text: str) -> str:
        for pattern, instead in (
            (_MESSAGE, r"\1(left out)"),
            (_MAIL, "(mail)"),
            (_PERSON, r"\1/(name)"),
            (_ACCOUNT, "(account)"),
            (_ADDRESS, "(address)"),
        ):
            text = pattern.sub(instead, text)
        return _ID.sub(numbered, text)

    return hide


def _cell(text: str) -> str:
    """Text that ends no cell of a table."""
    return printable(text).replace("|", r"\|")


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} s"
