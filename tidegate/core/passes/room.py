"""Where jobs of one plan may start."""

from tidegate.core.buy.bins import Bins
from tidegate.core.buy.steering import Steering
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.model.frozen import frozen


@frozen
class Room:
    """Where jobs of one plan may start: what each node of the `fleet` is good for, what is left of
    it in `bins`, and by `steering` what a start there is worth.
    """

    fleet: Fleet
    bins: Bins
    steering: Steering
