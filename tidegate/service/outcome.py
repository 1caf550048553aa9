"""What became of a plan."""

from dataclasses import dataclass, field

from tidegate.core.model.ec2 import Instance, Refusal


@dataclass(slots=True)
class Outcome:
    """`is_stale`: another planner was faster, nothing more was done. `is_late`: time was up before
    EC2 was asked for all of it. `lacking`: gangs of which a part did not come; EC2 is asked for
    no other part of theirs.
    """

    is_stale: bool = False
    is_late: bool = False
    launched: list[Instance] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    lacking: set[str] = field(default_factory=set)
