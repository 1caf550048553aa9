"""What a cluster keeps. moto drops or changes most of this, so the template is asked."""

from tests.cdk.made import Stack, joined


def test_ledger_forgets_what_expired_can_be_restored_and_costs_nothing_idle(dev: Stack):
    table = dev.one("AWS::DynamoDB::Table")

    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]


def test_digest_bucket_is_private_and_keeps_one_version_for_a_week(dev: Stack):
    bucket = dev.one("AWS::S3::Bucket")

    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert "VersioningConfiguration" not in bucket
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert (rule["ExpirationInDays"], rule["Status"]) == (7, "Enabled")


def test_bucket_and_queues_refuse_plain_http(dev: Stack):
    policies = [*dev.all("AWS::S3::BucketPolicy"), *dev.all("AWS::SQS::QueuePolicy")]
    refused = [
        statement
        for policy in policies
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny"
        and statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}
    ]

    assert len(policies) == 7
    assert len(refused) == 7


def test_munge_key_is_made_by_secrets_manager_and_is_as_long_as_munge_takes(dev: Stack):
    secret = dev.one("AWS::SecretsManager::Secret")

    assert secret["GenerateSecretString"] == {"PasswordLength": 1024, "ExcludePunctuation": True}
    assert "SecretString" not in secret


def test_shared_files_are_encrypted_elastic_and_reachable_in_every_zone(dev: Stack):
    files = dev.one("AWS::EFS::FileSystem")
    targets = dev.all("AWS::EFS::MountTarget")
    subnets = [logical_id for logical_id, _ in dev.resources("AWS::EC2::Subnet")]

    assert files["Encrypted"] is True
    assert files["ThroughputMode"] == "elastic"
    assert sorted(joined(target["SubnetId"]) for target in targets) == [
        f"<{logical_id}>" for logical_id in sorted(subnets)
    ]


def test_shared_files_are_closed_to_clients_without_a_role_and_to_plain_nfs(dev: Stack):
    """Any policy closes the file system to everybody whom no role lets in."""
    (statement,) = dev.one("AWS::EFS::FileSystem")["FileSystemPolicy"]["Statement"]

    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_a_change_that_needs_a_new_one_keeps_the_old_one(dev: Stack):
    for kind in ("AWS::DynamoDB::Table", "AWS::EFS::FileSystem", "AWS::EC2::Volume"):
        ((_, resource),) = dev.resources(kind)
        assert resource["UpdateReplacePolicy"] == "Retain", kind


def test_stack_leaves_nothing_behind_when_it_is_deleted(dev: Stack):
    kept = [
        logical_id
        for logical_id, resource in dev.template["Resources"].items()
        if resource.get("DeletionPolicy", "Delete") != "Delete"
    ]

    assert kept == []
