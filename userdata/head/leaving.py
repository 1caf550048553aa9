"""slurm.conf with the partitions that may not go yet.

usage: leaving.py CURRENT NEW NAMED

Prints NEW. Partitions of CURRENT that NEW lacks stay, drained, while NAMED (words) has them; NAMED
"-": nobody could say, so all of them stay.
"""

import sys
from pathlib import Path

MARK = "# leaves when no job names it"


def lines_of(text: str, key: str) -> dict[str, str]:
    """Name -> line of every `key=name ...` line."""
    found = {}
    for line in text.splitlines():
        first, _, rest = line.partition(" ")
        word, _, name = first.partition("=")
        if word == key:
            found[name] = rest.replace(MARK, "").strip()
    return found


def words_of(rest: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in rest.split() if "=" in word)


def merged(current: str, new: str, named: str) -> str:
    """The new text, and the lines of partitions that stay for a while."""
    partitions = lines_of(current, "PartitionName")
    gone = set(partitions) - set(lines_of(new, "PartitionName"))
    staying = sorted(gone if named == "-" else gone & set(named.split()))
    if not staying:
        return new
    known = lines_of(new, "NodeSet")
    lines = []
    for name in staying:
        nodes = words_of(partitions[name]).get("Nodes", "")
        for node_set, rest in lines_of(current, "NodeSet").items():
            if node_set in nodes.split(",") and node_set not in known:
                known[node_set] = rest
                lines.append(f"NodeSet={node_set} {rest}")
        lines.append(f"PartitionName={name} Nodes={nodes} State=DRAIN {MARK}")
    return new + "".join(f"{line}\n" for line in lines)


def main() -> None:
    current, new, named = sys.argv[1:4]
    before = Path(current).read_text() if Path(current).exists() else ""
    sys.stdout.write(merged(before, Path(new).read_text(), named))


if __name__ == "__main__":
    main()
