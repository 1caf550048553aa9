"""DynamoDB's form of values. boto3 has the same, but takes longer to load than all of botocore.

Source: DynamoDB API reference, AttributeValue.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

type Value = str | int | Decimal | bool | None


def to_dynamodb(value: Value) -> dict[str, Any]:
    """{"N": "1.5"} for Decimal("1.5"). Errors: TypeError, for what the ledger does not hold."""
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case int() | Decimal():
            return {"N": str(value)}
        case str():
            return {"S": value}
        case _:
            raise TypeError(f"the ledger holds no {type(value).__name__}: {value!r}")


def from_dynamodb(value: Mapping[str, Any]) -> Value:
    """Numbers are Decimals, since DynamoDB does not tell whole ones from others."""
    match value:
        case {"S": str(text)}:
            return text
        case {"N": str(number)}:
            return Decimal(number)
        case {"BOOL": bool(truth)}:
            return truth
        case {"NULL": True}:
            return None
        case _:
            raise TypeError(f"the ledger holds no such value: {value!r}")
