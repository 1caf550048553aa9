"""Scripts of a site's own that the boot of its machines runs, as pydantic models.

The words are ParallelCluster's: OnNodeStart, OnNodeConfigured.
"""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from tidegate.core.model.frozen import frozen
from tidegate.wire.names import PORT
from tidegate.wire.section import Section, at_most

# They go to nodes in user data, of which EC2 takes 16 KiB.
INLINE_MAX_CHARS = 4096
HOOKS_MAX = 10

Sha256 = Annotated[
    str,
    Field(
        pattern=r"^[0-9a-f]{64}$",
        json_schema_extra={"x-expected": "64 hex digits, as sha256sum prints them"},
    ),
]
HookSource = Annotated[
    str,
    Field(
        pattern=r"^(s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[A-Za-z0-9!_.()/=+@-]+"
        rf"|https?://[A-Za-z0-9.-]+(:{PORT})?/[A-Za-z0-9_.~/?=&%+@-]*)$",
        json_schema_extra={"x-expected": "like s3://bucket/key or https://host/path"},
    ),
]
HookArgument = Annotated[
    str,
    Field(
        pattern=r"^[^\x00-\x1f\x7f\"'\\$`]{1,256}$",
        json_schema_extra={"x-expected": "text without quotes, \\, $ and `"},
    ),
]


def _short(text: str) -> str:
    if len(text) > INLINE_MAX_CHARS:
        most = f"user data takes {INLINE_MAX_CHARS} of a script"
        raise ValueError(f"has {len(text)} characters, {most}: put it into S3, as source")
    return text


@frozen
class Hook:
    """A script to run as root. `source`: where it is; "": it is `inline`. `sha256` "": unknown."""

    source: str
    inline: str
    sha256: str
    timeout_s: int
    args: tuple[str, ...]


@frozen
class NodeHooks:
    """The scripts of a pool's nodes, in their order."""

    on_node_start: tuple[Hook, ...] = ()
    on_node_configured: tuple[Hook, ...] = ()

    @property
    def all(self) -> tuple[Hook, ...]:
        return (*self.on_node_start, *self.on_node_configured)


class HookModel(Section):
    """A script that runs as root: on a node at each boot, on the head when it changed."""

    source: HookSource | None = Field(
        default=None, description="s3://bucket/key in the cluster's region, or https://..."
    )
    inline: Annotated[str, AfterValidator(_short)] | None = Field(
        default=None, description="the script itself, instead of source; begins with #!"
    )
    sha256: Sha256 | None = Field(
        default=None, description="its checksum; source by http(s) must have one"
    )
    timeout_s: Annotated[int, Field(ge=1, le=3600)] = Field(
        default=300, description="it is ended after that, which counts as a failure"
    )
    args: tuple[HookArgument, ...] = Field(default=(), description="its arguments")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.source is None) == (self.inline is None):
            raise ValueError("needs source or inline: one of the two")
        if self.inline is not None and not self.inline.startswith("#!"):
            raise ValueError("inline: its first line must say what runs it, like #!/bin/bash")
        if self.source and self.source.startswith("http") and not self.sha256:
            raise ValueError("sha256 is missing: what comes by http(s) is run as root")
        if self.inline is not None and self.sha256:
            raise ValueError("sha256: an inline script needs none")
        return self

    def hook(self) -> Hook:
        return Hook(
            self.source or "", self.inline or "", self.sha256 or "", self.timeout_s, self.args
        )


Hooks = Annotated[tuple[HookModel, ...], at_most(HOOKS_MAX)]
OnLoginConfigured = Annotated[
    Hooks, Field(default=(), description="on login nodes, when people can log in")
]


class NodeHooksModel(Section):
    """Scripts that nodes run while they boot; a node whose script fails never joins."""

    on_node_start: Hooks = Field(
        default=(), description="before mounts, GPUs and Slurm, when the packages are there"
    )
    on_node_configured: Hooks = Field(
        default=(), description="when the node is ready, before it joins"
    )

    @property
    def timeout_s(self) -> int:
        """How long all of them may take."""
        return sum(each.timeout_s for each in (*self.on_node_start, *self.on_node_configured))


class HooksModel(NodeHooksModel):
    """Scripts that the boot of a machine runs; those of a pool come after the cluster's."""

    on_head_configured: Hooks = Field(
        default=(), description="on the head, when slurmctld and the agent run"
    )
    on_login_configured: OnLoginConfigured = ()


def node_hooks(*models: NodeHooksModel) -> NodeHooks:
    """Those of the first, then those of the second."""
    return NodeHooks(
        tuple(each.hook() for model in models for each in model.on_node_start),
        tuple(each.hook() for model in models for each in model.on_node_configured),
    )
