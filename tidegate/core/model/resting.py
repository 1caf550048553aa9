"""What is not asked of EC2 for a while, since it was refused."""

from tidegate.core.model.ec2 import Cure, Offering
from tidegate.core.model.frozen import frozen


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
