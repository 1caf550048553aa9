"""What looks like a secret in a cluster file, or in the user data that is made of it.

Everyone who may describe an instance reads its user data, and every job may read slurm.conf.
"""

import re
from collections.abc import Iterator

from tidegate.wire.problems import Problem
from tidegate.wire.texts import texts_in

_KINDS = (
    ("an AWS access key", re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY")),
    ("a password in an address", re.compile(r"[a-z]://[^/\s:@]+:[^/\s@]+@")),
    (
        "a password",
        # Paths and ARNs say where a secret is; variables take it from somewhere else.
        re.compile(r"(?i)(?:password|passwd|secret|storagepass|token)=(?!/|arn:|\$|[\"' ])\S"),
    ),
)


def kind_of_secret(text: str) -> str:
    """`an AWS access key`, when the text holds what looks like one; "" for none."""
    return next((kind for kind, pattern in _KINDS if pattern.search(text)), "")


def secrets_in(data: object) -> Iterator[Problem]:
    """Rule R14 on each value of a file. The value itself is not told: messages are kept."""
    for place, value in texts_in(data):
        name = place[-1] if place else ""
        if kind := kind_of_secret(value) or kind_of_secret(f"{name}={value}"):
            text = f"looks like {kind}: what is here can be read on every node (R14)"
            yield Problem(place, f"{text}; keep it in Secrets Manager")
