"""What a cluster keeps. moto drops or changes most of this, so the template is asked."""

import json

from tests.cdk.made import Stack, dev_file, joined, synthesized

KEPT = (
    "AWS::DynamoDB::Table",
    "AWS::EC2::Volume",
    "AWS::EFS::FileSystem",
    "AWS::S3::Bucket",
    "AWS::SecretsManager::Secret",
)


def test_ledger_forgets_what_expired_can_be_restored_and_costs_nothing_idle(data: Stack):
    table = data.one("AWS::DynamoDB::Table")

    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]
    (index,) = table["LocalSecondaryIndexes"]
    assert (index["IndexName"], index["Projection"]) == ("open", {"ProjectionType": "ALL"})
    assert index["KeySchema"][1] == {"AttributeName": "open", "KeyType": "RANGE"}


def test_digest_bucket_is_private_and_keeps_one_version_for_a_week(data: Stack):
    bucket = data.one("AWS::S3::Bucket")

    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert "VersioningConfiguration" not in bucket
    rules = bucket["LifecycleConfiguration"]["Rules"]
    assert {each["Status"] for each in rules} == {"Enabled"}
    assert {each["Prefix"] for each in rules if each.get("ExpirationInDays") == 7} == {
        "digest/",
        "decisions/",
    }


def test_bucket_and_queues_refuse_plain_http(dev: Stack, data: Stack):
    policies = [*data.all("AWS::S3::BucketPolicy"), *dev.all("AWS::SQS::QueuePolicy")]
    refused = [
        statement
        for policy in policies
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny"
        and statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}
    ]

    assert len(policies) == 7
    assert len(refused) == 7


def test_munge_key_is_made_by_secrets_manager_and_is_as_long_as_munge_takes(data: Stack):
    secret = data.one("AWS::SecretsManager::Secret")

    assert secret["GenerateSecretString"] == {"PasswordLength": 1024, "ExcludePunctuation": True}
    assert "SecretString" not in secret


def test_shared_files_are_encrypted_elastic_and_reachable_in_every_zone(dev: Stack, data: Stack):
    files = data.one("AWS::EFS::FileSystem")
    targets = dev.all("AWS::EFS::MountTarget")
    subnets = [logical_id for logical_id, _ in dev.resources("AWS::EC2::Subnet")]

    assert files["Encrypted"] is True
    assert files["ThroughputMode"] == "elastic"
    assert sorted(joined(target["SubnetId"]) for target in targets) == [
        f"<{logical_id}>" for logical_id in sorted(subnets)
    ]


def test_shared_files_are_closed_to_clients_without_a_role_and_to_plain_nfs(data: Stack):
    """Any policy closes the file system to everybody whom no role lets in."""
    (statement,) = data.one("AWS::EFS::FileSystem")["FileSystemPolicy"]["Statement"]

    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_what_a_cluster_keeps_stays_when_it_is_deleted_or_would_be_replaced(data: Stack):
    """And goes with a first deployment that fails, but for the table: what is protected cannot be
    deleted, and the way back would fail (docs/deploying.md).
    """
    policies = {kind: resource for kind in KEPT for _, resource in data.resources(kind)}

    assert {kind: each["DeletionPolicy"] for kind, each in policies.items()} == {
        **dict.fromkeys(KEPT, "RetainExceptOnCreate"),
        "AWS::DynamoDB::Table": "Retain",
    }
    assert {each["UpdateReplacePolicy"] for each in policies.values()} == {"Retain"}
    assert data.one("AWS::DynamoDB::Table")["DeletionProtectionEnabled"] is True


def test_only_the_stack_of_what_is_kept_is_protected(dev: Stack, data: Stack):
    artifacts = json.loads((data.folder / "manifest.json").read_text())["artifacts"]

    assert artifacts["tidegate-dev-data"]["properties"]["terminationProtection"] is True
    assert artifacts["tidegate-dev"]["properties"]["terminationProtection"] is False
    assert "tidegate-dev-data" in artifacts["tidegate-dev"]["dependencies"]


def test_the_other_stack_keeps_nothing_and_leaves_nothing_behind(dev: Stack):
    assert [kind for kind in KEPT if dev.all(kind)] == []
    kept = [
        logical_id
        for logical_id, resource in dev.template["Resources"].items()
        if resource.get("DeletionPolicy", "Delete") != "Delete"
    ]
    assert kept == []


def test_what_is_kept_knows_no_network(data: Stack):
    """So a VPC can be left and the cluster built in another one."""
    kinds = {resource["Type"] for resource in data.template["Resources"].values()}

    assert {kind for kind in kinds if kind.startswith("AWS::EC2")} == {"AWS::EC2::Volume"}
    assert "AWS::EFS::MountTarget" not in kinds


def test_files_and_data_of_the_head_are_backed_up_daily(data: Stack):
    ((_, vault),) = data.resources("AWS::Backup::BackupVault")
    (rule,) = data.one("AWS::Backup::BackupPlan")["BackupPlan"]["BackupPlanRule"]
    selection = data.one("AWS::Backup::BackupSelection")["BackupSelection"]
    backed_up = [joined(arn).split("/")[-1] for arn in selection["Resources"]]

    assert vault["DeletionPolicy"] == "RetainExceptOnCreate"
    assert rule["ScheduleExpression"] == "cron(0 3 * * ? *)"
    assert rule["Lifecycle"] == {"DeleteAfterDays": 14}
    assert backed_up == [
        f"<{data.logical_id('StorageFiles', 'AWS::EFS::FileSystem')}.Arn>",
        f"<{data.logical_id('StorageHeadData', 'AWS::EC2::Volume')}>",
    ]


def test_backups_can_be_kept_longer_or_left_out(tmp_path):
    longer = synthesized(tmp_path / "a", dev_file(backup_days="90"))["tidegate-dev-data"]
    without = synthesized(tmp_path / "b", dev_file(backup_days="0"))["tidegate-dev-data"]

    (rule,) = longer.one("AWS::Backup::BackupPlan")["BackupPlan"]["BackupPlanRule"]
    assert rule["Lifecycle"] == {"DeleteAfterDays": 90}
    kinds = {resource["Type"] for resource in without.template["Resources"].values()}
    assert not {kind for kind in kinds if kind.startswith("AWS::Backup")}
    assert without.all("AWS::IAM::Role") == []


def test_outputs_name_what_a_restoration_needs(data: Stack):
    told = {name for name in data.template["Outputs"] if not name.startswith("ExportsOutput")}

    assert told == {"TableName", "BucketName", "FileSystemId", "DataVolumeId", "MungeSecretArn"}
