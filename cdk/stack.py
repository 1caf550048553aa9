"""The two stacks of one cluster: what it keeps, and what can be made again at any time."""

from collections.abc import Mapping
from pathlib import Path

from aws_cdk import CfnOutput, Environment, Stack, Tags
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from cdk.alarms import Alarms
from cdk.backups import Backups
from cdk.bootstrap import head_host
from cdk.events import Events
from cdk.functions import Around, Functions
from cdk.head import Head
from cdk.images import Images
from cdk.network import Network
from cdk.nodes import Nodes
from cdk.queues import Queues
from cdk.schedules import Hours
from cdk.storage import Storage
from tidegate.core.ec2 import CLUSTER_TAG
from tidegate.wire.config import ClusterFile


class DataStack(Stack):
    """What a cluster keeps. It is protected, and nothing in it goes when it is deleted."""

    def __init__(self, scope: Construct, *, file: ClusterFile, account: str | None) -> None:
        cluster = file.cluster.name
        super().__init__(
            scope,
            f"tidegate-{cluster}-data",
            env=Environment(account=account, region=file.region),
            description=f"Tidegate: what the Slurm cluster {cluster} keeps",
            termination_protection=True,
        )
        self.storage = Storage(self, "Storage", file=file)
        if file.backup_days:
            Backups(
                self,
                "Backups",
                cluster=cluster,
                storage=self.storage,
                keep_days=file.backup_days,
            )
        _name_and_tell(
            self,
            cluster,
            {
                "TableName": ("ledger", self.storage.table.table_name),
                "BucketName": ("bucket of the digest", self.storage.bucket.bucket_name),
                "FileSystemId": ("shared files", self.storage.file_system_id),
                "DataVolumeId": ("data volume of the head", self.storage.volume_id),
                "MungeSecretArn": ("Munge key", self.storage.munge_secret_arn),
            },
        )


class ClusterStack(Stack):
    """Everything else that one cluster owns. `package`: the functions' code, a zip file.

    Errors: ValueError, when the cluster has more pools than user data or a function's
    environment can hold.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        path: Path,
        file: ClusterFile,
        storage: Storage,
        package: Path,
        account: str | None,
    ) -> None:
        cluster = file.cluster.name
        # Read by the property below, which the constructor of `Stack` may already ask.
        self._zones = list(file.all_zones)
        super().__init__(
            scope,
            f"tidegate-{cluster}",
            env=Environment(account=account, region=file.region),
            description=f"Tidegate: the Slurm cluster {cluster}",
        )
        network = Network(self, "Network", file=file)
        mounts = network.mount(storage.file_system_id)
        queues = Queues(self, "Queues")
        events = Events(self, "Events", cluster=cluster, queues=queues)
        images = Images(self, "Images", file=file)
        nodes = Nodes(
            self,
            "Nodes",
            file=file,
            network=network,
            storage=storage,
            events=events,
            image_id=images.of_nodes,
            mounts=mounts,
        )
        around = Around(
            file=file,
            network=network,
            storage=storage,
            queues=queues,
            events=events,
            nodes=nodes,
            cluster_asset=Asset(self, "ClusterFile", path=str(path)),
        )
        functions = Functions(
            self, "Functions", around=around, code=lambda_.Code.from_asset(str(package))
        )
        head = Head(
            self,
            "Head",
            file=file,
            network=network,
            storage=storage,
            queues=queues,
            events=events,
            image=images.of_head,
            mounts=mounts,
        )
        Hours(self, "Hours", file=file, functions=functions, queues=queues)
        alarms = Alarms(self, "Alarms", file=file, functions=functions, queues=queues)
        _name_and_tell(self, cluster, _found(file, head, queues, events, alarms))

    @property
    def availability_zones(self) -> list[str]:
        """The file's; the CDK would ask AWS for them at synthesis."""
        return self._zones


def _found(
    file: ClusterFile, head: Head, queues: Queues, events: Events, alarms: Alarms
) -> dict[str, tuple[str, str]]:
    """What a person looks for in a deployed cluster: name -> description, value."""
    head_id = head.instance.ref
    return {
        "BusName": ("bus of the agent's digests", events.bus.event_bus_name),
        "LookQueueUrl": ("a message here makes the planner look", queues.looks.queue_url),
        "HeadInstanceId": ("head of the cluster", head_id),
        "HeadShell": ("a shell on the head", f"aws ssm start-session --target {head_id}"),
        "HeadHost": ("name of the head for nodes and users", head_host(file.cluster.name)),
        "AlarmTopic": ("subscribe to it what shall hear of alarms", alarms.topic.topic_arn),
    }


def _name_and_tell(stack: Stack, cluster: str, outputs: Mapping[str, tuple[str, str]]) -> None:
    """Everything carries the cluster's name; what people need is an output."""
    Tags.of(stack).add(CLUSTER_TAG, cluster)
    for name, (description, value) in outputs.items():
        CfnOutput(stack, name, value=value, description=description)
