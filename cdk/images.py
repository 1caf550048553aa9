"""The machine images of head and nodes: the file's own, or AWS's newest."""

from dataclasses import dataclass

from aws_cdk import CfnCondition, CfnParameter, Fn, Token
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from tidegate.core.model.cluster import Pool
from tidegate.wire.catalogue import USUAL_ARCH
from tidegate.wire.config import ClusterFile
from tidegate.wire.image_names import (
    NOT_BAKED,
    UBUNTUS_ROOT,
    UBUNTUS_WORDS,
    baked_image,
    parent_image,
    root_device,
)
from tidegate.wire.login import LoginKind


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadImage:
    """An image's id, or the launch template that finds it: one of the two."""

    root_device: str
    image_id: str | None = None
    template: ec2.CfnInstance.LaunchTemplateSpecificationProperty | None = None


class Images(Construct):
    """They cost no call to AWS at synthesis.

    The nodes' image is looked up at each deployment, as a parameter of the stack: new nodes get
    the newest, and those that run are left alone. With `images` that is the one that was baked
    last, and AWS's until there is one. A parameter's new value would replace the
    head, so the head's image is looked up by EC2 when the head is launched, and never again:
    the template says where to look, which does not change.
    """

    def __init__(self, scope: Construct, id: str, *, file: ClusterFile) -> None:
        super().__init__(scope, id)
        own = file.head.image or file.image_id
        os = "" if file.head.image else file.os
        self._by_arch: dict[str, HeadImage] = {}
        self.of_head = (
            HeadImage(image_id=own, root_device=root_device(os))
            if own
            else self._newest(file.head.arch)
        )
        self._file = file
        self._of_nodes: dict[str, str] = {}

    def of_login(self, kind: LoginKind) -> HeadImage:
        """Of these login nodes: their own, the head's, or AWS's for their architecture."""
        if own := kind.model.image:
            return HeadImage(image_id=own, root_device=root_device(""))
        return self.of_head if self.of_head.image_id else self._newest(kind.model.arch)

    def of_pool(self, pool: Pool) -> str:
        """The image of its nodes: its own, the cluster's own, or AWS's for its architecture."""
        arch = pool.instance_types[0].arch
        if own := self._file.image_of(pool.name):
            return own
        if arch not in self._of_nodes:
            self._of_nodes[arch] = self._looked_up(arch)
        return self._of_nodes[arch]

    def _looked_up(self, arch: str) -> str:
        installs = self._file.installs_driver
        parent = parent_image(arch, self._file.os, installs_driver=installs)
        id = "NodeImage" if arch in UBUNTUS_WORDS else f"NodeImage{arch.capitalize()}"
        newest = self._parameter(id, "AWS::EC2::Image::Id", parent)
        if not self._file.images:
            return newest
        id = id.replace("Node", "Baked")
        # Not checked to be an image, since it may say that there is none.
        last = self._parameter(id, "String", baked_image(self._file.cluster.name, arch))
        is_baked = CfnCondition(
            self,
            f"Is{id}",
            expression=Fn.condition_not(Fn.condition_equals(last, NOT_BAKED)),
        )
        return Token.as_string(Fn.condition_if(is_baked.logical_id, last, newest))

    def _parameter(self, id: str, kind: str, parameter: str) -> str:
        made = CfnParameter(
            self,
            id,
            type=f"AWS::SSM::Parameter::Value<{kind}>",
            default=parameter,
            description="SSM parameter that holds the image's id",
        )
        made.override_logical_id(id)
        return made.value_as_string

    def _newest(self, arch: str) -> HeadImage:
        if arch not in self._by_arch:
            self._by_arch[arch] = self._looked_up_once(arch)
        return self._by_arch[arch]

    def _looked_up_once(self, arch: str) -> HeadImage:
        """Source: EC2 user guide, "Use a Systems Manager parameter instead of an AMI ID"."""
        template = ec2.CfnLaunchTemplate(
            self,
            "Head" if arch == USUAL_ARCH else f"Head{arch.capitalize()}",
            launch_template_data=ec2.CfnLaunchTemplate.LaunchTemplateDataProperty(
                image_id=f"resolve:ssm:{parent_image(arch)}"
            ),
        )
        # Of the head's launch only: a new version of the template must not replace the head. One
        # of another architecture does, by a template of its own: no disk boots on both.
        return HeadImage(
            root_device=UBUNTUS_ROOT,
            template=ec2.CfnInstance.LaunchTemplateSpecificationProperty(
                launch_template_id=template.ref, version="1"
            ),
        )
