"""What EC2 says of the reservations that are paid for, as it was read last."""

from tidegate.core.model.cluster import Reservation
from tidegate.core.model.frozen import frozen


@frozen
class SeenReservations:
    """Reservations of the groups, and those that the cluster file names, with their present ends.

    `groups`: of which groups something is known, empty ones too. `lost`: EC2 shows what was
    cancelled for a while, and it stays lost when it is shown no more.
    """

    found: tuple[Reservation, ...] = ()  #: those that EC2 shows and still gives
    groups: tuple[str, ...] = ()  #: ARNs of the groups that were read
    at_s: float | None = None  #: when all of it was read, epoch seconds; null: never
    #: what could not be read the last time, or cannot be used; empty: nothing
    troubles: tuple[str, ...] = ()
    #: ids of the cluster file that give no instance any more, or none that Tidegate asks for
    lost: tuple[str, ...] = ()


NONE_SEEN = SeenReservations()
