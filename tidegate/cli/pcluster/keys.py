"""Every key of a ParallelCluster 3 configuration, and what becomes of it here.

Source: the configuration schema of AWS ParallelCluster 3.16, and what of older ones it still takes.
A key is translated, or lost with what that means, or needless; an entry holds for all that is
below it. `[]` stands for a list's entries.
"""

from collections.abc import Mapping
from types import MappingProxyType

from tidegate.core.model.frozen import frozen
from tidegate.wire.root_volume import INCLUDED_IOPS, INCLUDED_MIB_S

VERSION = "3.16"

type Values = tuple[object, ...]


@frozen
class Lost:
    """Has no equivalent. `is_heavy`: without it the cluster is dearer or weaker than before.

    `unless`: values with which nothing is lost.
    """

    code: str
    means: str
    is_heavy: bool = True
    unless: Values = ()


def _light(means: str, *unless: object) -> Lost:
    return Lost("without-harm", means, is_heavy=False, unless=unless)


def _rights(above: str, option: str, *keys: str) -> dict[str, Lost]:
    means = f"the machine's role has Tidegate's own rights; name policies of yours in {option}"
    return {f"{above}.{key}": Lost("rights", means) for key in keys}


OFF = (False,)
MEMORY = _light(
    "memory is given out too: a job without --mem gets its CPUs' share of it, and is ended where it"
    " takes more",
    True,
)
GROUPS = Lost("security-groups", "its machines are in the stack's own group as well")
TAGS = Lost("tags", "tags are the whole cluster's: its nodes alone cannot bear them")
VOLUME = Lost("volume-performance", "root volumes are gp3 with 3,000 IOPS and 125 MiB/s")
SCRATCH = _light("local NVMe is at /scratch", "/scratch")
GPU_CHECK = "the health gate checks GPUs of every node before it joins"
ENCRYPTED = "root volumes are encrypted always"
DESKTOP = Lost("desktop", "no DCV: people have no graphical desktop on it", unless=OFF)
PRIORITY = _light("Slurm weights are the planner's: the cheapest node that fits comes first")
SPEED = Lost("lustre-performance", "the stack's file system has the usual speed, uncompressed SSD")
BACKUPS = Lost("lustre-backups", "FSx makes no backups of it")
KEPT = _light("shared files are kept when the stack is deleted, and are paid for until you delete")
EFS_SPEED = Lost("efs-throughput", "the stack's EFS is elastic: paid by what is read and written")

_QUEUE = "Scheduling.SlurmQueues[]"
_RESOURCE = f"{_QUEUE}.ComputeResources[]"
_ROOT = f"{_QUEUE}.ComputeSettings.LocalStorage"
_SETTINGS = "Scheduling.SlurmSettings"
_LOGIN = "LoginNodes.Pools[]"
_PEOPLE = "DirectoryService"
_EBS, _EFS = "SharedStorage[].EbsSettings", "SharedStorage[].EfsSettings"
_FSX = "SharedStorage[].FsxLustreSettings"
_LINKS = f"{_FSX}.DataRepositoryAssociations[]"
_LINKED_BY = (
    *("FileSystemPath", "DataRepositoryPath", "BatchImportMetaDataOnCreate"),
    *("ImportedFileChunkSize", "AutoImportPolicy", "AutoExportPolicy"),
)

