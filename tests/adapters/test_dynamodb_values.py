"""DynamoDB's form of values is boto3's own."""

from decimal import Decimal

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from tidegate.adapters.dynamodb_values import from_dynamodb, to_dynamodb


@pytest.mark.parametrize(
    "value", ["", "text", 0, 7, Decimal("1.5"), Decimal("1732000000.25"), True, False, None]
)
def test_value_has_boto3_s_form_and_comes_back(value):
    written = to_dynamodb(value)

    assert written == TypeSerializer().serialize(value)
    assert from_dynamodb(written) == value == TypeDeserializer().deserialize(written)


@pytest.mark.parametrize("value", [1.5, {"a": 1}, ["a"], b"a"])
def test_what_the_ledger_does_not_hold_is_refused(value):
    with pytest.raises(TypeError, match="the ledger holds no"):
        to_dynamodb(value)


def test_what_it_does_not_hold_is_not_read_either():
    with pytest.raises(TypeError, match="the ledger holds no"):
        from_dynamodb({"M": {}})
