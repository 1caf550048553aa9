"""The section `report` of the cluster file."""

from pydantic import Field

from tidegate.core.offers.periods import Every
from tidegate.wire.section import Section


class ReportModel(Section):
    """A page of what each period cost, in the cluster's bucket."""

    every: Every = Field(
        default=Every.WEEK, description="of what length, in UTC; a week begins on Monday"
    )
