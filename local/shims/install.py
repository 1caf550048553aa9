"""Puts the shims into moto."""

from functools import cache

from local.shims import (
    costs,
    ec2,
    efs,
    endpoints,
    engine,
    events,
    functions,
    iam,
    images,
    parameters,
    queues,
    resources,
    security_groups,
    stacks,
    storage,
    tables,
    templates,
    volumes,
)

PARTS = (
    *(resources, ec2, efs, endpoints, events, functions, iam, images, parameters, queues),
    *(security_groups, stacks, storage, tables, templates, volumes),
)


@cache
def install_shims() -> None:
    """Teach moto the resource types it skips, and mend what it gets wrong.

    For the whole process, once: a second call does nothing.
    """
    engine.mend()
    for part in PARTS:
        part.install()
    costs.forget_names()
