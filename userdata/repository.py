"""Where a machine gets Slurm from, when its system's own will not do."""

import re
from dataclasses import dataclass
from typing import Protocol

_URL = re.compile(r"(?:https?|file|s3)://[A-Za-z0-9./:_~+-]+")
_RELEASE = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")


@dataclass(frozen=True, slots=True)
class Repository:
    """Packages of Slurm: where they are, who signs them, and the release that is wanted.

    `suite` and `components`: apt's; a flat repository without them.
    """

    url: str
    key: str
    release: str
    suite: str = ""
    components: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks = [(self.url, _URL), (self.key, _URL), (self.release, _RELEASE)]
        checks += [(word, _WORD) for word in (self.suite, *self.components) if word]
        for value, pattern in checks:
            if not pattern.fullmatch(value):
                raise ValueError(f"repository: {value!r} must match {pattern.pattern}")


def place_in_s3(url: str) -> tuple[str, str] | None:
    """Bucket and key of s3://BUCKET/KEY; None for what is elsewhere."""
    scheme, _, rest = url.partition("://")
    if scheme != "s3":
        return None
    bucket, _, key = rest.partition("/")
    return bucket, key.rstrip("/")


def in_s3(found: Repository | None) -> tuple[str, ...]:
    """What of a repository, the packages and their key, lies in S3."""
    urls = (found.url, found.key) if found else ()
    return tuple(url for url in urls if place_in_s3(url))


class Given(Protocol):
    """A repository as the cluster file has it."""

    @property
    def url(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def suite(self) -> str | None: ...
    @property
    def components(self) -> tuple[str, ...]: ...


def repository_with(release: str, given: Given | None) -> Repository | None:
    """The repository that a file gives for a system; None when it gives none."""
    if given is None:
        return None
    return Repository(given.url, given.key, release, given.suite or "", given.components)


def repository_settings(found: Repository | None) -> dict[str, str]:
    """For a machine's stages; nothing without a repository."""
    if found is None:
        return {}
    return {
        "REPOSITORY_URL": found.url,
        "REPOSITORY_KEY_URL": found.key,
        "SUITE": " ".join((found.suite or "./", *found.components)),
        "SLURM_RELEASE": found.release,
    }
