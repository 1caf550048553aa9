"""A budget of the cluster: a mail when a month's costs come near it."""

from hashlib import sha256

from aws_cdk import aws_budgets as budgets
from constructs import Construct

from tidegate.core.model.ec2 import CLUSTER_TAG
from tidegate.wire.config import ClusterFile

# Percent of the budget: what was spent so far, and what AWS thinks the month will come to.
ALERTS = (("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100))


class BillAlert(Construct):
    """What carries the cluster's tag counts, once the account's payer has activated it.

    Source: Billing user guide, "Activating user-defined cost allocation tags". A budget tells
    and stops nothing: the file's `limits` do that.
    """

    def __init__(self, scope: Construct, id: str, *, file: ClusterFile) -> None:
        super().__init__(scope, id)
        assert file.bill_alert, "the file has an alert"
        cluster = file.cluster.name
        made = budgets.CfnBudget
        made(
            self,
            "Monthly",
            budget=made.BudgetDataProperty(
                # Budgets are the account's, not the region's. Another address replaces the budget,
                # which must not have the old one's name then.
                budget_name=f"tidegate-{cluster}-{file.region}-{_digest(file.bill_alert.email)}",
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=made.SpendProperty(amount=file.bill_alert.usd_per_month, unit="USD"),
                cost_filters={
                    "Region": [file.region],
                    "TagKeyValue": [f"user:{CLUSTER_TAG}${cluster}"],
                },
            ),
            notifications_with_subscribers=[
                made.NotificationWithSubscribersProperty(
                    notification=made.NotificationProperty(
                        comparison_operator="GREATER_THAN",
                        notification_type=kind,
                        threshold=percent,
                        threshold_type="PERCENTAGE",
                    ),
                    subscribers=[
                        made.SubscriberProperty(
                            address=file.bill_alert.email, subscription_type="EMAIL"
                        )
                    ],
                )
                for kind, percent in ALERTS
            ],
        )


def _digest(email: str) -> str:
    return sha256(email.encode()).hexdigest()[:8]
