"""What is not asked of EC2 for a while: it was refused, or what came of it was no good."""

from tidegate.core.model.ec2 import Cure, Offering
from tidegate.core.model.frozen import frozen

# The code of an offering's rest after EC2 took a node back.
TAKEN_BACK = "spot interruption"


type RestKey = tuple[Offering, str, str]
"""What rests: an offering, for which pool ("": for all), of which of its templates ("": of all)."""


@frozen
class Resting:
    """An offering that EC2 refused, or whose nodes do not boot; not tried again before `until_s`.

    `pool`: who does not try it, "": nobody does. `template`: what the pool's launch or node was
    made from (`Template.name` of a refusal, the digest of a node); a pool that has another one
    now may try.
    """

    offering: Offering
    until_s: float
    failures: int
    code: str
    message: str
    cure: Cure = Cure.NONE
    pool: str = ""
    template: str = ""

    @property
    def key(self) -> RestKey:
        return self.offering, self.pool, self.template

    def stops(self, pool: str) -> bool:
        return self.pool in ("", pool)
