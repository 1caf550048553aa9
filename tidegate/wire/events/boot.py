"""A node gave up while it booted, and powers itself off.

Schema: ours, `put_event` in userdata/lib.sh. A hint: the node's own role puts it.
"""

from typing import Literal

from pydantic import Field

from tidegate.core.events import BootFailed
from tidegate.wire.events.envelope import InstanceDetail, Wire

DETAIL_TYPE = "BootstrapFailed"
SAID_MAX_CHARS = 300


class _Detail(InstanceDetail):
    stage: str = Field(max_length=100)
    tail: str = ""


class _Failure(Wire):
    source: Literal["tidegate.node"]
    detail: _Detail


def parse(fields: object) -> BootFailed:
    """Errors: pydantic.ValidationError."""
    detail = _Failure.model_validate(fields).detail
    said = " ".join(detail.tail.split())[-SAID_MAX_CHARS:]
    return BootFailed(detail.instance_id, detail.stage, said)
