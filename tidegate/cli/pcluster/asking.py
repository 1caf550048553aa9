"""The commands of the AWS CLI that answer what a configuration leaves open.

Sources: AWS CLI command reference: ec2 describe-subnets, describe-capacity-reservations,
describe-network-interfaces; efs describe-mount-targets, describe-mount-target-security-groups; fsx
describe-file-systems, describe-file-caches, describe-volumes; cloudformation
list-stack-resources.
"""

from collections.abc import Sequence

CACHE = "fc-"


def of_subnets(subnets: Sequence[str], what: str) -> str:
    """`what`: VpcId or AvailabilityZone."""
    ids = " ".join(subnets)
    query = f"--query 'Subnets[].[SubnetId,{what}]' --output text"
    return f"`aws ec2 describe-subnets --subnet-ids {ids} {query}`"


def of_reservation(id: str) -> str:
    return f"`aws ec2 describe-capacity-reservations --capacity-reservation-ids {id}`"


def mount_name(id: str) -> str:
    """Of a Lustre file system or a File Cache."""
    if id.startswith(CACHE):
        query = "FileCaches[].LustreConfiguration.MountName"
        return f"`aws fsx describe-file-caches --file-cache-ids {id} --query '{query}'`"
    query = "FileSystems[].LustreConfiguration.MountName"
    return f"`aws fsx describe-file-systems --file-system-ids {id} --query '{query}'`"


def group_of_lustre(id: str) -> str:
    """FSx tells its interfaces alone, and EC2 which groups these are in."""
    asked = "caches --file-cache-ids" if id.startswith(CACHE) else "systems --file-system-ids"
    query = "*[].NetworkInterfaceIds[]"
    inner = f"aws fsx describe-file-{asked} {id} --query '{query}' --output text"
    query = "NetworkInterfaces[].Groups[].GroupId"
    asked = "aws ec2 describe-network-interfaces --network-interface-ids"
    return f"`{asked} $({inner}) --query '{query}'`"


def group_of_efs(id: str) -> str:
    query = "MountTargets[0].MountTargetId"
    inner = f"aws efs describe-mount-targets --file-system-id {id} --query '{query}' --output text"
    return f"`aws efs describe-mount-target-security-groups --mount-target-id $({inner})`"


def path_of_zfs(volume: str) -> tuple[str, str]:
    """Its path, and the host of its file system."""
    query = "Volumes[].[FileSystemId,OpenZFSConfiguration.VolumePath]"
    return _volume(volume, query), "`aws fsx describe-file-systems` tells the DNSName of that id"


def path_of_ontap(volume: str) -> tuple[str, str]:
    """Its path, and the host of its storage virtual machine."""
    of_volume = "[OntapConfiguration.StorageVirtualMachineId,OntapConfiguration.JunctionPath]"
    asked = "aws fsx describe-storage-virtual-machines --query"
    query = "StorageVirtualMachines[].[StorageVirtualMachineId,Endpoints.Nfs.DNSName]"
    host = f"`{asked} '{query}'` tells the name of that machine"
    return _volume(volume, f"Volumes[].{of_volume}"), host


def _volume(volume: str, query: str) -> str:
    return f"`aws fsx describe-volumes --volume-ids {volume} --query '{query}'`"


def made_by_stack(kind: str) -> str:
    """Ids of what the old cluster's stack made, as long as that stack is there."""
    query = f"StackResourceSummaries[?ResourceType=='{kind}'].PhysicalResourceId"
    return f'`aws cloudformation list-stack-resources --stack-name OLD --query "{query}"`'
