"""The scripts of hooks that the sandbox's machines read from S3: the user's own, or stand-ins."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Where the machines read what comes by http: they reach nothing outside.
BY_HTTP = "s3://sandbox-hooks/"
NO_KEY = re.compile(r"[^A-Za-z0-9_./-]")
STAND_IN = """#!/bin/bash
echo "stands in for {source}: the sandbox has not got it. Its arguments: $*"
"""


@dataclass(frozen=True, slots=True)
class Script:
    """What a hook runs here. `at`: where machines read it. `file`: None: a stand-in."""

    source: str
    at: str
    file: Path | None

    @property
    def text(self) -> bytes:
        if self.file:
            return self.file.read_bytes()
        return STAND_IN.format(source=self.source).encode()


@dataclass(slots=True)
class Scripts:
    """`folder`: where the user's own are, as BUCKET/KEY, HOST/PATH or by their last name.

    `has_checksums`: the file's are meant; an imported one has stand-ins for them.
    """

    folder: Path
    has_checksums: bool
    found: dict[str, Script] = field(default_factory=dict)

    def played(self, hooks: Mapping[str, Any]) -> dict[str, Any]:
        """A section of hooks whose sources are in the local cloud's S3."""
        return {moment: [self._hook(each) for each in given] for moment, given in hooks.items()}

    def _hook(self, given: Mapping[str, Any]) -> dict[str, Any]:
        source = given.get("source")
        if source is None:  # it is in the file
            return dict(given)
        script = self.found.setdefault(source, self._script(source))
        is_checked = script.file is not None and self.has_checksums
        kept = {key: value for key, value in given.items() if key != "sha256" or is_checked}
        return kept | {"source": script.at}

    def _script(self, source: str) -> Script:
        scheme, _, place = source.partition("://")
        candidates = (self.folder / place, self.folder / Path(place).name)
        at = source if scheme == "s3" else BY_HTTP + NO_KEY.sub("_", place)
        return Script(source, at, next((each for each in candidates if each.is_file()), None))


def told(scripts: Mapping[str, Script]) -> Iterator[str]:
    """What the first lines say of them."""
    own = [f"{each.source} ({each.file})" for each in scripts.values() if each.file]
    if own:
        yield f"Hooks that run your scripts: {', '.join(own)}"
    if missing := [each.source for each in scripts.values() if each.file is None]:
        names = ", ".join(dict.fromkeys(Path(each).name for each in missing))
        yield (
            f"Hooks that run a stand-in: {', '.join(missing)}. To run yours, put {names} beside"
            " the file, or into the folder of --hooks."
        )


def store(s3: Any, scripts: Mapping[str, Script]) -> None:
    """Put them where the machines' roles may read them."""
    buckets = {each["Name"] for each in s3.list_buckets()["Buckets"]}
    for each in scripts.values():
        bucket, _, key = each.at.removeprefix("s3://").partition("/")
        if bucket not in buckets:
            s3.create_bucket(Bucket=bucket)
            buckets.add(bucket)
        s3.put_object(Bucket=bucket, Key=key, Body=each.text)
