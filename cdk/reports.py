"""Reports: what head, function and people may do in the bucket for them."""

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk import statements
from cdk.acknowledged import acknowledge_rights
from cdk.storage import Storage
from tidegate.wire.records import OPEN_INDEX


class Reports(Construct):
    """A policy for people. `readers_arn`: of it; nobody has it by itself."""

    readers_arn: str

    def __init__(self, scope: Construct, id: str, *, cluster: str, storage: Storage) -> None:
        super().__init__(scope, id)
        bucket_arn = Stack.of(storage).export_value(storage.bucket.bucket_arn)
        may = read_reports(bucket_arn, cluster)
        readers = iam.ManagedPolicy(
            self,
            "Readers",
            description=f"reads the reports of the Tidegate cluster {cluster}",
            statements=list(may),
        )
        acknowledge_rights(readers, may, ())
        self.readers_arn = readers.managed_policy_arn


def hand_in(bucket_arn: str, cluster: str) -> iam.PolicyStatement:
    """Who ran, of the head; it reads none of it back."""
    return statements.statement(
        "HandIn", ["s3:PutObject"], [f"{bucket_arn}/accounting/{cluster}/*"]
    )


def make_reports(table_arn: str, bucket_arn: str, cluster: str) -> Sequence[iam.PolicyStatement]:
    """The ledger is read alone, and pages are written and never read."""
    folders = [f"accounting/{cluster}/", f"reports/{cluster}/"]
    return (
        statements.statement("Bill", ["dynamodb:GetItem", "dynamodb:Query"], [table_arn]),
        statements.statement("Open", ["dynamodb:Query"], [f"{table_arn}/index/{OPEN_INDEX}"]),
        statements.statement(
            "Listed", ["s3:ListBucket"], [bucket_arn], {"StringEquals": {"s3:prefix": folders}}
        ),
        statements.statement(
            "HandedIn", ["s3:GetObject"], [f"{bucket_arn}/accounting/{cluster}/*"]
        ),
        statements.statement("Pages", ["s3:PutObject"], [f"{bucket_arn}/reports/{cluster}/*"]),
    )


def read_reports(bucket_arn: str, cluster: str) -> Sequence[iam.PolicyStatement]:
    """Of people: the pages of this cluster and nothing else in its bucket."""
    below = {"StringLike": {"s3:prefix": f"reports/{cluster}/*"}}
    return (
        statements.statement("Pages", ["s3:GetObject"], [f"{bucket_arn}/reports/{cluster}/*"]),
        statements.statement("Listed", ["s3:ListBucket"], [bucket_arn], below),
    )
