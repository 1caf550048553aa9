"""What a cluster keeps: its ledger, its digest, its Munge key and its shared files."""

from collections.abc import Mapping

from aws_cdk import CfnDeletionPolicy, CfnResource, Duration, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_efs as efs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from cdk.network import Network

# munged takes keys of 32 to 1024 bytes (mungekey(8)).
MUNGE_KEY_BYTES = 1024
DIGEST_KEPT_DAYS = 7


class Storage(Construct):
    """Everything goes when the stack is deleted, and nothing when a change would replace it."""

    table: dynamodb.Table
    bucket: s3.Bucket
    munge_secret_arn: str
    file_system_id: str
    file_system_arn: str

    def __init__(self, scope: Construct, id: str, *, cluster: str, network: Network) -> None:
        super().__init__(scope, id)
        self.digest_key = f"digest/{cluster}.json.gz"
        self.table = self._ledger()
        self.bucket = self._digests()
        self.munge_secret_arn = self._munge_secret(cluster)
        self._share_files(cluster, network)

    def _ledger(self) -> dynamodb.Table:
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
            removal_policy=RemovalPolicy.DESTROY,
        )
        keep_when_replaced(table)
        return table

    def _digests(self) -> s3.Bucket:
        """One object that is written again and again; old versions of it would only cost."""
        return s3.Bucket(
            self,
            "Digests",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            lifecycle_rules=[
                s3.LifecycleRule(
                    expiration=Duration.days(DIGEST_KEPT_DAYS),
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                )
            ],
            removal_policy=RemovalPolicy.DESTROY,
        )

    def _munge_secret(self, cluster: str) -> str:
        """Made up by Secrets Manager itself, so that no template and no log ever has it."""
        secret = secretsmanager.CfnSecret(
            self,
            "MungeKey",
            description=f"Munge key of cluster {cluster}",
            generate_secret_string=secretsmanager.CfnSecret.GenerateSecretStringProperty(
                password_length=MUNGE_KEY_BYTES, exclude_punctuation=True
            ),
        )
        return secret.ref

    def _share_files(self, cluster: str, network: Network) -> None:
        files = efs.CfnFileSystem(
            self,
            "Files",
            encrypted=True,
            throughput_mode="elastic",
            performance_mode="generalPurpose",
            file_system_tags=[
                efs.CfnFileSystem.ElasticFileSystemTagProperty(
                    key="Name", value=f"tidegate-{cluster}"
                )
            ],
            file_system_policy=_only_encrypted_and_known(),
        )
        keep_when_replaced(files)
        self.file_system_id = files.ref
        self.file_system_arn = files.attr_arn
        self.mount_targets = [
            efs.CfnMountTarget(
                self,
                f"MountTarget{zone}",
                file_system_id=files.ref,
                subnet_id=subnet_id,
                security_groups=[network.file_group_id],
            )
            for zone, subnet_id in network.subnets.items()
        ]


def keep_when_replaced(construct: Construct) -> None:
    """A change that needs a new one must not take what is in the old one with it."""
    resource = construct.node.default_child or construct
    assert isinstance(resource, CfnResource)
    resource.cfn_options.deletion_policy = CfnDeletionPolicy.DELETE
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
