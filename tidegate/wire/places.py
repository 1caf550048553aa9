"""What AWS and Linux have for their own: regions that exist, folders that are taken, head types."""

import re

from tidegate.core.model.ultraservers import is_in_ultraserver
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.problems import did_you_mean

# Source: botocore's endpoints of EC2, of every partition, November 2026.
REGIONS = frozenset(
    {
        *("af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2"),
        *("ap-northeast-3", "ap-south-1", "ap-south-2", "ap-southeast-1", "ap-southeast-2"),
        *("ap-southeast-3", "ap-southeast-4", "ap-southeast-5", "ap-southeast-6"),
        *("ap-southeast-7", "ca-central-1", "ca-west-1", "cn-north-1", "cn-northwest-1"),
        *("eu-central-1", "eu-central-2", "eu-isoe-west-1", "eu-north-1", "eu-south-1"),
        *("eu-south-2", "eu-west-1", "eu-west-2", "eu-west-3", "eusc-de-east-1", "il-central-1"),
        *("me-central-1", "me-south-1", "mx-central-1", "sa-east-1", "us-east-1", "us-east-2"),
        *("us-gov-east-1", "us-gov-west-1", "us-iso-east-1", "us-iso-west-1", "us-isob-east-1"),
        *("us-isob-west-1", "us-isof-east-1", "us-isof-south-1", "us-west-1", "us-west-2"),
    }
)

# Where CloudFormation cannot make them: a template with one is refused as a whole ("Unrecognized
# resource types"). Source: CloudFormation's resource types by region, as cfn-lint 1.58 has them.
WITHOUT_BUDGETS = frozenset(
    {
        *("af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-3", "ap-south-2"),
        *("ap-southeast-3", "ap-southeast-4", "ap-southeast-5", "ap-southeast-6"),
        *("ap-southeast-7", "ca-west-1", "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2"),
        *("il-central-1", "me-central-1", "mx-central-1", "us-gov-east-1", "us-gov-west-1"),
    }
)
WITHOUT_LUSTRE = frozenset({"ap-southeast-6"})

# On Xen, where EBS volumes are no NVMe devices. Sources: what EC2 says of them
# (DescribeInstanceTypes, Hypervisor); EBS user guide, "Amazon EBS volumes and NVMe".
_ON_XEN = ("c4.", "m4.", "p3.", "r4.", "t2.")

# The system's own (Filesystem Hierarchy Standard 3.0), and those that it keeps state in.
SYSTEM_DIRS = frozenset(
    {
        *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc"),
        *("/root", "/run", "/sbin", "/sys", "/tmp", "/usr", "/var"),
    }
)
# Where Tidegate's bundle and agent are.
OWN_DIR = "/opt/tidegate"
# Over these nothing may be mounted, below them something may.
WHOLE_DIRS = frozenset({"/home", "/opt", "/srv", "/media", "/mnt"})


def is_local_zone(zone: str) -> bool:
    """Whether it is one beside a region, like us-east-1-dfw-2a, and no Availability Zone."""
    return re.fullmatch(r"[a-z]+(-[a-z]+)+-[0-9][a-z]", zone) is None


def region(value: str) -> str:
    """The region. Errors: ValueError, when AWS has none of this name."""
    if value not in REGIONS:
        hint = did_you_mean(value, sorted(REGIONS)) or ", like us-east-1"
        raise ValueError(f"{value} is no region of AWS{hint}")
    return value


def why_no_budget(region: str) -> str:
    """Why a stack can make no budget there; "": it can.

    Source: awslabs/landing-zone-accelerator-on-aws#682: Budgets takes the account's currency alone.
    """
    if region.startswith("cn-"):
        return f"accounts of {region} are billed in CNY, and Budgets takes no other unit"
    return f"CloudFormation makes no budgets in {region}" if region in WITHOUT_BUDGETS else ""


def shared_dir(value: str) -> str:
    """The directory. Errors: ValueError, when mounting there would hide the system's own."""
    top = "/" + value.split("/")[1]
    if top in SYSTEM_DIRS or value in WHOLE_DIRS:
        raise ValueError(
            f"{value} belongs to the system, which a mount would hide; take one of your own,"
            " like /shared"
        )
    if f"{value}/".startswith(f"{OWN_DIR}/"):
        raise ValueError(f"{value} is Tidegate's own; take another one, like /shared")
    return value


def machine_type(value: str) -> str:
    """An instance type. Errors: ValueError, when EC2 has none of this name."""
    known = load_catalogue()
    if is_in_ultraserver(value):
        raise ValueError(f"{value} is a part of an UltraServer, for nodes of a pool alone")
    if value in known:
        return value
    hint = did_you_mean(value, known) or "; take one like m6i.large"
    raise ValueError(f"{value} is not a known instance type{hint}")


def head_type(value: str) -> str:
    """The head's instance type. Errors: ValueError, where it would not find its data volume, which
    the kernel names by its id on NVMe alone; or would be rebooted for ever as it starts.
    """
    if load_catalogue()[value].is_bare_metal:
        raise ValueError(
            f"{value} is bare metal: a head that does not answer for three minutes is rebooted by"
            " its alarm, and it starts for up to 20; take one like m6i.large"
        )
    if value.startswith(_ON_XEN):
        raise ValueError(
            f"{value} is not built on Nitro: the head would never find its data volume there; take"
            " one like m6i.large or t3.medium"
        )
    return value
