"""What a cluster keeps: its ledger, its digest, its Munge key, its files and its head's data."""

from collections.abc import Mapping, Sequence

from aws_cdk import CfnDeletionPolicy, CfnResource, CfnTag, Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from cdk.acknowledged import acknowledge
from cdk.statements import ec2_arn
from tidegate.wire.config import ClusterFile
from tidegate.wire.records import OPEN, OPEN_INDEX

# munged takes keys of 32 to 1024 bytes (mungekey(8)).
MUNGE_KEY_BYTES = 1024
DIGEST_KEPT_DAYS = 7
# Longer than any of its reports waits for its page.
ACCOUNTING_KEPT_DAYS = 35
# As long as the bill that a page is of.
REPORTS_KEPT_DAYS = 400
KEPT_DAYS = {
    "digest/": DIGEST_KEPT_DAYS,
    "decisions/": DIGEST_KEPT_DAYS,
    "accounting/": ACCOUNTING_KEPT_DAYS,
    "reports/": REPORTS_KEPT_DAYS,
}


class Storage(Construct):
    """Nothing of it goes with its stack: what a person wants gone, that person deletes.

    It knows no network, so that it outlives the one that the cluster was built in.

    `kms_key`: of the account's own, None for AWS's. `backed_up`: ARNs of what cannot be made again.
    `volume_id` None: the head has its own disks.
    """

    table: dynamodb.Table
    bucket: s3.Bucket
    kms_key: str | None
    munge_secret_arn: str
    file_system_id: str
    file_system_arn: str
    volume_id: str | None = None
    backed_up: Sequence[str]

    def __init__(self, scope: Construct, id: str, *, file: ClusterFile) -> None:
        super().__init__(scope, id)
        cluster, existing = file.cluster.name, file.existing
        self.kms_key = file.kms_key
        self.digest_key = f"digest/{cluster}.json.gz"
        self.verdicts_key = f"decisions/{cluster}/latest.json.gz"
        self.table = self._ledger()
        self.bucket = self._digests()
        self.munge_secret_arn = existing.munge_secret or self._munge_secret(file)
        backed_up: list[str] = []
        if existing.file_system:
            self.file_system_id = existing.file_system
            self.file_system_arn = Stack.of(self).format_arn(
                service="elasticfilesystem",
                resource="file-system",
                resource_name=existing.file_system,
            )
        else:
            self._share_files(file)
            backed_up.append(self.file_system_arn)
        if not existing.head:
            self._data_volume(file)
            backed_up.append(ec2_arn(self, f"volume/{self.volume_id}"))
        self.backed_up = backed_up

    def _ledger(self) -> dynamodb.Table:
        """With an index of what is open: a week of what is finished would cost each look.

        It stays also where the stack's first deployment fails: a way back that had to delete what
        is protected would fail itself. Empty, it costs nothing.
        """
        table = dynamodb.Table(
            self,
            "Ledger",
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute="expires_at",
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        table.add_local_secondary_index(
            index_name=OPEN_INDEX,
            sort_key=dynamodb.Attribute(name=OPEN, type=dynamodb.AttributeType.NUMBER),
        )
        return table

    def _digests(self) -> s3.Bucket:
        """Digest, verdicts, log of decisions, reports; old versions would only cost."""
        bucket = s3.Bucket(
            self,
            "Digests",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            lifecycle_rules=[
                s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(1)),
                *(
                    s3.LifecycleRule(prefix=prefix, expiration=Duration.days(days))
                    for prefix, days in KEPT_DAYS.items()
                ),
            ],
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        acknowledge(
            bucket,
            S1="head and planner alone write it, every minute: an access log would "
            "be larger than the bucket; CloudTrail's data events say who did what",
        )
        return bucket

    def _munge_secret(self, file: ClusterFile) -> str:
        """Made up by Secrets Manager itself, so that no template and no log ever has it."""
        secret = secretsmanager.CfnSecret(
            self,
            "MungeKey",
            description=f"Munge key of cluster {file.cluster.name}",
            kms_key_id=file.kms_key,
            generate_secret_string=secretsmanager.CfnSecret.GenerateSecretStringProperty(
                password_length=MUNGE_KEY_BYTES, exclude_punctuation=True
            ),
        )
        keep_once_made(secret)
        acknowledge(
            secret,
            SMG4="a new key cuts head and nodes apart until every munged has it, so it is changed "
            "in a maintenance window, as docs/recovery.md says",
        )
        return secret.ref

    def _share_files(self, file: ClusterFile) -> None:
        files = efs.CfnFileSystem(
            self,
            "Files",
            encrypted=True,
            kms_key_id=file.kms_key,
            throughput_mode="elastic",
            performance_mode="generalPurpose",
            file_system_tags=[
                efs.CfnFileSystem.ElasticFileSystemTagProperty(
                    key="Name", value=f"tidegate-{file.cluster.name}"
                )
            ],
            file_system_policy=_only_encrypted_and_known(),
        )
        keep_once_made(files)
        self.file_system_id = files.ref
        self.file_system_arn = files.attr_arn

    def _data_volume(self, file: ClusterFile) -> None:
        volume = ec2.CfnVolume(
            self,
            "HeadData",
            availability_zone=file.head_zone,
            size=file.head.volume_gib,
            volume_type="gp3",
            encrypted=True,
            kms_key_id=file.kms_key,
            tags=[CfnTag(key="Name", value=f"tidegate-{file.cluster.name}-head-data")],
        )
        keep_once_made(volume)
        self.volume_id = volume.ref


def keep_once_made(resource: CfnResource) -> None:
    """Neither a deletion of the stack nor a change that needs a new one takes what is in it; and
    nothing is left of a deployment that failed while it made this.

    Source: CloudFormation reference, "DeletionPolicy attribute": what is Retain stays then too,
    empty and paid for; UpdateReplacePolicy knows no such word.
    """
    resource.cfn_options.deletion_policy = CfnDeletionPolicy.RETAIN_EXCEPT_ON_CREATE
    resource.cfn_options.update_replace_policy = CfnDeletionPolicy.RETAIN


def _only_encrypted_and_known() -> Mapping[str, object]:
    """Once there is a policy, clients without a grant by IAM are refused.

    Source: EFS user guide, "Using IAM to control file system data access".
    """
    statement = {
        "Sid": "OnlyEncrypted",
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
        "Action": "*",
        "Resource": "*",
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return {"Version": "2012-10-17", "Statement": [statement]}
