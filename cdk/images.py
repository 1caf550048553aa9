"""The machine images of head and nodes: the file's own, or AWS's newest at deployment."""

from aws_cdk import CfnParameter
from constructs import Construct

from tidegate.wire.config import ClusterFile

# Sources: Canonical, "Find Ubuntu images with SSM"; AWS Deep Learning AMIs, release notes of
# the base image with the NVIDIA driver for Ubuntu 24.04.
HEAD_IMAGE = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"
NODE_IMAGE = (
    "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
)
ROOT_DEVICE = "/dev/sda1"  # Ubuntu's


class Images(Construct):
    """Image ids. As parameters of the stack they cost no call to AWS at synthesis."""

    def __init__(self, scope: Construct, id: str, *, file: ClusterFile) -> None:
        super().__init__(scope, id)
        self.of_head = file.image_id or self._newest("HeadImage", HEAD_IMAGE)
        self.of_nodes = file.image_id or self._newest("NodeImage", NODE_IMAGE)

    def _newest(self, id: str, parameter: str) -> str:
        made = CfnParameter(
            self,
            id,
            type="AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>",
            default=parameter,
            description="SSM parameter that holds the image's id",
        )
        made.override_logical_id(id)
        return made.value_as_string
