"""What a machine said on its console while it booted: our lines among the kernel's."""

import re
from collections.abc import Iterator

from tidegate.core.model.frozen import frozen

# userdata/lib.sh and userdata/stub.sh write them; before the first stage there is no time yet.
_LINE = re.compile(r"\btidegate (?:(?P<at>\d{4}-\d\d-\d\dT[\d:.]+Z) )?(?P<text>\S.*)$")


@frozen
class BootLine:
    """One line. `at`: ISO-8601, "" where the line has no time."""

    at: str
    text: str

    def __str__(self) -> str:
        return f"{self.at or '-':<24} {self.text}"


def last_stage(console: str) -> str:
    """`munge done`, `gpu failed`: how far the boot has come; "" while it has said nothing."""
    said = [each.text.split() for each in boot_lines(console)]
    stages = [words for words in said if words[0] == "stage" and len(words) > 2]
    if not stages:
        return ""
    _, name, how, *_ = stages[-1]
    return f"{name} {'failed' if how.startswith('failed') else 'done'}"


def boot_lines(console: str) -> Iterator[BootLine]:
    """The boot's own lines, in order."""
    for line in console.splitlines():
        if found := _LINE.search(line):
            yield BootLine(found["at"] or "", found["text"].rstrip())
