"""Images that are baked for nodes: a pipeline of EC2 Image Builder for each architecture."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256

from aws_cdk import CfnOutput, CfnTag, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_imagebuilder as builder
from aws_cdk import aws_sns as sns
from aws_cdk import aws_ssm as ssm
from aws_cdk.aws_logs import CfnLogGroup
from constructs import Construct

from cdk import image_rights, statements
from cdk.bundles import read_bundles, store
from cdk.image_rights import IMAGES_TAG
from cdk.vpc import Vpc
from tidegate.wire.compat_facts import INSTALLED_BRANCH
from tidegate.wire.config import ClusterFile
from tidegate.wire.deployment import NetworkModel
from tidegate.wire.image_content import dcgm, needed
from tidegate.wire.image_names import NOT_BAKED, baked_image, parent_image, pipeline_name
from tidegate.wire.images_model import ImagesModel
from userdata.image import BUNDLE, ImageValues, image_component, text_of
from userdata.monitoring import EXPORTER
from userdata.packages import asked_for
from userdata.render import BundleAt, node_bundle
from userdata.repository import repository_with

# The most that a number of a version may be. Source: Image Builder's API, CreateComponent.
_MAX_VERSION = 2**30 - 1
_ALL_VERSIONS = "x.x.x"
_component = builder.CfnImageRecipe.ComponentConfigurationProperty
# Apart from what people choose for their networks: it is never connected to anything.
_CIDR = "192.168.248.0/24"
_POINTER = "AWS::SSM::Parameter"


@dataclass(frozen=True, slots=True)
class Bench:
    """Where images are baked: a subnet with a way out, a group that lets nobody in, and as whom.

    `bundle`: the boot's stages, by which it is done.
    """

    subnet_id: str
    group_id: str
    profile: str
    bundle: BundleAt


class TidegateImages(Construct):
    """A pipeline for each architecture, and the parameter that says what came of it.

    The cluster's stack looks the parameters up, so this must be deployed before it.
    """

    def __init__(self, scope: Construct, id: str, *, file: ClusterFile) -> None:
        super().__init__(scope, id)
        assert file.images, "asked for where the file has them"
        names = {arch: pipeline_name(file.cluster.name, arch) for arch in file.archs}
        subnet_id, group_id = self._place(file)
        bundle = store(self, "Bundle", node_bundle())
        role = statements.role(
            self,
            "Role",
            service="ec2",
            statements=image_rights.build(
                self,
                bundles=read_bundles(self, bundle.bucket),
                names=list(names.values()),
                components=file.images.components,
                repository=repository_with(file.slurm.version, file.slurm.repository(file.os)),
            ),
        )
        profile = iam.CfnInstanceProfile(self, "Profile", roles=[role.role_name])
        bench = Bench(subnet_id, group_id, profile.ref, bundle)
        janitor = statements.role(
            self,
            "EndRole",
            service="imagebuilder",
            statements=image_rights.end_old_images(
                self, cluster=file.cluster.name, names=list(names.values())
            ),
        )
        for arch, name in names.items():
            Pipeline(self, arch, file=file, arch=arch, name=name, bench=bench, janitor=janitor)
        if file.alarm_email:
            self._tell_of_failures(file.cluster.name, file.alarm_email, names.values())
        for key, value in {**file.tags, IMAGES_TAG: file.cluster.name}.items():
            Tags.of(self).add(key, value, exclude_resource_types=[_POINTER])
        if file.permissions_boundary:
            bound = iam.ManagedPolicy.from_managed_policy_arn(
                self, "Boundary", file.permissions_boundary
            )
            iam.PermissionsBoundary.of(self).apply(bound)

    def _tell_of_failures(self, cluster: str, email: str, names: Iterable[str]) -> None:
        """By mail: a build that fails leaves everything as it was, which nobody would see.

        Source: EventBridge events reference, "EC2 Image Builder events".
        """
        topic = sns.Topic(
            self, "Topic", display_name=f"Tidegate {cluster}: images", enforce_ssl=True
        )
        sns.Subscription(
            self, "Email", topic=topic, endpoint=email, protocol=sns.SubscriptionProtocol.EMAIL
        )
        arns = (image_rights.builder_arn(self, f"image/{each}/") for each in names)
        reason = events.EventField.from_path("$.detail.state.reason")
        events.Rule(
            self,
            "Failed",
            description="a build of an image failed",
            event_pattern=events.EventPattern(
                source=["aws.imagebuilder"],
                detail_type=["EC2 Image Builder Image State Change"],
                resources=[each for arn in arns for each in events.Match.prefix(arn)],
                detail={"state": {"status": ["FAILED"]}},
            ),
            targets=[
                targets.SnsTopic(
                    topic,
                    message=events.RuleTargetInput.from_text(
                        f"No image was baked for the nodes of {cluster}: {reason} Nodes go on with"
                        " the last one, or as without. `tidegate image list` shows all of them."
                    ),
                )
            ],
        )

    def _place(self, file: ClusterFile) -> tuple[str, str]:
        """Subnet and group: in the network that the file names, else in one that costs nothing.

        Not in the cluster's own network: what this stack would use of it could not be changed
        any more.
        """
        if file.network.vpc:
            vpc_id, subnet_id = file.network.vpc, file.network.subnets[file.head_zone]
        else:
            own = Vpc(self, "Own", file=replace(file, network=NetworkModel(cidr=_CIDR)))
            Tags.of(own).add("Name", f"tidegate-{file.cluster.name}-images")
            vpc_id, subnet_id = own.vpc_id, own.subnets[file.head_zone]
        said = f"builds of images for cluster {file.cluster.name}"
        group = ec2.CfnSecurityGroup(
            self,
            "Group",
            vpc_id=vpc_id,
            group_description=said,
            tags=[CfnTag(key="Name", value=said)],
        )
        return subnet_id, group.attr_group_id


class Pipeline(Construct):
    """One architecture's: from the parent image to a parameter with the new image's id."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        file: ClusterFile,
        arch: str,
        name: str,
        bench: Bench,
        janitor: iam.Role,
    ) -> None:
        super().__init__(scope, id)
        assert file.images
        self._name, self._tags = name, {**file.tags, IMAGES_TAG: file.cluster.name}
        CfnLogGroup(
            self,
            "Logs",
            log_group_name=image_rights.log_group(name),
            retention_in_days=file.log_days,
        )
        ssm.CfnParameter(
            self,
            "Baked",
            name=baked_image(file.cluster.name, arch),
            type="String",
            # CloudFormation writes the value again with each change of the parameter: so it has
            # nothing that could change, not even tags, or Image Builder's word would be lost.
            value=NOT_BAKED,
            description="the image that was baked last; Image Builder writes it",
        )
        made = builder.CfnImagePipeline(
            self,
            "Pipeline",
            name=name,
            image_recipe_arn=self._recipe(file, arch, bench).attr_arn,
            infrastructure_configuration_arn=self._builder(file.images, arch, bench).attr_arn,
            distribution_configuration_arn=self._distribution(file, arch).attr_arn,
            # Needs the right to write inventory, and says nothing that the recipe does not.
            enhanced_image_metadata_enabled=False,
            schedule=_schedule(file.images.rebuild_days),
        )
        CfnOutput(
            self, "Arn", value=made.attr_arn, description=f"pipeline of images for {arch}"
        ).override_logical_id(f"Pipeline{id.replace('_', '')}")
        self._end_old_ones(file.images.keep, janitor)

    def _recipe(self, file: ClusterFile, arch: str, bench: Bench) -> builder.CfnImageRecipe:
        """A version of its own for each content: Image Builder changes no recipe."""
        assert file.images
        text = text_of(image_component(image_values(file, arch, self._name), in_s3=True))
        parent = f"ssm:{parent_image(arch, file.os, installs_driver=file.installs_driver)}"
        component = builder.CfnComponent(
            self,
            "Component",
            name=self._name,
            platform="Linux",
            version=_version(text),
            data=text,
        )
        told = builder.CfnImageRecipe.ComponentParameterProperty(
            name=BUNDLE, value=[f"s3://{bench.bundle.bucket}/{bench.bundle.key}"]
        )
        return builder.CfnImageRecipe(
            self,
            "Recipe",
            name=self._name,
            version=_version(text, parent, *file.images.components, json.dumps(self._tags)),
            parent_image=parent,
            components=[
                *(_component(component_arn=each) for each in file.images.components),
                _component(component_arn=component.attr_arn, parameters=[told]),
            ],
            ami_tags=self._tags,
        )

    def _builder(
        self, images: ImagesModel, arch: str, bench: Bench
    ) -> builder.CfnInfrastructureConfiguration:
        return builder.CfnInfrastructureConfiguration(
            self,
            "Builder",
            name=self._name,
            instance_types=[images.builder(arch)],
            instance_profile_name=bench.profile,
            subnet_id=bench.subnet_id,
            security_group_ids=[bench.group_id],
            instance_metadata_options=(
                builder.CfnInfrastructureConfiguration.InstanceMetadataOptionsProperty(
                    http_tokens="required", http_put_response_hop_limit=1
                )
            ),
            terminate_instance_on_failure=True,
            resource_tags=self._tags,
        )

    def _distribution(self, file: ClusterFile, arch: str) -> builder.CfnDistributionConfiguration:
        """Source: CloudFormation reference, AWS::ImageBuilder::DistributionConfiguration."""
        distribution = builder.CfnDistributionConfiguration
        return distribution(
            self,
            "Distribution",
            name=self._name,
            distributions=[
                distribution.DistributionProperty(
                    region=file.region,
                    ami_distribution_configuration={
                        "Name": f"{self._name} {{{{ imagebuilder:buildDate }}}}",
                        "AmiTags": self._tags,
                    },
                    ssm_parameter_configurations=[
                        distribution.SsmParameterConfigurationProperty(
                            parameter_name=baked_image(file.cluster.name, arch), data_type="text"
                        )
                    ],
                )
            ],
        )

    def _end_old_ones(self, keep: int, janitor: iam.Role) -> None:
        policy = builder.CfnLifecyclePolicy
        policy(
            self,
            "End",
            name=self._name,
            resource_type="AMI_IMAGE",
            execution_role=janitor.role_arn,
            policy_details=[
                policy.PolicyDetailProperty(
                    action=policy.ActionProperty(
                        type="DELETE",
                        include_resources=policy.IncludeResourcesProperty(
                            amis=True, snapshots=True
                        ),
                    ),
                    filter=policy.FilterProperty(type="COUNT", value=keep),
                )
            ],
            resource_selection=policy.ResourceSelectionProperty(
                recipes=[
                    policy.RecipeSelectionProperty(name=self._name, semantic_version=_ALL_VERSIONS)
                ]
            ),
        )


