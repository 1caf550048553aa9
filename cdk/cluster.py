"""The constructs, for CDK apps of one's own as well; `docs/example-app` is one.

source = Source.read(Path("research.yaml"))  # or Source.of(ClusterModel(...))
data = TidegateData(data_stack, "Data", source=source)
TidegateCluster(stack, "Cluster", source=source, data=data, packages=Packages.build(root))
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from aws_cdk import CfnOutput, Tags
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from cdk.alarms import Alarms
from cdk.backups import Backups
from cdk.bill_alert import BillAlert
from cdk.bootstrap import head_host
from cdk.bundles import cluster_suffix
from cdk.chats import Chats
from cdk.dashboard import Dashboard
from cdk.events import Events
from cdk.existing_head import ExistingHead
from cdk.functions import Around, Functions
from cdk.head import Head
from cdk.images import Images
from cdk.login import Login, login_host
from cdk.lustre import mounted_lustre
from cdk.network import Network, construct_id, suffix
from cdk.nodes import Nodes
from cdk.packages import Packages
from cdk.queues import Queues
from cdk.reports import Reports
from cdk.schedules import Hours
from cdk.storage import Storage
from tidegate.core.model.ec2 import CLUSTER_TAG
from tidegate.wire.config import ClusterFile, deployed_text, load_cluster, parse_cluster
from tidegate.wire.deployment import Metrics
from tidegate.wire.login import LoginKind
from tidegate.wire.models import ClusterModel

type Outputs = Mapping[str, tuple[str, str]]
"""Name -> description, value."""


@dataclass(frozen=True, slots=True)
class Source:
    """A cluster as it is described: `text` as it was written, `file` what it means."""

    file: ClusterFile
    text: str

    @classmethod
    def read(cls, path: Path) -> Self:
        """A cluster file. Errors: BadConfig."""
        return cls(load_cluster(path), path.read_text())

    @classmethod
    def of(cls, model: ClusterModel) -> Self:
        """A cluster that a program describes. Errors: BadConfig."""
        text = model.model_dump_json(exclude_unset=True)
        return cls(parse_cluster(text, f"cluster {model.name}"), text)


class TidegateData(Construct):
    """What a cluster keeps. Put it into a stack of its own, with termination protection."""

    storage: Storage

    def __init__(self, scope: Construct, id: str, *, source: Source) -> None:
        super().__init__(scope, id)
        file = source.file
        storage = self.storage = Storage(self, "Storage", file=file)
        if file.backup_days and storage.backed_up:
            Backups(
                self,
                "Backups",
                cluster=file.cluster.name,
                arns=storage.backed_up,
                keep_days=file.backup_days,
            )
        _bound_and_tag(self, file)
        kept: dict[str, tuple[str, str | None]] = {
            "TableName": ("ledger", storage.table.table_name),
            "BucketName": ("bucket of the digest", storage.bucket.bucket_name),
            "FileSystemId": ("shared files", storage.file_system_id),
            "DataVolumeId": ("data volume of the head", storage.volume_id),
            "MungeSecretArn": ("Munge key", storage.munge_secret_arn),
        }
        _tell(self, {name: (said, value) for name, (said, value) in kept.items() if value})


class _Parts(Construct):
    """Everything that can be made again, around a head that is made or there already.

    Errors: ValueError, when the cluster has more pools than user data or a function's
    environment can hold.
    """

    network: Network
    queues: Queues
    events: Events
    nodes: Nodes
    functions: Functions
    alarms: Alarms

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        source: Source,
        data: TidegateData,
        packages: Packages,
    ) -> None:
        super().__init__(scope, id)
        file, storage = source.file, data.storage
        self._images = Images(self, "Images", file=file)
        self.network = Network(self, "Network", file=file)
        self._mounts = (
            () if file.existing.file_system else self.network.mount(storage.file_system_id)
        )
        self._lustre = mounted_lustre(self, file=file, network=self.network)
        self.queues = Queues(self, "Queues")
        self.events = Events(self, "Events", file=file, queues=self.queues)
        self.nodes = Nodes(
            self,
            "Nodes",
            file=file,
            network=self.network,
            storage=storage,
            events=self.events,
            images=self._images,
            mounts=self._mounts,
            lustre=self._lustre,
        )
        if self.network.instance_connect_id:
            said = "Instance Connect endpoint: ec2-instance-connect:OpenTunnel lets people in by it"
            _tell(self, {"InstanceConnectEndpointId": (said, self.network.instance_connect_id)})
        if file.job_roles:
            said = "the role of the nodes, which the roles of jobs must trust"
            _tell(self, {"NodesRoleArn": (said, self.nodes.role.role_arn)})
        self.alarms = Alarms(self, "Alarms", file=file)
        around = Around(
            file=file,
            network=self.network,
            storage=storage,
            queues=self.queues,
            events=self.events,
            nodes=self.nodes,
            cluster_asset=_file_asset(self, source),
            topic_arn=self.alarms.topic.topic_arn if file.notifications else "",
        )
        code = lambda_.Code.from_asset(str(packages.functions))
        self.functions = Functions(self, "Functions", around=around, code=code)
        Hours(self, "Hours", file=file, functions=self.functions, queues=self.queues)
        self.alarms.watch(file, self.functions, self.queues)
        self._dashboard(file)
        self._tell_people(file)
        self._report(file, storage)
        _bound_and_tag(self, file)
        self._tell_what_it_has(head_host(file))

    def _tell_what_it_has(self, host: str) -> None:
        _tell(
            self,
            {
                "BusName": ("bus of the agent's digests", self.events.bus.event_bus_name),
                "LookQueueUrl": (
                    "a message here makes the planner look",
                    self.queues.looks.queue_url,
                ),
                "HeadHost": ("name of the head for nodes and users", host),
                "AlarmTopic": ("subscribe to hear of alarms", self.alarms.topic.topic_arn),
            },
        )

    def _tell_people(self, file: ClusterFile) -> None:
        if file.notifications:
            Chats(self, "Chats", file=file, topic=self.alarms.topic)
        if file.bill_alert:
            BillAlert(self, "BillAlert", file=file)

    def _report(self, file: ClusterFile, storage: Storage) -> None:
        if file.report:
            made = Reports(self, "Reports", cluster=file.cluster.name, storage=storage)
            said = "attach this policy to the roles of people who shall read the reports"
            _tell(self, {"ReportReadersPolicyArn": (said, made.readers_arn)})

    def _dashboard(self, file: ClusterFile) -> None:
        if file.metrics is Metrics.FULL:
            Dashboard(
                self,
                "Dashboard",
                file=file,
                alarm_arns=self.alarms.arns,
                functions=self.functions,
                queues=self.queues,
            )


class TidegateCluster(_Parts):
    """A whole cluster: the autoscaler, and the head that it works for.

    Errors: as `_Parts`; ValueError, when the file names an existing head.
    """

    head: Head

    def __init__(
        self, scope: Construct, id: str, *, source: Source, data: TidegateData, packages: Packages
    ) -> None:
        if source.file.existing.head:
            raise ValueError("existing.head: use TidegateAutoscaler for a head that is there")
        super().__init__(scope, id, source=source, data=data, packages=packages)
        self.head = Head(
            self,
            "Head",
            file=source.file,
            network=self.network,
            storage=data.storage,
            queues=self.queues,
            events=self.events,
            image=self._images.of_head,
            mounts=self._mounts,
            lustre=self._lustre,
            agent=packages.agent,
        )
        for kind in source.file.login_kinds:
            self._login(source.file, data.storage, kind)
        head_id = self.head.instance.ref
        self.alarms.watch_head(head_id)
        _tell(
            self,
            {
                "HeadInstanceId": ("head of the cluster", head_id),
                "HeadShell": ("a shell on the head", f"aws ssm start-session --target {head_id}"),
            },
        )

    def _login(self, file: ClusterFile, storage: Storage, kind: LoginKind) -> None:
        login = Login(
            self,
            construct_id(kind),
            file=file,
            kind=kind,
            network=self.network,
            storage=storage,
            events=self.events,
            image=self._images.of_login(kind),
            mounts=self._mounts,
            lustre=self._lustre,
            zone=self.head.zone,
        )
        ids, host = ",".join(each.ref for each in login.instances), login_host(file, kind)
        _tell(
            self,
            {
                f"LoginHost{suffix(kind)}": (f"name of the {kind.words}, inside the network", host),
                f"LoginInstanceIds{suffix(kind)}": (kind.words, ids),
            },
        )


class TidegateAutoscaler(_Parts):
    """The autoscaler for a network, a head and file systems that are there already.

    Errors: as `_Parts`; ValueError, when the file names no existing head.
    """

    head: ExistingHead

    def __init__(
        self, scope: Construct, id: str, *, source: Source, data: TidegateData, packages: Packages
    ) -> None:
        head = source.file.existing.head
        if not head:
            raise ValueError("existing.head: name the head, or use TidegateCluster")
        super().__init__(scope, id, source=source, data=data, packages=packages)
        self.head = ExistingHead(
            self,
            "Head",
            file=source.file,
            storage=data.storage,
            queues=self.queues,
            events=self.events,
            is_head=head,
            agent=packages.agent,
        )
        _tell(self, self.head.to_do)


def _file_asset(scope: Construct, source: Source) -> Asset:
    """The cluster file as the functions read it; its name in S3 is its content's hash."""
    with TemporaryDirectory() as folder:
        cluster = source.file.cluster.name
        file = Path(folder) / f"cluster{cluster_suffix(cluster)}"
        file.write_text(deployed_text(source.text, cluster))
        return Asset(scope, "ClusterFile", path=str(file))


def _bound_and_tag(scope: Construct, file: ClusterFile) -> None:
    """Everything carries the cluster's name, and no role is above what the file allows."""
    for key, value in {**file.tags, CLUSTER_TAG: file.cluster.name}.items():
        Tags.of(scope).add(key, value)
    if file.permissions_boundary:
        bound = iam.ManagedPolicy.from_managed_policy_arn(
            scope, "Boundary", file.permissions_boundary
        )
        iam.PermissionsBoundary.of(scope).apply(bound)


def _tell(scope: Construct, outputs: Outputs) -> None:
    for name, (description, value) in outputs.items():
        CfnOutput(scope, name, value=value, description=description)
