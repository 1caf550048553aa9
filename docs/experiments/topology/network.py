"""A network of three layers as EC2 tells it: 128 nodes below 4 x 4 switches, 8 nodes at each.

usage: network.py nodes scattered|grouped | network.py switches VARIANT | network.py mean

Names follow the order in which nodes came, which is the order of slurmctld's table. `scattered`:
each came from anywhere. `grouped`: 16 at a time, below two neighbouring switches, as a placement
group asks.
"""

import random
import sys
from collections.abc import Iterable
from itertools import combinations

NODES, PER_LEAF, LEAVES_PER_SPINE = 128, 8, 4
BATCH = 16


def places(kind: str) -> list[int]:
    """The place of each node by its name's number; 0 to 7 are below the first leaf."""
    rng = random.Random(7)
    if kind == "scattered":
        found = list(range(NODES))
        rng.shuffle(found)
        return found
    batches = [list(range(first, first + BATCH)) for first in range(0, NODES, BATCH)]
    rng.shuffle(batches)
    for each in batches:
        rng.shuffle(each)
    return [place for each in batches for place in each]


def hops(one: int, other: int) -> int:
    """Links between two places: up to the switch that both are below, and down."""
    if one // PER_LEAF == other // PER_LEAF:
        return 2
    return (
        4 if one // (PER_LEAF * LEAVES_PER_SPINE) == other // (PER_LEAF * LEAVES_PER_SPINE) else 6
    )


def mean_hops(found: Iterable[int]) -> float:
    pairs = list(combinations(found, 2))
    return sum(hops(*pair) for pair in pairs) / len(pairs)


def name(number: int) -> str:
    return f"n{number:03d}"


def switches(variant: str) -> list[str]:
    kind, _, plugin = variant.partition("-")
    if plugin != "tree":
        return []
    below: dict[int, list[str]] = {}
    for number, place in enumerate(places(kind)):
        below.setdefault(place // PER_LEAF, []).append(name(number))
    spines: dict[int, list[str]] = {}
    for leaf in below:
        spines.setdefault(leaf // LEAVES_PER_SPINE, []).append(f"leaf{leaf}")
    return [
        *(
            f"SwitchName=leaf{leaf} Nodes={','.join(names)}"
            for leaf, names in sorted(below.items())
        ),
        *(
            f"SwitchName=spine{each} Switches={','.join(names)}"
            for each, names in sorted(spines.items())
        ),
        f"SwitchName=all Switches={','.join(f'spine{each}' for each in sorted(spines))}",
    ]


if __name__ == "__main__":
    if sys.argv[1] == "nodes":
        print(f"NodeName=n[000-{NODES - 1:03d}] CPUs=8 RealMemory=16000 State=CLOUD")
    elif sys.argv[1] == "switches":
        print("\n".join(switches(sys.argv[2])))
    else:
        print(f"    {mean_hops(range(NODES)):.2f}")
