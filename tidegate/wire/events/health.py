"""AWS Health on EC2: scheduled maintenance and retirement, and issues; several instances each.

Schema: AWS Health user guide, "AWS Health events Amazon EventBridge schema". Times are of RFC
1123 ("Sat, 05 Jun 2016 15:10:09 GMT"); a wrong day of the week occurs and is not looked at.
"""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BeforeValidator, Field

from tidegate.core.model.events import HealthCategory, HealthNotice
from tidegate.wire.events.envelope import Wire

DETAIL_TYPE = "AWS Health Event"

_INSTANCE = re.compile(r"i-[0-9a-f]{8,17}")


def _http_date(value: Any) -> Any:
    """The instant, and anything that is none as it came: pydantic says what is wrong."""
    if not isinstance(value, str):
        return value
    try:
        found = parsedate_to_datetime(value)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return value


class _Entity(Wire):
    """Also things that are no instances: those are left out."""

    entity: str = Field(alias="entityValue")


class _Detail(Wire):
    service: str
    code: str = Field(alias="eventTypeCode", default="", max_length=200)
    category: HealthCategory = Field(alias="eventTypeCategory")
    starts_at: Annotated[datetime, BeforeValidator(_http_date)] | None = Field(
        alias="startTime", default=None
    )
    status: str = Field(alias="statusCode", default="open")
    entities: tuple[_Entity, ...] = Field(default=(), alias="affectedEntities")


class _Notice(Wire):
    source: Literal["aws.health"]
    time: AwareDatetime | None = None
    detail: _Detail


def parse(fields: object) -> HealthNotice:
    """Events of other services than EC2 are about no instance. Errors: ValidationError."""
    notice = _Notice.model_validate(fields)
    detail = notice.detail
    named = dict.fromkeys(one.entity for one in detail.entities if _INSTANCE.fullmatch(one.entity))
    return HealthNotice(
        tuple(named) if detail.service == "EC2" else (),
        detail.category,
        detail.code,
        detail.starts_at.timestamp() if detail.starts_at else None,
        is_over=detail.status == "closed",
        said_at_s=notice.time.timestamp() if notice.time else None,
    )
