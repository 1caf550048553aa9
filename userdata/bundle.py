"""The boot bundle: the stages of a role and their graph, as one archive.

The same content gives the same bytes, so that a deployment without a change changes nothing.
"""

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
from pathlib import Path

HERE = Path(__file__).parent
RUNNER = ("boot.sh", "lib.sh", "listing.py", "sign.py", "tidegate-boot.service")
DEFAULT_TIME_LIMIT_S = "60"

# What whoever reads the code wants to know, with a space: `#!` and `#SBATCH` are read by programs.
_COMMENT = re.compile(r"^[ \t]*#( .*)?\n", re.MULTILINE)
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
    """An archive, and the hash by which a machine knows it."""

    archive: bytes

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.archive).hexdigest()


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

    Scripts are packed without their comments: an image's document is bound in its size.
    """
    entries: dict[str, str | bytes] = {name: read(name) for name in RUNNER}
    for role, stages in roles.items():
        ordered = in_order(stages)
        entries |= {f"stages/{stage.name}.sh": stage.text for stage in ordered}
        entries[f"graph.{role}"] = "".join(f"{stage.row}\n" for stage in ordered)
    entries |= {f"files/{name}": content for name, content in files.items()}
    return Bundle(tar_gz({name: _packed(name, content) for name, content in entries.items()}))


def without_comments(script: str) -> str:
    return _COMMENT.sub("", script)


def _packed(name: str, content: str | bytes) -> str | bytes:
    if isinstance(content, bytes) or not name.endswith(".sh"):
        return content
    return without_comments(content)


def tar_gz(entries: Mapping[str, str | bytes], *, level: int = 9) -> bytes:
    """An archive of these files. Root's, without times; what begins with `#!` may be run.

    `level`: gzip's, 9 for the smallest.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(entries.items()):
            data = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            entry.mode = 0o755 if data.startswith(b"#!") else 0o644
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(packed.getvalue(), level, mtime=0)
