"""The stack of one cluster."""

from pathlib import Path
from typing import Any

from aws_cdk import CfnOutput, Environment, Stack, Tags
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from cdk.alarms import Alarms
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


class ClusterStack(Stack):
    """Everything that one cluster owns. `package`: the functions' code, a zip file.

    Errors: ValueError, when the cluster has more pools than user data or a function's
    environment can hold.
    """

    def __init__(
        self, scope: Construct, *, path: Path, file: ClusterFile, package: Path, account: str | None
    ) -> None:
        cluster = file.cluster.name
        # Read by the property below, which the constructor of `Stack` may already ask.
        self._zones = list(file.zones)
        super().__init__(
            scope,
            f"tidegate-{cluster}",
            env=Environment(account=account, region=file.region),
            description=f"Tidegate: the Slurm cluster {cluster}",
        )
        network = Network(self, "Network", file=file)
        storage = Storage(self, "Storage", cluster=cluster, network=network)
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
        self._head = Head(
            self,
            "Head",
            file=file,
            network=network,
            storage=storage,
            queues=queues,
            events=events,
            image_id=images.of_head,
        )
        Hours(self, "Hours", file=file, functions=functions, queues=queues)
        Alarms(self, "Alarms", file=file, functions=functions, queues=queues)
        Tags.of(self).add(CLUSTER_TAG, cluster)
        self._tell(storage, queues, events)

    @property
    def availability_zones(self) -> list[str]:
        """The file's; the CDK would ask AWS for them at synthesis."""
        return self._zones

    def _tell(self, storage: Storage, queues: Queues, events: Events) -> None:
        head_id = self._head.instance.ref
        outputs: dict[str, tuple[str, Any]] = {
            "BusName": ("bus of the agent's digests", events.bus.event_bus_name),
            "TableName": ("ledger", storage.table.table_name),
            "BucketName": ("bucket of the digest", storage.bucket.bucket_name),
            "LookQueueUrl": ("a message here makes the planner look", queues.looks.queue_url),
            "HeadInstanceId": ("head of the cluster", head_id),
            "HeadShell": ("how to get onto the head", f"aws ssm start-session --target {head_id}"),
        }
        for name, (description, value) in outputs.items():
            CfnOutput(self, name, value=value, description=description)
