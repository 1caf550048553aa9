"""Cluster files and the stacks that are synthesized from them."""

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from fcntl import LOCK_EX, flock
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml
from aws_cdk import App

from cdk.app import synthesize

ROOT = Path(__file__).parents[2]
CLUSTERS = ROOT / "clusters"

type File = dict[str, Any]
type Properties = dict[str, Any]


def dev_file(**changes: Any) -> File:
    """clusters/dev.yaml with other top-level values; None leaves one out."""
    read = deepcopy(_dev_file())
    return {name: value for name, value in {**read, **changes}.items() if value is not None}


@cache
def _dev_file() -> File:
    """Its text is read once: files of variants are made by the dozen."""
    read: File = yaml.load((CLUSTERS / "dev.yaml").read_text(), Loader=yaml.BaseLoader)
    return read


@dataclass(frozen=True)
class Stack:
    """A synthesized stack: its template, and the folder that it was written to."""

    template: Mapping[str, Any]
    folder: Path

    def resources(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Logical id and resource of every resource of a type."""
        for logical_id, resource in self.template["Resources"].items():
            if resource["Type"] == kind:
                yield logical_id, resource

    def all(self, kind: str) -> list[Properties]:
        return [resource.get("Properties", {}) for _, resource in self.resources(kind)]

    def one(self, kind: str) -> Properties:
        (only,) = self.all(kind)
        return only

    def named(self, part: str, kind: str) -> Properties:
        """The properties of the one resource of a type whose logical id begins like this."""
        (found,) = [
            dict(resource["Properties"])
            for logical_id, resource in self.resources(kind)
            if logical_id.startswith(part)
        ]
        return found

    def logical_id(self, part: str, kind: str) -> str:
        (found,) = [each for each, _ in self.resources(kind) if each.startswith(part)]
        return found


def synthesized(folder: Path, *files: File, **context: Any) -> dict[str, Stack]:
    """The stacks of these cluster files, by name; functions without third-party packages.

    Those of the same files are synthesized once in a test run, whichever process asks: nobody
    writes into an assembly.
    """
    asked = json.dumps([files, context], sort_keys=True, default=str)
    run = next((each for each in folder.parents if re.fullmatch(r"pytest-\d+", each.name)), folder)
    made = run / f"synthesized-{sha256(asked.encode()).hexdigest()[:16]}"
    with made.with_suffix(".lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not made.exists():
            anew(made.with_suffix(".tmp"), *files, **context)
            made.with_suffix(".tmp").rename(made)
    return written(made)


def anew(folder: Path, *files: File, **context: Any) -> dict[str, Stack]:
    """The same, synthesized in `folder` whatever was before."""
    folder.mkdir(exist_ok=True)
    for number, file in enumerate(files):
        (folder / f"{number}.yaml").write_text(yaml.safe_dump(file))
    app = new_app(folder, **{"clusters": str(folder / "*.yaml"), **context})
    synthesize(ROOT, account=None, app=app)
    return written(folder)


def written(folder: Path) -> dict[str, Stack]:
    """The stacks of the assembly in `folder`, by name."""
    return {
        path.name.removesuffix(".template.json"): Stack(
            json.loads(path.read_text()), folder / "cdk.out"
        )
        for path in (folder / "cdk.out").glob("*.template.json")
    }


def new_app(folder: Path, **context: Any) -> App:
    """An app with the flags of cdk.json, whose functions have no third-party packages."""
    flags = json.loads((ROOT / "cdk.json").read_text())["context"]
    return App(outdir=str(folder / "cdk.out"), context={**flags, "package": "source", **context})


def joined(value: Any) -> str:
    """A value of the template as text, with `<LogicalId>` where CloudFormation puts one in."""
    match value:
        case str():
            return value
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(map(joined, parts))
        case {"Fn::Base64": inner}:
            return joined(inner)
        case {"Fn::Sub": text}:
            return str(text)
        case {"Fn::ImportValue": export}:
            return _exported(export)
        case {"Ref": logical_id}:
            return f"<{logical_id}>"
        case {"Fn::GetAtt": [logical_id, attribute]}:
            return f"<{logical_id}.{attribute}>"
        case _:
            raise ValueError(f"not text: {value!r}")


def _exported(export: str) -> str:
    """An output of the data stack, as the stack itself would write it: `<StorageFiles12345678>`."""
    found = re.search(
        r":ExportsOutput(?:Ref(.+)|FnGetAtt(.+[0-9A-F]{8})([A-Z][a-z].*))[0-9A-F]{8}$", export
    )
    assert found, export
    logical_id, owner, attribute = found.groups()
    return f"<{logical_id}>" if logical_id else f"<{owner}.{attribute}>"
