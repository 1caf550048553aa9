"""Roles of instances: which one an instance has, and the credentials it gets of it."""

import time
from typing import TYPE_CHECKING, Any

from moto.ec2.models.fleets import Fleet

from local.imds import Credentials, local_credentials

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_iam.client import IAMClient
    from mypy_boto3_sts.client import STSClient

# EC2 has new ones five minutes before the old ones end; botocore asks a quarter of an hour before.
_RENEWAL_S = 20 * 60

_MOTO_FLEET = Fleet.__init__


class InstanceRoles:
    """Credentials by STS AssumeRole, under the instance id as the session's name."""

    def __init__(self, ec2: "EC2Client", iam: "IAMClient", sts: "STSClient") -> None:
        self._ec2 = ec2
        self._iam = iam
        self._sts = sts
        self._known: dict[str, Credentials] = {}

    def credentials_of(self, instance_id: str) -> Credentials:
        """Those of the role in the instance's profile, `local_credentials` without a profile."""
        known = self._known.get(instance_id)
        if known is None or known.expires_at_s - time.time() < _RENEWAL_S:
            known = self._known[instance_id] = self._fresh(instance_id)
        return known

    def _fresh(self, instance_id: str) -> Credentials:
        name = self._profile(instance_id)
        if name is None:
            return local_credentials(instance_id)
        found = self._iam.get_instance_profile(InstanceProfileName=name)
        role = found["InstanceProfile"]["Roles"][0]
        made = self._sts.assume_role(RoleArn=role["Arn"], RoleSessionName=instance_id)
        given = made["Credentials"]
        return Credentials(
            role=role["RoleName"],
            access_key_id=given["AccessKeyId"],
            secret_access_key=given["SecretAccessKey"],
            token=given["SessionToken"],
            expires_at_s=given["Expiration"].timestamp(),
        )

    def _profile(self, instance_id: str) -> str | None:
        """The name of its instance profile, if it has one.

        moto leaves that of the launch template out when RunInstances asked for the template.
        """
        answer = self._ec2.describe_instances(InstanceIds=[instance_id])
        instance = answer["Reservations"][0]["Instances"][0]
        if "IamInstanceProfile" in instance:
            return instance["IamInstanceProfile"]["Arn"].rpartition("/")[2]
        tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
        if "aws:ec2launchtemplate:id" not in tags:
            return None
        versions = self._ec2.describe_launch_template_versions(
            LaunchTemplateId=tags["aws:ec2launchtemplate:id"],
            Versions=[tags["aws:ec2launchtemplate:version"]],
        )["LaunchTemplateVersions"]
        profile = versions[0]["LaunchTemplateData"].get("IamInstanceProfile", {})
        return profile.get("Name") or profile.get("Arn", "").rpartition("/")[2] or None


def install_instance_profiles() -> None:
    """Make moto, in this process, heed the instance profile of a fleet's launch template.

    moto drops it. Installing twice is harmless.
    """

    def fleet(self: Fleet, *args: Any, **kwargs: Any) -> None:
        _MOTO_FLEET(self, *args, **kwargs)
        made = [(found["instance"], found["launch_spec"]) for found in self.on_demand_instances]
        made += [(request.instance, request.launch_spec) for request in self.spot_requests]
        for instance, spec in made:
            associations = self.ec2_backend.iam_instance_profile_associations
            if spec and spec.iam_instance_profile and instance.id not in associations:
                # moto has the template's whole answer where the ARN belongs.
                profile: dict[str, str] = spec.iam_instance_profile["Arn"]
                self.ec2_backend.associate_iam_instance_profile(
                    instance.id, profile.get("Name"), profile.get("Arn")
                )

    Fleet.__init__ = fleet  # type: ignore[method-assign]