# Read by the translator, which says itself where a value has no equivalent.
TRANSLATED = frozenset(
    {
        *("Region", "Image.Os", "Image.CustomAmi", "Iam.PermissionsBoundary"),
        *("HeadNode.InstanceType", "HeadNode.Image.CustomAmi", "HeadNode.Networking.SubnetId"),
        "HeadNode.Imds.Secured",
        *("HeadNode.Networking.Proxy.HttpProxyAddress", "HeadNode.LocalStorage.RootVolume.Size"),
        *("Scheduling.Scheduler", f"{_SETTINGS}.ScaledownIdletime", f"{_SETTINGS}.Database"),
        *(f"{_SETTINGS}.CustomSlurmSettings", f"{_SETTINGS}.MungeKeySecretArn"),
        *(f"{_QUEUE}.Name", f"{_QUEUE}.CapacityType", f"{_QUEUE}.Image.CustomAmi"),
        *(f"{_QUEUE}.Networking.SubnetIds", f"{_QUEUE}.Networking.PlacementGroup"),
        *(f"{_QUEUE}.Networking.Proxy.HttpProxyAddress", f"{_QUEUE}.CapacityReservationTarget"),
        *(f"{_QUEUE}.CustomSlurmSettings", f"{_QUEUE}.JobExclusiveAllocation"),
        *(f"{_ROOT}.RootVolume.Size", f"{_RESOURCE}.Name", f"{_RESOURCE}.InstanceType"),
        *(f"{_RESOURCE}.Instances[].InstanceType", f"{_RESOURCE}.MinCount"),
        *(f"{_RESOURCE}.MaxCount", f"{_RESOURCE}.Efa.Enabled"),
        f"{_RESOURCE}.DisableSimultaneousMultithreading",
        *(f"{_RESOURCE}.CapacityReservationTarget", f"{_RESOURCE}.Networking.PlacementGroup"),
        *("SharedStorage[].MountDir", "SharedStorage[].Name", "SharedStorage[].StorageType", _EBS),
        *(f"{_EFS}.FileSystemId", f"{_EFS}.KmsKeyId", f"{_FSX}.FileSystemId", f"{_FSX}.KmsKeyId"),
        *("SharedStorage[].FsxOpenZfsSettings", "SharedStorage[].FsxOntapSettings"),
        "SharedStorage[].FileCacheSettings.FileCacheId",
        *(f"{_FSX}.StorageCapacity", f"{_FSX}.DeploymentType", f"{_FSX}.ImportPath"),
        *(f"{_FSX}.ImportedFileChunkSize", f"{_FSX}.ExportPath", f"{_FSX}.AutoImportPolicy"),
        *(f"{_LINKS}.{key}" for key in _LINKED_BY),
        *("Monitoring.Logs.CloudWatch.Enabled", "Monitoring.Logs.CloudWatch.RetentionInDays"),
        *("DevSettings.Timeouts.ComputeNodeBootstrapTimeout", "Tags", "HeadNode.CustomActions"),
        "DevSettings.Timeouts.HeadNodeBootstrapTimeout",
        *("HeadNode.Networking.AdditionalSecurityGroups", f"{_QUEUE}.CustomActions"),
        *(f"{each}.Iam.AdditionalIamPolicies" for each in ("HeadNode", _LOGIN, _QUEUE)),
        *(f"{_QUEUE}.Iam.{each}" for each in ("InstanceRole", "InstanceProfile", "S3Access")),
        *(f"{_QUEUE}.Networking.AdditionalSecurityGroups", f"{_ROOT}.RootVolume.Iops"),
        *(f"{_ROOT}.RootVolume.Throughput", f"{_LOGIN}.Name", f"{_LOGIN}.Count"),
        *(f"{_LOGIN}.InstanceType", f"{_LOGIN}.Image.CustomAmi", f"{_LOGIN}.CustomActions"),
        *(f"{_LOGIN}.Networking.SubnetIds", f"{_LOGIN}.Networking.AdditionalSecurityGroups"),
        *(f"{_LOGIN}.Ssh.AllowedIps", f"{_PEOPLE}.DomainName", f"{_PEOPLE}.DomainAddr"),
        *(f"{_PEOPLE}.DomainReadOnlyUser", f"{_PEOPLE}.PasswordSecretArn"),
        *(f"{_PEOPLE}.LdapTlsCaCert", f"{_PEOPLE}.LdapTlsReqCert"),
        *(f"{_PEOPLE}.LdapAccessFilter", f"{_PEOPLE}.AdditionalSssdConfigs"),
    }
)

