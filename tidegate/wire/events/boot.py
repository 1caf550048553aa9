"""A node is ready, has reset its GPUs, or powers itself off: it gave up while it booted, or its
head is silent.

Schema: ours, `put_event` in userdata/lib.sh. A hint: the node's own role puts it.
"""

from typing import Annotated, Literal

from pydantic import Field

from tidegate.core.model.events import BootFailed, GpuReset, NodeOrphaned, NodeReady
from tidegate.wire.events.envelope import InstanceDetail, Wire

FAILED_DETAIL_TYPE = "BootstrapFailed"
READY_DETAIL_TYPE = "NodeReady"
ORPHANED_DETAIL_TYPE = "NodeOrphaned"
RESET_DETAIL_TYPE = "GpuReset"
SAID_MAX_CHARS = 300
RESET_MAX_CHARS = 200
STAGES_MAX = 50
SILENT_MAX_S = 1e9  # the node counts in nine digits

type _Word = Annotated[str, Field(max_length=100)]


class _Detail(InstanceDetail):
    plan_id: _Word = ""


class _FailedDetail(_Detail):
    stage: _Word
    tail: str = ""


class _Failure(Wire):
    source: Literal["tidegate.node"]
    detail: _FailedDetail


class _Stage(Wire):
    """A line of the node's stages.jsonl; both times in milliseconds, `at_ms` since the boot."""

    stage: _Word
    at_ms: int = Field(ge=0)
    ms: int = Field(ge=0)


class _ReadyDetail(_Detail):
    stages: tuple[_Stage, ...] = Field(max_length=STAGES_MAX)


class _Ready(Wire):
    source: Literal["tidegate.node"]
    detail: _ReadyDetail


class _OrphanedDetail(_Detail):
    silent_s: float = Field(ge=0, le=SILENT_MAX_S)


class _Orphan(Wire):
    source: Literal["tidegate.node"]
    detail: _OrphanedDetail


class _ResetDetail(_Detail):
    took_s: float = Field(default=0.0, ge=0, le=SILENT_MAX_S)
    failed: str = ""


class _Reset(Wire):
    source: Literal["tidegate.node"]
    detail: _ResetDetail


def parse_reset(fields: object) -> GpuReset:
    """Errors: pydantic.ValidationError."""
    detail = _Reset.model_validate(fields).detail
    failed = " ".join(detail.failed.split())[:RESET_MAX_CHARS]
    return GpuReset(detail.instance_id, detail.took_s, failed, detail.plan_id)


def parse_orphaned(fields: object) -> NodeOrphaned:
    """Errors: pydantic.ValidationError."""
    detail = _Orphan.model_validate(fields).detail
    return NodeOrphaned(detail.instance_id, detail.silent_s, detail.plan_id)


def parse_failed(fields: object) -> BootFailed:
    """Errors: pydantic.ValidationError."""
    detail = _Failure.model_validate(fields).detail
    said = " ".join(detail.tail.split())[-SAID_MAX_CHARS:]
    return BootFailed(detail.instance_id, detail.stage, said, detail.plan_id)


def parse_ready(fields: object) -> NodeReady:
    """Errors: pydantic.ValidationError."""
    detail = _Ready.model_validate(fields).detail
    stages = {each.stage: each.ms / 1000 for each in detail.stages}
    took_ms = max((each.at_ms + each.ms for each in detail.stages), default=0)
    return NodeReady(detail.instance_id, detail.plan_id, stages, took_ms / 1000)
