"""Puts the shims into moto."""

from functools import cache

from local.shims import (
    ec2,
    efs,
    engine,
    events,
    functions,
    iam,
    parameters,
    queues,
    resources,
    storage,
    tables,
)


@cache
def install_shims() -> None:
    """Teach moto the resource types it skips, and mend what it gets wrong.

    For the whole process, once: a second call does nothing.
    """
    engine.mend()
    for part in (resources, ec2, efs, events, functions, iam, parameters, queues, storage, tables):
        part.install()
