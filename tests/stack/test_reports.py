"""Reports under the deployed policies: handed in by the head, made and told of once, then read."""

import json
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.clients import client_at
from local.stack_world import StackWorld
from tests.stack.story import hand_in
from tests.stack.test_notifications import subscribed
from tests.stack.world import MORNING, WEEK


def reader(world: StackWorld) -> Any:
    """S3 for somebody whose role has the policy that the stack offers, and nothing else."""
    iam, sts = world.cloud.observer("iam"), world.cloud.observer("sts")
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    arn = iam.create_role(RoleName="people", AssumeRolePolicyDocument=document)["Role"]["Arn"]
    policy = world.physical("AWS::IAM::ManagedPolicy")
    iam.attach_role_policy(RoleName="people", PolicyArn=policy)
    given = sts.assume_role(RoleArn=arn, RoleSessionName="ada")["Credentials"]
    keys = (given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
    return client_at(world.cloud.endpoint_url, "s3", *keys)


def test_a_week_is_one_page_that_readers_can_read_and_is_told_of_once(world: StackWorld) -> None:
    heard = subscribed(world)
    world.router.advance_to(MORNING + timedelta(minutes=31))
    assert heard() == []

    hand_in(world)
    for minutes in (62, 93):
        world.router.advance_to(MORNING + timedelta(minutes=minutes))
    assert [each for each in heard() if each[0] == "report-ready"] == [("report-ready", [WEEK])]

    s3, bucket = reader(world), world.physical("AWS::S3::Bucket")
    pages = s3.list_objects_v2(Bucket=bucket, Prefix="reports/stacked/")["Contents"]
    assert [each["Key"].rpartition("/")[2] for each in pages] == [f"{WEEK}.html", f"{WEEK}.told"]
    page = s3.get_object(Bucket=bucket, Key=f"reports/stacked/{WEEK}.html")["Body"].read()
    assert b"<h1>stacked: 2035-11-19 00:00 to 2035-11-26 00:00</h1>" in page
    for key in ("digest/stacked.json.gz", f"accounting/stacked/{WEEK}.gz"):
        with pytest.raises(ClientError, match="AccessDenied"):
            s3.get_object(Bucket=bucket, Key=key)