LOST: Mapping[str, Lost] = MappingProxyType(
    {
        f"{_LOGIN}.Dcv": DESKTOP,
        **_rights(f"{_LOGIN}.Iam", "policies of login nodes", "InstanceRole", "InstanceProfile"),
        f"{_LOGIN}.GracetimePeriod": _light("a login node that goes does not wait for people"),
        f"{_LOGIN}.Networking.SecurityGroups": GROUPS,
        f"{_LOGIN}.Networking.Proxy.HttpProxyAddress": _light("they go through the head's proxy"),
        "HeadNode.DisableSimultaneousMultithreading": _light("the head keeps its threads", False),
        "HeadNode.Networking.SecurityGroups": GROUPS,
        "HeadNode.Networking.ElasticIp": _light("no fixed address: use Session Manager", False),
        "HeadNode.Ssh": _light(
            "no SSH port and no key pair: people use Session Manager, or network.instance_connect"
        ),
        f"{_LOGIN}.Ssh.KeyName": _light("no EC2 key pair: people bring keys (tidegate user add)"),
        "HeadNode.LocalStorage.RootVolume.VolumeType": Lost(
            VOLUME.code, VOLUME.means, unless=("gp3", "gp2")
        ),
        "HeadNode.LocalStorage.RootVolume.Iops": Lost(
            VOLUME.code, VOLUME.means, unless=(INCLUDED_IOPS,)
        ),
        "HeadNode.LocalStorage.RootVolume.Throughput": Lost(
            VOLUME.code, VOLUME.means, unless=(INCLUDED_MIB_S,)
        ),
        "HeadNode.LocalStorage.RootVolume.DeleteOnTermination": _light(
            "the head's root volume goes with it; its state is on a data volume that stays", True
        ),
        "HeadNode.LocalStorage.EphemeralVolume.MountDir": SCRATCH,
        "HeadNode.Dcv": DESKTOP,
        **_rights("HeadNode.Iam", "head.policies", "InstanceRole", "InstanceProfile", "S3Access"),
        "Scheduling.ScalingStrategy": _light(
            "a job of several nodes gets all of them or none", "all-or-nothing"
        ),
        f"{_SETTINGS}.Dns.HostedZoneId": Lost(
            "dns", "nodes bear their instance ids in EC2's own DNS, not names of this zone"
        ),
        f"{_SETTINGS}.EnableMemoryBasedScheduling": MEMORY,
        f"{_SETTINGS}.CustomSlurmSettingsIncludeFile": Lost(
            "slurm-settings", "its lines are not read: put them into slurm.settings"
        ),
        f"{_SETTINGS}.ExternalSlurmdbd": Lost(
            "accounting", "another slurmdbd is not used: the cluster has one of its own"
        ),
        f"{_ROOT}.RootVolume.VolumeType": Lost(VOLUME.code, VOLUME.means, unless=("gp3", "gp2")),
        f"{_ROOT}.EphemeralVolume.MountDir": SCRATCH,
        f"{_QUEUE}.AllocationStrategy": _light(
            "the planner orders types by expected cost, risk of interruption included"
        ),
        f"{_QUEUE}.Networking.SecurityGroups": GROUPS,
        f"{_QUEUE}.Networking.AssignPublicIp": Lost(
            "public-address", "the subnet alone decides whether nodes get public addresses"
        ),
        f"{_QUEUE}.Tags": TAGS,
        f"{_RESOURCE}.SpotPrice": Lost(
            "spot-price", "spot has no highest price but on-demand's; see limits.usd_per_hour"
        ),
        f"{_RESOURCE}.SchedulableMemory": Lost(
            "memory", "Slurm sees what the type has less a reserve, not this figure"
        ),
        f"{_RESOURCE}.CustomSlurmSettings": Lost(
            "node-settings", "lines for nodes are not written; see labels for Features"
        ),
        f"{_RESOURCE}.Tags": TAGS,
        f"{_RESOURCE}.StaticNodePriority": PRIORITY,
        f"{_RESOURCE}.DynamicNodePriority": PRIORITY,
        f"{_RESOURCE}.LaunchTemplateOverrides": Lost(
            "launch-template", "the stack's own launch templates are used alone"
        ),
        f"{_EFS}.PerformanceMode": Lost(
            EFS_SPEED.code, EFS_SPEED.means, unless=("generalPurpose",)
        ),
        f"{_EFS}.ThroughputMode": EFS_SPEED,
        f"{_EFS}.ProvisionedThroughput": EFS_SPEED,
        f"{_EFS}.AccessPointId": Lost("storage", "the file system's root is mounted instead"),
        f"{_EFS}.DeletionPolicy": Lost(KEPT.code, KEPT.means, is_heavy=False, unless=("Retain",)),
        f"{_FSX}.DeletionPolicy": Lost(KEPT.code, KEPT.means, is_heavy=False, unless=("Retain",)),
        f"{_FSX}.WeeklyMaintenanceStartTime": _light("FSx chooses the time of its maintenance"),
        f"{_FSX}.AutomaticBackupRetentionDays": Lost(BACKUPS.code, BACKUPS.means, unless=(0,)),
        f"{_FSX}.CopyTagsToBackups": _light("there are no backups by FSx", False),
        f"{_FSX}.DailyAutomaticBackupStartTime": BACKUPS,
        f"{_FSX}.PerUnitStorageThroughput": SPEED,
        f"{_FSX}.DriveCacheType": SPEED,
        f"{_FSX}.DataCompressionType": SPEED,
        f"{_FSX}.StorageType": Lost(SPEED.code, SPEED.means, unless=("SSD",)),
        f"{_FSX}.BackupId": Lost("lustre-data", "the file system begins empty, not with a backup"),
        "Monitoring.DetailedMonitoring": _light("EC2's metrics come every five minutes", False),
        "Monitoring.Logs.CloudWatch.DeletionPolicy": _light("logs outlive the stack", "Retain"),
        "Monitoring.Dashboards.CloudWatch.Enabled": _light(
            "a dashboard comes with metrics: full, which is paid by the metric", False
        ),
        "AdditionalPackages": Lost("packages", "Intel's packages come from an image of your own"),
        "Iam.Roles": _light("functions have roles of their own, with the least rights"),
        "Iam.ResourcePrefix": Lost(
            "resource-prefix", "roles have names of their own: a policy by prefix refuses them"
        ),
        f"{_PEOPLE}.GenerateSshKeysForUsers": _light(
            "no key pairs are made: people bring their own, in the directory or their homes", False
        ),
        "Imds.ImdsSupport": _light("IMDSv2 is required: what asks version 1 fails", "v2.0"),
        "CustomS3Bucket": _light("the stack has a bucket of its own"),
        "AdditionalResources": Lost(
            "additional-resources", "the stack does not hold what this template adds"
        ),
        "DevSettings.Cookbook": Lost("packages", "no Chef recipes run: build an image"),
        "DevSettings.AmiSearchFilters": Lost("image", "AWS's own image is used, see image"),
        **{
            f"DevSettings.{key}": _light("has a meaning for ParallelCluster's own code alone")
            for key in (
                *("NodePackage", "ClusterTemplate", "InstanceTypesData", "EfaInterfaceType"),
                *("Timeouts.ComputeInstanceInfoTimeout", "ComputeStartupTimeMetricEnabled"),
            )
        },
        "DeploymentSettings.LambdaFunctionsVpcConfig": Lost(
            "functions-network", "functions run outside of your network"
        ),
        "DeploymentSettings.DefaultUserHome": _light(
            "the system's own user has its home on each machine", "Shared"
        ),
    }
)

