"""The commands in *.md and docs/*.md: every line of a block that a shell could be given."""

import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]

# What the pages use and this machine need not have.
PROGRAMS = {"tidegate", "npx", "make", "aws", "cdk", "pip", "uv", "journalctl", "systemctl"} | {
    *("sbatch", "srun", "scontrol", "sinfo", "squeue", "sacct", "sacctmgr", "scancel", "slurmctld"),
    *("sudo", "ssh", "curl", "docker", "git", "export", "source", "cd", "for", "while", "if"),
}


@dataclass(frozen=True, slots=True)
class Command:
    """`words`: as a shell would split it, without what follows a pipe, a `>` or a remark."""

    page: str
    text: str

    @property
    def words(self) -> list[str]:
        parts = shlex.shlex(
            self.text.removeprefix(".venv/bin/"), posix=True, punctuation_chars="|>"
        )
        parts.whitespace_split = True
        return list(takewhile(lambda word: word not in ("|", ">"), parts))

    def __str__(self) -> str:
        return f"{self.page}: {self.text}"


def commands() -> list[Command]:
    return [Command(page.name, text) for page in PAGES for text in _commands(page.read_text())]


def spans(beginning: str) -> list[str]:
    """What stands between backticks and begins like this, in all pages."""
    found = {span for page in PAGES for span in re.findall(r"`([^`\n]+)`", page.read_text())}
    return sorted(each for each in found if each.startswith(beginning))


def _commands(text: str) -> Iterator[str]:
    for block in _blocks(re.sub(r"\\\n\s*", " ", text)):
        lines = iter(block)
        for line in lines:
            if _is_command(line):
                loop = _until(lines, "done") if line.strip().startswith("for ") else ()
                yield "\n".join((line.strip(), *loop))


def _until(lines: Iterator[str], end: str) -> Iterator[str]:
    for line in lines:
        yield line
        if line.strip() == end:
            return


def _blocks(text: str) -> Iterator[list[str]]:
    """Indented and fenced blocks; of fences those of no other language than a shell's."""
    indented: list[str] = []
    fenced: list[str] | None = None
    is_shell = True
    for line in [*text.splitlines(), ""]:
        if line.startswith("```"):
            if fenced is None:
                fenced, is_shell = [], line[3:].strip() in ("", "sh", "bash", "console", "shell")
            else:
                if is_shell:
                    yield fenced
                fenced = None
        elif fenced is not None:
            fenced.append(line)
        elif line.startswith("    ") or (indented and not line.strip()):
            indented.append(line)
        elif indented:
            yield indented
            indented = []
    if indented:
        yield indented


def _is_command(line: str) -> bool:
    """Its first word is a program; `head node      AWS` and `key: value` are none."""
    plain = re.split(r"\s+#\s", line.strip())[0]
    if not plain or re.search(r"\S\s{3,}\S", plain) or re.match(r"[\w.-]+:(\s|$)", plain):
        return False
    first = plain.split()[0].removeprefix(".venv/bin/").removeprefix("$")
    is_script = "/" in first and (ROOT / first).is_file()
    return first in PROGRAMS or is_script or shutil.which(first) is not None
