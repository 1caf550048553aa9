"""NVIDIA's Multi-Instance GPU (MIG): what a GPU may be cut into, and a node's layout as text."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from tidegate.core.model.frozen import frozen

# How much of a GPU an instance takes, in slices of its memory, and the slices at which it may
# begin: by its compute slices (the number before the g) and how many of it a whole GPU holds.
# A GPU has seven compute slices and eight of memory, a smaller one four of both; that no two
# instances overlap keeps the compute slices as well.
# Source: NVIDIA MIG User Guide, `nvidia-smi mig -lgipp` of A100 and H100; H200, B200 and B300 have
# the same profiles with more memory; A30 and RTX PRO 6000 for four slices.
_PLACEMENTS = {
    (1, 7): (1, (0, 1, 2, 3, 4, 5, 6)),
    (1, 4): (2, (0, 2, 4, 6)),
    (2, 3): (2, (0, 2, 4)),
    (3, 2): (4, (0, 4)),
    (4, 1): (4, (0,)),
    (7, 1): (8, (0,)),
}
_PLACEMENTS_OF_FOUR = {
    (1, 4): (2, (0, 2, 4, 6)),
    (2, 2): (4, (0, 4)),
    (4, 1): (8, (0,)),
}
SLICES = 8

_LAYOUT = re.compile(r"([1-9][0-9]?)=(\S+)", re.ASCII)
_TYPE = re.compile(r"(|.*_)([1-7]g\.[1-9][0-9]{0,2}gb(?:[.+][a-z.+]+)?)", re.ASCII)
_PART = re.compile(r"([1-7]g\.[1-9][0-9]{0,2}gb):([1-7])", re.ASCII)

type Counts = tuple[int, ...]
"""Of one GPU: how many instances of each profile, in the pool's order."""


@frozen
class Profile:
    """A MIG profile that a pool's nodes may have: `size` slices of memory, from one of `starts`."""

    name: str  #: NVIDIA's, like 3g.20gb
    gpu_type: str  #: the GRES type of its instances, like a100_3g.20gb
    size: int
    starts: tuple[int, ...]

    @property
    def most(self) -> int:
        """How many of it a whole GPU holds."""
        return len(self.starts)


def profile(name: str, gpu_type: str, *, most: int, slices: int) -> Profile | None:
    """A profile by its name and how many of it a GPU of so many compute slices holds.

    None: no plain profile, so that nobody knows where it may stand (`+me`, `+gfx`).
    """
    table = _PLACEMENTS if slices > 4 else _PLACEMENTS_OF_FOUR
    compute, _, rest = name.partition("g.")
    found = table.get((int(compute), most)) if rest.removesuffix("gb").isdecimal() else None
    return Profile(name, gpu_type, *found) if found else None


def named_profile(gpu_type: str) -> tuple[str, str] | None:
    """GPU model and profile that a GRES type of MIG instances names, as whoever names it.

    Slurm's AutoDetect says `a100_3g.20gb`, other sites `a100_80gb_pcie_3g.40gb` or `3g.20gb` alone.
    None: it is of whole GPUs.
    """
    found = _TYPE.fullmatch(gpu_type.lower())
    return (found[1].rstrip("_"), found[2]) if found else None


@cache
def layouts(profiles: tuple[Profile, ...]) -> frozenset[Counts]:
    """Everything that one GPU can be cut into, also with a rest; by NVIDIA's placements."""
    found: set[Counts] = set()
    seen: set[tuple[int, Counts]] = set()
    todo = [(0, (0,) * len(profiles))]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        taken, counts = state
        found.add(counts)
        for number, each in enumerate(profiles):
            for start in each.starts:
                slots = (1 << each.size) - 1 << start
                if not taken & slots:
                    todo.append((taken | slots, plus(counts, number)))
    return frozenset(found)


def plus(counts: Counts, number: int) -> Counts:
    """With one more instance of a profile."""
    return (*counts[:number], counts[number] + 1, *counts[number + 1 :])


def size(counts: Counts, profiles: Sequence[Profile]) -> int:
    """How many slices of memory the instances take."""
    return sum(count * each.size for count, each in zip(counts, profiles, strict=True))


def uniform(profiles: tuple[Profile, ...], gpus: int, gpu_type: str = "") -> str:
    """The layout with as many instances of one profile as the GPUs hold; "": of the first."""
    of = next((each for each in profiles if each.gpu_type == gpu_type), profiles[0])
    return f"{gpus}={of.name}:{of.most}"


def layout_text(cut: Iterable[Counts], profiles: Sequence[Profile]) -> str:
    """The layout of a node's GPUs as it stands in its tag: `6=3g.20gb:2 2=1g.5gb:3/4g.20gb:1`.

    Equal GPUs are told together, and GPUs in the order of their first.
    """
    alike = Counter(cut)
    parts = (
        f"{gpus}=" + "/".join(f"{p.name}:{n}" for p, n in zip(profiles, counts, strict=True) if n)
        for counts, gpus in alike.items()
    )
    return " ".join(parts)


def instances(layout: str) -> dict[str, int]:
    """How many instances of each profile a node of this layout has; {}: it is no layout."""
    found: Counter[str] = Counter()
    for gpus, name, count in _read(layout):
        found[name] += gpus * count
    return dict(found)


def devices(layout: str, profiles: Sequence[Profile]) -> tuple[tuple[str, int], ...]:
    """The same by GRES type, in the order of the profiles, which is the node's own."""
    found = instances(layout)
    return tuple((each.gpu_type, found[each.name]) for each in profiles if each.name in found)


def _read(layout: str) -> Iterator[tuple[int, str, int]]:
    """GPUs, profile, instances on each."""
    for gpus, parts in _LAYOUT.findall(layout):
        for part in parts.split("/"):
            if matched := _PART.fullmatch(part):
                yield int(gpus), matched[1], int(matched[2])
