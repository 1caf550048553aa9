"""A transaction of DynamoDB does all of it or nothing, though its table is not copied whole."""

from collections.abc import Iterator
from typing import Any

import pytest

from local.cloud import LocalCloud

TABLE = "ledger"
KEYS = {"pk": "HASH", "sk": "RANGE"}


@pytest.fixture(params=[["pk", "sk"], ["pk"]], ids=["two keys", "one key"])
def client(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Of a cloud with a table of three items, each of which holds 1."""
    names: list[str] = request.param
    with LocalCloud() as cloud:
        made = cloud.client("dynamodb")
        made.create_table(
            TableName=TABLE,
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
            KeySchema=[{"AttributeName": name, "KeyType": KEYS[name]} for name in names],
            BillingMode="PAY_PER_REQUEST",
        )
        made.keys = lambda key: {name: {"S": key} for name in names}
        for key in ("a", "b", "c"):
            made.put_item(TableName=TABLE, Item={**made.keys(key), "of": {"M": {"n": {"N": "1"}}}})
        yield made


def held(client: Any) -> dict[str, str]:
    items = client.scan(TableName=TABLE)["Items"]
    return {each["pk"]["S"]: each["of"]["M"]["n"]["N"] for each in items}


def update(client: Any, key: str, **more: Any) -> dict[str, Any]:
    values = {":two": {"N": "2"}, **more.pop("values", {})}
    return {
        "Update": {
            "TableName": TABLE,
            "Key": client.keys(key),
            "UpdateExpression": "SET #of.n = :two",
            "ExpressionAttributeNames": {"#of": "of"},
            "ExpressionAttributeValues": values,
            **more,
        }
    }


def others(client: Any) -> list[dict[str, Any]]:
    """A new item and one that goes."""
    new = {**client.keys("d"), "of": {"M": {"n": {"N": "2"}}}}
    return [
        {"Put": {"TableName": TABLE, "Item": new}},
        {"Delete": {"TableName": TABLE, "Key": client.keys("b")}},
    ]


def test_it_is_done_whole(client: Any) -> None:
    client.transact_write_items(TransactItems=[update(client, "a"), *others(client)])

    assert held(client) == {"a": "2", "c": "1", "d": "2"}


def test_one_whose_condition_fails_changes_nothing_and_a_later_one_does(client: Any) -> None:
    failing = update(client, "c", ConditionExpression="#of.n = :nine", values={":nine": {"N": "9"}})
    with pytest.raises(client.exceptions.TransactionCanceledException):
        client.transact_write_items(TransactItems=[update(client, "a"), *others(client), failing])
    assert held(client) == {"a": "1", "b": "1", "c": "1"}

    client.transact_write_items(TransactItems=[update(client, "a"), *others(client)])

    assert held(client) == {"a": "2", "c": "1", "d": "2"}
