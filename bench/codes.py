"""The page of all codes, from where they are defined.

python -m bench.codes > docs/codes.md      (`make screens` does it)
"""

from tidegate.cli.codes import FAMILIES

HEAD = """\
# Codes

What a code means that a message, a table or an answer for programs (`-o json`) holds, and what to
do about it:

    tidegate explain R21
    tidegate explain resting InsufficientInstanceCapacity

Programs may rely on a code, no program on a sentence. The codes of `tidegate probe` are in
`probe.md`, those of an import in `migrating.md`, exit codes in `commands.md`.
"""


def text() -> str:
    parts = [HEAD]
    for family in FAMILIES:
        if family.name == "loss of an import":  # in migrating.md
            continue
        parts.append(
            f"## {family.name[0].upper()}{family.name[1:]}\n\nShown by {family.shown_by}.\n"
        )
        rows = [f"| `{code}` | {means} | {does} |" for code, means, does in family.codes]
        parts.append("\n".join(["| code | means | what to do |", "|---|---|---|", *rows, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    print(text(), end="")
