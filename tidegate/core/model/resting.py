"""What is not asked of EC2 for a while, since it was refused."""

from tidegate.core.model.ec2 import Cure, Offering
from tidegate.core.model.frozen import frozen

# The code of an offering's rest after EC2 took a node back.
TAKEN_BACK = "spot interruption"


@frozen
class Resting:
    """An offering that EC2 refused; not tried again before `until_s`.

    `pool`: who does not try it, "": nobody does. `template`: of what it was refused; a pool that
    has another one now may try.
    """

    offering: Offering
    until_s: float
    failures: int
    code: str
    message: str
    cure: Cure = Cure.NONE
    pool: str = ""
    template: str = ""

    def stops(self, pool: str) -> bool:
        return self.pool in ("", pool)
