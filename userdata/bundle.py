"""The boot bundle: the stages of a role and their graph, as one archive.

The same content gives the same bytes, so that a deployment without a change changes nothing.
"""

import ast
import gzip
import hashlib
import io
import re
import shlex
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePath

HERE = Path(__file__).parent
RUNNER = ("boot.sh", "lib.sh", "listing.py", "sign.py", "tidegate-boot.service")
DEFAULT_TIME_LIMIT_S = "60"

# What whoever reads the code wants to know, with a space: `#!` and `#SBATCH` are read by programs.
_COMMENT = re.compile(r"^[ \t]*#( .*)?\n", re.MULTILINE)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_HEADER = re.compile(r"^# (needs|time_limit_s|wait_s|only_with):[ ]?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage as its file's first lines say.

    `time_limit_s`: of one try. `wait_s`: for how long a try that failed is followed by another.
    Both are a number, or the setting that holds it, which the runner looks up. `after`: what it
    needs where the role has that. `only_with`: the setting or fact without which it has nothing to
    do, where that is empty or 0; "-" for none.
    """

    name: str
    text: str
    needs: tuple[str, ...]
    time_limit_s: str
    wait_s: str
    after: tuple[str, ...] = ()
    only_with: str = "-"

    @property
    def row(self) -> str:
        """Its line in the runner's graph."""
        return " ".join((self.name, self.time_limit_s, self.wait_s, self.only_with, *self.needs))


@dataclass(frozen=True)
class Bundle:
    """Files in a tar, and the hash by which a machine knows it.

    Of the tar as it is, since an image's component packs it smaller than what is fetched.
    """

    tar: bytes

    @cached_property
    def archive(self) -> bytes:
        """What a machine fetches. Of all systems' programs for archives gzip alone is essential."""
        return gzipped(self.tar)

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.tar).hexdigest()


def read(path: str) -> str:
    """A file of this folder."""
    return (HERE / path).read_text()


def read_stage(path: str) -> Stage:
    """`path`: "node/gpu". Raises ValueError for a stage that does not say what it needs."""
    text = read(f"{path}.sh")
    header = dict(_HEADER.findall(text))
    if "needs" not in header:
        raise ValueError(f"{path}.sh: a stage says what it `# needs:`")
    needs = header["needs"].split()
    return Stage(
        name=path.split("/")[1],
        text=text,
        needs=tuple(each for each in needs if not each.endswith("?")),
        time_limit_s=header.get("time_limit_s", DEFAULT_TIME_LIMIT_S),
        wait_s=header.get("wait_s", "0"),
        after=tuple(each.removesuffix("?") for each in needs if each.endswith("?")),
        only_with=header.get("only_with", "-"),
    )


def in_order(stages: Iterable[Stage]) -> list[Stage]:
    """The stages, each after all that it needs. Raises ValueError when there is no such order."""
    given = {stage.name: stage for stage in stages}
    by_name = {
        name: replace(stage, needs=(*stage.needs, *(n for n in stage.after if n in given)))
        for name, stage in given.items()
    }
    for stage in by_name.values():
        for need in stage.needs:
            if need not in by_name:
                raise ValueError(f"stage {stage.name} needs {need}, which is not there")
    sorter = TopologicalSorter({name: stage.needs for name, stage in by_name.items()})
    try:
        return [by_name[name] for name in sorter.static_order()]
    except CycleError as error:
        raise ValueError(f"stages need each other: {' '.join(error.args[1])}") from error


def assignments(settings: Mapping[str, str]) -> str:
    """Settings as bash reads them; no value can add a word of shell."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in settings.items())


def pack(roles: Mapping[str, Iterable[Stage]], files: Mapping[str, str | bytes]) -> Bundle:
    """The bundle of these stages, by the role that runs them. `files`: for its folder `files`.

    They are packed without comments and docstrings: an image's document is bound in its size.
    """
    entries: dict[str, str | bytes] = {name: read(name) for name in RUNNER}
    for role, stages in roles.items():
        ordered = in_order(stages)
        entries |= {f"stages/{stage.name}.sh": stage.text for stage in ordered}
        entries[f"graph.{role}"] = "".join(f"{stage.row}\n" for stage in ordered)
    entries |= {f"files/{name}": content for name, content in files.items()}
    return Bundle(tar_of({name: _packed(name, content) for name, content in entries.items()}))


def without_comments(text: str) -> str:
    """A script, or a table whose lines are words, without what only its readers need."""
    return _COMMENT.sub("", text)


def without_docstrings(module: str) -> str:
    """A Python module that does the same, without docstrings and lines that are comments."""
    lines = module.splitlines(keepends=True)
    for node in ast.walk(ast.parse(module)):
        if not isinstance(node, _DOCUMENTED) or ast.get_docstring(node) is None:
            continue
        said = node.body[0]
        # Emptied, not deleted: the lines after it keep their numbers.
        for number in range(said.lineno, (said.end_lineno or said.lineno) + 1):
            lines[number - 1] = ""
        if len(node.body) == 1:
            lines[said.lineno - 1] = f"{' ' * said.col_offset}pass\n"
    return without_comments("".join(lines))


def _packed(name: str, content: str | bytes) -> str | bytes:
    if isinstance(content, bytes):
        return content
    match PurePath(name).suffix:
        case ".py":
            return without_docstrings(content)
        case ".sh" | "":  # a script or a table
            return without_comments(content)
        case _:
            return content


def gzipped(data: bytes, *, level: int = 9) -> bytes:
    """Without its time. `level`: 9 for the smallest."""
    return gzip.compress(data, level, mtime=0)


def tar_of(entries: Mapping[str, str | bytes]) -> bytes:
    """These files as a tar. Root's, without times; what begins with `#!` may be run."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(entries.items(), key=_kind_first):
            data = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            entry.mode = 0o755 if data.startswith(b"#!") else 0o644
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def _kind_first(entry: tuple[str, str | bytes]) -> tuple[str, int, str]:
    """What is alike stands together, the longest first: an archive of it is smaller."""
    name, content = entry
    return PurePath(name).suffix, -len(content), name
