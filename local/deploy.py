"""Deploys a synthesized assembly (`cdk.out`) into the local cloud, as `cdk deploy` does into AWS.

with LocalCloud() as cloud:
    deployment = deploy(cloud, Path("cdk.out"), "tidegate-dev")
    deployment.outputs["HeadInstanceId"]
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from botocore.config import Config
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ssm.models import Parameter

from local.clients import REGION, client_at
from local.cloud import LocalCloud
from local.shims.install import install_shims
from local.shims.resource import Place

# Of the bootstrap template; the CDK asks for at least 6.
BOOTSTRAP_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP_VERSION = "30"

# What Canonical and AWS publish, with ids that name no image of theirs.
AMI_PARAMETERS = {
    "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id": (
        "ami-00000000000024040"
    ),
    "/aws/service/canonical/ubuntu/server/24.04/stable/current/arm64/hvm/ebs-gp3/ami-id": (
        "ami-00000000000024042"
    ),
    "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id": (
        "ami-00000000000024041"
    ),
}

# Of whoever signs with a key that moto knows no user or role of.
PLACE = Place(DEFAULT_ACCOUNT_ID, REGION)

# The earliest time a zip file can say.
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


class NotDeployed(Exception):
    """Resources of the template that the local cloud did not make: logical id (type) of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A stack, and those it depends on, as they stand.

    `resources`: logical id -> (type, physical id).
    """

    stack_name: str
    resources: Mapping[str, tuple[str, str]]
    outputs: Mapping[str, str]
    resources_in_template: int

    @property
    def resources_deployed(self) -> int:
        return len(self.resources)

    def physical_ids(self, resource_type: str) -> list[str]:
        """Of all resources of one type, in the order of the template."""
        return [physical for kind, physical in self.resources.values() if kind == resource_type]


def deploy(cloud: LocalCloud, assembly: Path, stack_name: str) -> Deployment:
    """Create the stack, or update it when it exists, and check that nothing of it is missing.

    The stacks that it depends on are deployed before it, as `cdk deploy` does, and are part of
    the answer.

    Raises NotDeployed. A failure inside moto is raised as botocore's ClientError, and moto
    prints its cause.
    """
    install_shims()
    publish_image_parameters()
    _put_parameter(BOOTSTRAP_PARAMETER, BOOTSTRAP_VERSION)
    whole = Deployment(stack_name=stack_name, resources={}, outputs={}, resources_in_template=0)
    formation = _formation(cloud)
    for each in [*dependencies(assembly, stack_name), stack_name]:
        publish_assets(assembly, each)
        _put_stack(formation, assembly, each)
        whole = _joined(whole, describe(each))
    return whole


def dependencies(assembly: Path, stack_name: str) -> list[str]:
    """The stacks that must be there first, in order; none when the assembly has no manifest."""
    manifest = assembly / "manifest.json"
    if not manifest.exists():
        return []
    artifacts = json.loads(manifest.read_text())["artifacts"]
    return [
        each
        for name in artifacts[stack_name].get("dependencies", [])
        if artifacts[name]["type"] == "aws:cloudformation:stack"
        for each in (*dependencies(assembly, name), name)
    ]


def describe(stack_name: str) -> Deployment:
    """One stack as it is deployed now. Raises NotDeployed.

    Read from moto's state: as XML the list of its resources takes longer than to make them.
    """
    stack = PLACE.backend("cloudformation").get_stack(stack_name)
    template = _wanted(stack)
    # Nothing is there for a type that moto does not know.
    known = stack.resource_map.items()
    made = {name: getattr(each, "physical_resource_id", None) or "" for name, each in known}
    missing = [f"{name} ({kind})" for name, kind in template.items() if not made.get(name)]
    if missing:
        raise NotDeployed(", ".join(missing))
    return Deployment(
        stack_name=stack_name,
        resources={name: (kind, made[name]) for name, kind in template.items()},
        outputs={each.key: each.value for each in stack.output_map.values() if each},
        resources_in_template=len(template),
    )


def _put_stack(formation: Any, assembly: Path, stack_name: str) -> None:
    template = (assembly / f"{stack_name}.template.json").read_text()
    known = {each.name for each in PLACE.backend("cloudformation").stacks.values()}
    change = formation.update_stack if stack_name in known else formation.create_stack
    change(StackName=stack_name, TemplateBody=template, Capabilities=["CAPABILITY_NAMED_IAM"])


def _joined(first: Deployment, second: Deployment) -> Deployment:
    assert first.resources.keys().isdisjoint(second.resources), "logical ids of two stacks meet"
    return Deployment(
        stack_name=first.stack_name,
        resources={**first.resources, **second.resources},
        outputs={**first.outputs, **second.outputs},
        resources_in_template=first.resources_in_template + second.resources_in_template,
    )


def destroy(cloud: LocalCloud, stack_name: str) -> None:
    """Delete the stack, except what its template retains."""
    _formation(cloud).delete_stack(StackName=stack_name)


def publish_assets(assembly: Path, stack_name: str) -> None:
    """Put the files and folders of the stack's asset manifest into the buckets it names.

    Put into moto directly: these are megabytes, and nobody watches how they get there.
    """
    manifest = json.loads((assembly / f"{stack_name}.assets.json").read_text())
    s3 = PLACE.backend("s3")
    for file in manifest["files"].values():
        for destination in file["destinations"].values():
            bucket = _resolved(destination["bucketName"])
            if bucket not in s3.buckets:
                s3.create_bucket(bucket, PLACE.region)
            key = _resolved(destination["objectKey"])
            s3.put_object(bucket, key, _body(assembly, file["source"]))


def publish_image_parameters() -> None:
    """The images that AWS has public parameters of in every account.

    Put into moto directly: its API refuses names under /aws, as AWS does.
    """
    for name, value in AMI_PARAMETERS.items():
        _put_parameter(name, value)


def zip_folder(folder: Path) -> bytes:
    """The files of `folder` as a zip that depends on nothing but their names, modes and bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), ZIP_EPOCH)
            entry.external_attr = (path.stat().st_mode & 0o777) << 16
            archive.writestr(entry, path.read_bytes())
    return packed.getvalue()


def _body(assembly: Path, source: Mapping[str, str]) -> bytes:
    path = assembly / source["path"]
    return zip_folder(path) if source["packaging"] == "zip" else path.read_bytes()


def _resolved(text: str) -> str:
    """Manifests of stacks without an account or region of their own hold these two."""
    return text.replace("${AWS::AccountId}", PLACE.account).replace("${AWS::Region}", PLACE.region)


def _put_parameter(name: str, value: str) -> None:
    make: Any = Parameter
    parameter = make(
        account_id=PLACE.account,
        name=name,
        value=value,
        parameter_type="String",
        description=None,
        allowed_pattern=None,
        keyid=None,
        last_modified_date=datetime.now(UTC),
        version=1,
        data_type="aws:ec2:image" if value.startswith("ami-") else "text",
    )
    PLACE.backend("ssm")._parameters[name] = [parameter]


def _wanted(stack: Any) -> dict[str, str]:
    """Logical id -> type of everything in the template whose condition holds."""
    conditions = stack.resource_map.lazy_condition_map
    return {
        name: resource["Type"]
        for name, resource in stack.template_dict["Resources"].items()
        if "Condition" not in resource or conditions[resource["Condition"]]
    }


def _formation(cloud: LocalCloud) -> Any:
    """A client that asks once: a failed deployment must not be tried again in silence."""
    config = Config(read_timeout=120, retries={"total_max_attempts": 1})
    return client_at(cloud.endpoint_url, "cloudformation", "local", config=config)
