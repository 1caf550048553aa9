"""A deliberate fault that the simulation has to find.

It is a few textual edits of `tidegate/`, so that the product knows nothing of it. An edit
whose old text does not stand in its file exactly once is an error: the lists follow the code.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """`old`, exactly once in `tidegate/<file>`, becomes `new`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault: what goes wrong, in words, and the edits that make it so."""

    name: str
    edits: tuple[Edit, ...]


def mutant(name: str, *edits: tuple[str, str, str]) -> Mutant:
    return Mutant(name, tuple(Edit(*edit) for edit in edits))
