"""What reconcile works with: the head's hours, the market's prices, and reservations."""

from tidegate.adapters.clock import SystemClock
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.adapters.prices import AwsPrices
from tidegate.adapters.reservations import AwsReservations
from tidegate.core.model.frozen import frozen
from tidegate.service.hours import Hours
from tidegate.service.prices import Prices
from tidegate.service.reservations import Reservations
from tidegate.wiring.function import Deployed
from tidegate.wiring.hours import hours


@frozen(kw_only=True)
class Reconcile:
    """What reconcile's function works with."""

    hours: Hours
    prices: Prices
    reservations: Reservations


def reconcile(deployed: Deployed) -> Reconcile:
    clients, file, clock = deployed.clients, deployed.file, SystemClock()
    ledger = DynamoLedger(clients("dynamodb"), deployed.settings.table, clock)
    return Reconcile(
        hours=hours(deployed),
        prices=Prices(
            cluster=file.cluster,
            feed=AwsPrices(clients("ec2"), clients("pricing"), file.region, clock),
            ledger=ledger,
            clock=clock,
        ),
        reservations=Reservations(
            cluster=file.cluster,
            feed=AwsReservations(
                clients("ec2"),
                # Each client costs a part of the cold start.
                clients("resource-groups") if file.cluster.reservation_groups else None,
                file.cluster.name,
            ),
            ledger=ledger,
            clock=clock,
        ),
    )
