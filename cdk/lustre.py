"""FSx for Lustre: made in the head's zone, or there already, which only has to let clients in."""

from collections.abc import Sequence
from itertools import pairwise

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk.region_info import RegionInfo
from constructs import Construct

from cdk.network import Network
from cdk.storage import keep_once_made
from tidegate.wire.config import ClusterFile
from tidegate.wire.data_repositories import DataRepositoryModel
from tidegate.wire.deployment import LustreKind

# Source: FSx for Lustre user guide, "File system access control with Amazon VPC".
PORTS = ((988, 988), (1018, 1023))
# Those of further groups, cut otherwise (989 is open too for that), which makes them other rules to
# EC2: a group keeps its ports when its rules get other logical ids. CloudFormation takes a rule for
# made that is there, and then deletes it as the old one
# (Crown-Commercial-Service/digitalmarketplace-aws#104).
FURTHER = ((988, 989), (1018, 1020), (1021, 1023))
VERSION = "2.15"
# MB/s for each TiB of a persistent one: the smallest that FSx has on SSD.
THROUGHPUT = 125

# What is mounted, where and with which options.
type Mounted = tuple[tuple[str, str, str], ...]


class Lustre(Construct):
    """`target`: what a client mounts.

    It needs a network when it is made, so it is not among what the data stack keeps; it is
    retained when this stack goes, all the same, with what it lives in.
    """

    target: str

    def __init__(self, scope: Construct, id: str, *, file: ClusterFile, network: Network) -> None:
        super().__init__(scope, id)
        assert file.lustre, "the file has a Lustre file system"
        group = network.group(self, "Group", f"Lustre of cluster {file.cluster.name}")
        rules = [*let_lustre(self, network, group, PORTS), *self._let_servers(network, group)]
        made = self._made(file, network.subnets[file.head_zone], group)
        # Source: FSx for Lustre user guide, "Troubleshooting": a file system is refused whose group
        # does not let Lustre through yet; so ParallelCluster's were, now and then, before the rules
        # came first (aws/aws-parallelcluster#6181, pull request 6342).
        made.node.add_dependency(*rules)
        # Where FSx has an interface, EC2 deletes neither group nor subnet nor VPC
        # (DependencyViolation), and the stack's deletion would fail.
        for each in self.node.children:
            if isinstance(each, ec2.CfnSecurityGroup):
                keep_once_made(each)
        network.keep(file.head_zone)
        self._link(made, file.lustre.data_repositories)
        self.target = f"{made.attr_dns_name}@tcp:/{made.attr_lustre_mount_name}"

    def _made(self, file: ClusterFile, subnet_id: str, group: str) -> fsx.CfnFileSystem:
        assert file.lustre
        is_persistent = file.lustre.kind is LustreKind.PERSISTENT
        made = fsx.CfnFileSystem(
            self,
            # Another kind is another file system, which `tidegate diff` then tells.
            "PersistentFiles" if is_persistent else "Files",
            file_system_type="LUSTRE",
            file_system_type_version=VERSION,
            storage_capacity=file.lustre.storage_gib,
            subnet_ids=[subnet_id],
            security_group_ids=[group],
            kms_key_id=file.kms_key if is_persistent else None,
            lustre_configuration=fsx.CfnFileSystem.LustreConfigurationProperty(
                deployment_type="PERSISTENT_2" if is_persistent else "SCRATCH_2",
                per_unit_storage_throughput=THROUGHPUT if is_persistent else None,
                data_compression_type="LZ4",
            ),
        )
        keep_once_made(made)
        return made

    def _let_servers(self, network: Network, group: str) -> Sequence[ec2.CfnSecurityGroupIngress]:
        """Servers open connections among themselves, as long as the file system is there.

        Whose file system was there before has such rules, or FSx would not have made it.
        """
        rules = [
            network.let(self, f"Within{ports[0]}", group, group, ports, "Lustre") for ports in PORTS
        ]
        for each in rules:
            keep_once_made(each)
        return rules

    def _link(self, made: fsx.CfnFileSystem, repositories: Sequence[DataRepositoryModel]) -> None:
        """One after the other, as FSx does them; asked for two at a time it has failed
        (hashicorp/terraform-provider-aws#24678).

        They go with the stack, which leaves the files where they are: CloudFormation deletes an
        association with DeleteDataInFileSystem false (its provider's own source,
        aws-cloudformation/aws-cloudformation-resource-providers-fsx).
        """
        links = [_association(self, made.ref, each) for each in repositories]
        for before, link in pairwise(links):
            link.add_dependency(before)


def mounted_lustre(scope: Construct, *, file: ClusterFile, network: Network) -> Mounted:
    """What head and nodes mount: the one that the stack makes, and those that are there already,
    into which it lets them where their groups are named.
    """
    rows: list[tuple[str, str, str]] = []
    if file.lustre:
        made = Lustre(scope, "Lustre", file=file, network=network)
        rows.append((made.target, file.lustre.directory, ""))
    there = [each for each in file.file_systems if each.kind == "lustre"]
    groups = list(dict.fromkeys(each.security_group for each in there if each.security_group))
    if groups and not file.lustre:
        # The logical ids of `lustre.existing`, which stacks may still have.
        first, *groups = groups
        let_lustre(Construct(scope, "Lustre"), network, first, PORTS)
    for group in groups:
        let_lustre(scope, network, group, FURTHER, f"Lustre{group}")
    # FSx names its file systems like its own endpoints in each partition.
    domain = RegionInfo.get(file.region).domain_suffix
    for each in there:
        target = f"{each.source}.fsx.{file.region}.{domain}@tcp:/{each.mount_name}"
        rows.append((target, each.directory, ",".join(each.options)))
    return tuple(rows)


def let_lustre(
    scope: Construct,
    network: Network,
    group: str,
    allowed: Sequence[tuple[int, int]],
    prefix: str = "",
) -> Sequence[ec2.CfnSecurityGroupIngress]:
    """Clients and servers open connections to each other.

    Who mounts it boots when that is so.
    """
    clients = {"Head": network.head_group_id, "Nodes": network.node_group_id}
    clients |= network.login_groups
    rules: list[tuple[str, str, str]] = []
    for name, client in clients.items():
        rules += [(f"From{name}", group, client), (f"To{name}", client, group)]
    made = [
        network.let(scope, f"{prefix}{name}{ports[0]}", of, source, ports, "Lustre")
        for name, of, source in rules
        for ports in allowed
    ]
    network.route_out = [*network.route_out, *made]
    return made


def _association(
    scope: Construct, file_system_id: str, repository: DataRepositoryModel
) -> fsx.CfnDataRepositoryAssociation:
    """By its folder's name: another folder is another association.

    What is off is said: CloudFormation asks FSx for no change where S3 is left out altogether, and
    what was on would stay on.
    """
    made = fsx.CfnDataRepositoryAssociation
    return made(
        scope,
        f"Repository{repository.path.replace('/', '+')}",
        file_system_id=file_system_id,
        file_system_path=repository.path,
        data_repository_path=f"s3://{repository.s3.rstrip('/')}/",
        batch_import_meta_data_on_create=repository.import_on_create,
        imported_file_chunk_size=repository.imported_file_chunk_mib,
        s3=made.S3Property(
            auto_import_policy=made.AutoImportPolicyProperty(events=list(repository.auto_import)),
            auto_export_policy=made.AutoExportPolicyProperty(events=list(repository.auto_export)),
        ),
    )