NEEDLESS: Mapping[str, str] = MappingProxyType(
    {
        "HeadNode.LocalStorage.RootVolume.Encrypted": ENCRYPTED,
        "HeadNode.SharedStorageType": "Slurm's files and users' come from EFS and a data volume",
        "HeadNode.SharedStorageEfsSettings": "EFS is encrypted always",
        f"{_SETTINGS}.Dns.DisableManagedDns": "nodes have their names from EC2 itself",
        f"{_SETTINGS}.Dns.UseEc2Hostnames": "nodes bear their EC2 instance ids",
        f"{_SETTINGS}.QueueUpdateStrategy": "changed nodes are replaced within disruption.budgets",
        f"{_ROOT}.RootVolume.Encrypted": ENCRYPTED,
        f"{_QUEUE}.HealthChecks": GPU_CHECK,
        f"{_RESOURCE}.HealthChecks": GPU_CHECK,
        f"{_RESOURCE}.Efa.GdrSupport": "GPUDirect RDMA is on where the type has it",
        f"{_LINKS}.Name": "a link is known by its folder",
        f"{_EFS}.Encrypted": "EFS is encrypted always",
        f"{_EFS}.EncryptionInTransit": "EFS is mounted with TLS always",
        f"{_EFS}.IamAuthorization": "EFS is mounted with IAM always",
        "Monitoring.Logs.Rotation": "logs are rotated always",
        "Monitoring.Alarms.Enabled": "alarms are there always; see alarm_email",
        "DeploymentSettings.DisableSudoAccessForDefaultUser": "no user of a job has sudo",
    }
)
