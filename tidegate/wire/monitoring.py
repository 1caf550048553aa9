"""What a cluster file may say about its own monitoring."""

from typing import Annotated

from pydantic import Field

from tidegate.wire.section import Section


class MonitoringModel(Section):
    """Prometheus on the head, with exporters on head and nodes; none when left out."""

    prometheus: bool = Field(
        default=False, description="run Prometheus on the head, with Tidegate's alerts"
    )
    retention_days: Annotated[int, Field(ge=1, le=400)] = Field(
        default=15, description="how long it keeps what it has scraped, of 4 GB at most"
    )
