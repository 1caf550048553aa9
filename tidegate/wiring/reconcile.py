"""What reconcile works with: the head's hours, and the market's prices."""

from tidegate.adapters.clock import SystemClock
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.adapters.prices import AwsPrices
from tidegate.core.model.frozen import frozen
from tidegate.service.hours import Hours
from tidegate.service.prices import Prices
from tidegate.wiring.function import Deployed
from tidegate.wiring.hours import hours


@frozen(kw_only=True)
class Reconcile:
    """What reconcile's function works with."""

    hours: Hours
    prices: Prices


def reconcile(deployed: Deployed) -> Reconcile:
    clients, file, clock = deployed.clients, deployed.file, SystemClock()
    return Reconcile(
        hours=hours(deployed),
        prices=Prices(
            cluster=file.cluster,
            feed=AwsPrices(clients("ec2"), clients("pricing"), file.region, clock),
            ledger=DynamoLedger(clients("dynamodb"), deployed.settings.table, clock),
            clock=clock,
        ),
    )
