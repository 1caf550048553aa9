"""Messages to people by SNS, and what they were told in the ledger's table."""

from typing import TYPE_CHECKING, Any

from tidegate.adapters.aws_errors import aws_call
from tidegate.adapters.ledger_items import key, packed, unpacked
from tidegate.core.model.errors import BadEvent
from tidegate.core.model.frozen import frozen
from tidegate.core.model.notice import Message, Told
from tidegate.wire.notice import encode_message, subject
from tidegate.wire.records import TOLD, decode, encode

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# Not among what looks read: it is asked for only when there is something to tell.
ITEM = "told"


def told(dynamodb: "DynamoDBClient", table: str) -> Told:
    """What people were told as it stands now. Errors: Throttled, NotAuthorized."""
    with aws_call():
        answer = dynamodb.get_item(TableName=table, Key=packed(key(ITEM)), ConsistentRead=True)
    item = unpacked(answer.get("Item", {}))
    try:
        return decode(TOLD, item["body"]) if item else Told()
    except BadEvent:
        # Of another version: better told twice than never.
        return Told()


@frozen
class SnsNotices:
    """One cluster's. Whoever subscribes may choose by the message attribute `code`."""

    dynamodb: "DynamoDBClient"
    sns: Any
    table: str
    topic: str

    def told(self) -> Told:
        return told(self.dynamodb, self.table)

    def publish(self, message: Message) -> None:
        with aws_call():
            self.sns.publish(
                TopicArn=self.topic,
                Subject=subject(message),
                Message=encode_message(message),
                MessageStructure="json",
                MessageAttributes={
                    "code": {"DataType": "String", "StringValue": message.code.value}
                },
            )

    def note(self, told: Told) -> None:
        with aws_call():
            self.dynamodb.put_item(
                TableName=self.table, Item=packed(key(ITEM) | {"body": encode(TOLD, told)})
            )
