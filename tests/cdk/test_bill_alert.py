"""Mails when a month's costs come near a budget."""

import pytest

from tests.cdk.made import Stack, dev_file, synthesized
from tidegate.core.model.errors import BadConfig


def test_a_budget_counts_what_carries_the_clusters_tag_and_mails_in_time(tmp_path):
    file = dev_file(bill_alert={"usd_per_month": "5000"}, alarm_email="ops@example.org")

    made = synthesized(tmp_path, file)["tidegate-dev"].one("AWS::Budgets::Budget")

    budget = made["Budget"]
    assert budget["BudgetLimit"] == {"Amount": 5000, "Unit": "USD"}
    assert budget["TimeUnit"] == "MONTHLY"
    assert budget["CostFilters"] == {
        "Region": ["us-east-1"],
        "TagKeyValue": ["user:tidegate:cluster$dev"],
    }
    # Budgets are the account's: another region's cluster may have the same name.
    assert budget["BudgetName"].startswith("tidegate-dev-us-east-1-")
    alerts = made["NotificationsWithSubscribers"]
    told = [each["Notification"] for each in alerts]
    assert [(each["NotificationType"], each["Threshold"]) for each in told] == [
        ("ACTUAL", 80),
        ("ACTUAL", 100),
        ("FORECASTED", 100),
    ]
    assert {
        (reader["SubscriptionType"], reader["Address"])
        for each in alerts
        for reader in each["Subscribers"]
    } == {("EMAIL", "ops@example.org")}


def test_a_budget_may_have_a_reader_of_its_own(tmp_path):
    budget = {"usd_per_month": "5000", "email": "money@example.org"}
    file = dev_file(bill_alert=budget, alarm_email="ops@example.org")

    made = synthesized(tmp_path, file)["tidegate-dev"].one("AWS::Budgets::Budget")

    alert = made["NotificationsWithSubscribers"][0]
    assert alert["Subscribers"][0]["Address"] == "money@example.org"


def test_a_budget_that_nobody_hears_of_is_refused(tmp_path):
    with pytest.raises(BadConfig, match=r"bill_alert +email is missing, and so is alarm_email"):
        synthesized(tmp_path, dev_file(bill_alert={"usd_per_month": "5000"}))


def test_there_is_no_budget_unless_asked_for(dev: Stack):
    assert not dev.all("AWS::Budgets::Budget")