def image_values(file: ClusterFile, arch: str, name: str) -> ImageValues:
    """What the nodes' image of an architecture holds."""
    wanted = [name for name, _ in needed(file)]
    has_exporter = file.monitoring.prometheus and file.os != "al2023"
    asked = asked_for(directory=bool(file.directory), lustre=file.has_lustre, os=file.os)
    return ImageValues(
        cluster=file.cluster.name,
        name=name,
        parent=parent_image(arch, file.os, installs_driver=file.installs_driver),
        os=file.os,
        repository=repository_with(file.slurm.version, file.slurm.repository(file.os)),
        more=(*((EXPORTER,) if has_exporter else ()), *asked),
        containers=file.containers,
        dcgm=dcgm(file, arch),
        driver_branch=INSTALLED_BRANCH if file.installs_driver else "",
        programs=tuple(each for each in wanted if "/" not in each),
        files=tuple(each for each in wanted if "/" in each),
    )


def _schedule(days: int) -> builder.CfnImagePipeline.ScheduleProperty | None:
    """Builds when the parent has changed, whose parameter the recipe names.

    Source: Image Builder's API reference, Schedule: a new value of that parameter counts as an
    update.
    """
    if not days:
        return None
    return builder.CfnImagePipeline.ScheduleProperty(
        schedule_expression=f"rate({days} day{'s' * (days > 1)})",
        pipeline_execution_start_condition="EXPRESSION_MATCH_AND_DEPENDENCY_UPDATES_AVAILABLE",
    )


def _version(*content: str) -> str:
    """The same for the same content: a component or recipe of a name and version cannot change."""
    digest = sha256("\n".join(content).encode()).digest()
    return f"1.0.{int.from_bytes(digest[:4]) & _MAX_VERSION}"
