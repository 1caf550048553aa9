"""A head that somebody else deployed: the rights and the words that Tidegate's agent needs there.

Nothing on it is changed. The outputs say what its administrator has to do, once.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from cdk import statements
from cdk.bootstrap import agent_environment, slurm_values
from cdk.events import Events
from cdk.head import agent_names, agent_statements
from cdk.queues import Queues
from cdk.storage import Storage
from tidegate.core.model.ec2 import CLUSTER_TAG, HEAD_ROLE, ROLE_TAG
from tidegate.wire.config import ClusterFile
from tidegate.wire.deployment import ExistingHeadModel
from userdata.render import slurm_conf


class ExistingHead(Construct):
    """`to_do`: name of an output -> what it is for, the command. `agent`: its archive."""

    to_do: dict[str, tuple[str, str]]

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        file: ClusterFile,
        storage: Storage,
        queues: Queues,
        events: Events,
        is_head: ExistingHeadModel,
        agent: Path,
    ) -> None:
        super().__init__(scope, id)
        code = Asset(self, "AgentCode", path=str(agent))
        conf = self._slurm_conf(file)
        environment = agent_environment(file, agent_names(storage, queues, events))
        told = ssm.CfnParameter(
            self,
            "Agent",
            name=f"/tidegate/{file.cluster.name}/agent",
            type="String",
            value="\n".join(f"{name}={value}" for name, value in environment.items()),
            description="the environment of Tidegate's agent",
        )
        arn = Stack.of(self).format_arn(
            service="ssm", resource="parameter", resource_name=f"tidegate/{file.cluster.name}/agent"
        )
        iam.CfnPolicy(
            self,
            "Policy",
            policy_name=f"tidegate-{file.cluster.name}",
            roles=[is_head.role],
            policy_document=iam.PolicyDocument(
                statements=[
                    *agent_statements(file, storage, queues, events),
                    statements.statement("AgentEnvironment", ["ssm:GetParameter"], [arn]),
                    _may_read(conf, code),
                ]
            ),
        )
        tags = f"Key={CLUSTER_TAG},Value={file.cluster.name} Key={ROLE_TAG},Value={HEAD_ROLE}"
        self.to_do = {
            "TagHead": (
                "the head is found by these tags",
                f"aws ec2 create-tags --resources {is_head.instance} --tags {tags}",
            ),
            "SlurmConf": (
                "slurm.conf of the cluster: take its lines over into the head's",
                f"aws s3 cp {conf.s3_object_url} -",
            ),
            "AgentCode": (
                "the agent: unpack it, and run `python3 -s FOLDER` as SlurmUser, 3.12 or 3.13",
                f"aws s3 cp {code.s3_object_url} - | tar -xz -C FOLDER",
            ),
            "AgentEnvironment": (
                "the environment file of tidegate-agent.service on the head",
                f"aws ssm get-parameter --name {told.ref} --query Parameter.Value --output text",
            ),
        }

    def _slurm_conf(self, file: ClusterFile) -> Asset:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "slurm.conf"
            path.write_text(slurm_conf(slurm_values(file)))
            return Asset(self, "SlurmConf", path=str(path))


def _may_read(*assets: Asset) -> iam.PolicyStatement:
    arns = [each.bucket.arn_for_objects(each.s3_object_key) for each in assets]
    return statements.statement("SlurmConf", ["s3:GetObject"], arns)
