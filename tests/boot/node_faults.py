"""What can be wrong with a node, and its last words: the cases of node_world.py."""

import shutil
import subprocess
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from local.boot.cloud import AWS_PORT
from local.boot.machines import LOCAL_NODE
from local.boot.values import A10GX4, SHARED
from local.world import BRIDGE_ADDRESS
from tests.boot import node_mounts as mounts
from tests.boot.node_data import LOADS
from tests.boot.node_exporters import AGENT, DCGM, NEURON_MONITOR
from userdata.containers import Containers
from userdata.image import ARCHIVE_AT, ImageValues
from userdata.render import GpuSettings, Hook, NodeValues, Repository, node_bundle

STUBS = Path(__file__).parent / "stubs"
JOB_ROLE = "arn:aws:iam::123456789012:role/research-jobs"
JOB_ROLES = (("", JOB_ROLE), ("vision", f"{JOB_ROLE}-vision"))
HEALING_PORT = 5002
TAMPERED_KEY = "tampered.tgz"
LOCAL_BIN = Path(__file__).parents[2] / "local" / "bin"
STATE = "/etc/local-gpu"
TO_TEST = "/var/lib/tidegate/to-test"
ENROOT = "/etc/enroot/enroot.conf.d/tidegate.conf"
KERNEL_LOG = "/etc/local-kernel-log"
XID = "NVRM: Xid (PCI:0000:00:1e): {}, pid=1, name=x\n"
NEURON_ERROR = "NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR nd-id=1 nc-id=0 action=TERMINATE_INSTANCE\n"
SXID = "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n"


def stub(name: str) -> str:
    return (STUBS / name).read_text()


@dataclass(frozen=True)
class Fault:
    """What is wrong with a node, and its last words; with "" it becomes ready all the same.

    `key`: where the user data has its bundle in S3, "" for where it is. `free_kib`: on its
    root disk.
    """

    words: str = ""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    values: NodeValues = LOCAL_NODE
    gpus: int = 4
    stores: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    free_kib: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


def shaped(**changes: Any) -> NodeValues:
    return replace(LOCAL_NODE, shapes=(replace(A10GX4, **changes),))


def wanting(**settings: Any) -> NodeValues:
    return replace(LOCAL_NODE, gpu=GpuSettings(**settings))


def inline(script: str, **more: Any) -> Hook:
    """A script that stands in the cluster file."""
    return Hook(f"inline:{b64encode(script.encode()).decode()}", **more)


def hooked(*configured: Hook, start: tuple[Hook, ...] = ()) -> NodeValues:
    return replace(LOCAL_NODE, on_node_start=start, on_node_configured=configured)


HOOKS_BUCKET = "site-hooks"
# What the site's bucket holds: tells its arguments, and that Slurm has not begun.
HOOK = b"""#!/bin/bash
echo "$(pgrep -c -x slurmd) $TIDEGATE_POOL $*" >>/etc/local-hooks
"""
IN_S3 = Hook(f"s3://{HOOKS_BUCKET}/tools/set up.sh".replace(" ", "_"), args=("a b", "c"))
BY_HTTP = Hook(f"http://{BRIDGE_ADDRESS}:{AWS_PORT}/{HOOKS_BUCKET}/open.sh")
FILLS = "dd if=/dev/zero of=/var/fill bs=1M; true"
BRINGS = inline(mounts.BRINGS_LUSTRE)
MARKED = "#!/bin/sh\nmountpoint -q /shared && echo mounted || echo early\n"
EARLY = inline(f"{MARKED.strip()} >>/etc/local-hooks\n")


def mounting(*more: tuple[str, str, str, str], wait_s: int = 300) -> NodeValues:
    return replace(LOCAL_NODE, shared=replace(SHARED, file_systems=more, wait_s=wait_s))


def manager(version: str) -> dict[str, str]:
    """A machine with a fabric manager of this version."""
    return {
        "/usr/bin/nv-fabricmanager": (LOCAL_BIN / "nv-fabricmanager").read_text(),
        "/etc/local-fabric-version": version,
        "/etc/systemd/system/nvidia-fabricmanager.service": (
            LOCAL_BIN / "nvidia-fabricmanager.service"
        ).read_text(),
    }


MOUNT_EFS = (LOCAL_BIN / "mount.efs").read_text()
MOUNT_EFS_AFTER = {"/usr/sbin/local-mount.efs": MOUNT_EFS}
# An image without the EFS mount helper.
LACKING = {"/usr/sbin/mount.efs": ""}
# The same with a package manager that has it, in one of several packages.
UBUNTU = {"/etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\n', **LACKING}
MARKS = {"/usr/bin/apt-mark": stub("apt-mark")}
APT = {**UBUNTU, **MARKS, "/usr/bin/apt-get": stub("apt-get")}
DRIVERLESS = {
    **APT,
    "/usr/bin/nvidia-smi": "",
    "/etc/local-nvidia-smi": (LOCAL_BIN / "nvidia-smi").read_text(),
    "/usr/sbin/modprobe": "#!/bin/sh\n",
}
# AWS's repository with the mount helper.
HELPER_URL = f"http://{BRIDGE_ADDRESS}:{AWS_PORT}/efs-packages"
KEY_URL = f"{HELPER_URL}/efs-utils.gpg"
BAKED = ImageValues("dev", "/x", driver_branch="580", helper_url=HELPER_URL)
INSTALLS = replace(LOCAL_NODE, installs=True, shared=replace(SHARED, helper_url=HELPER_URL))
WITH_LUSTRE = replace(INSTALLS, shared=mounts.with_lustre(INSTALLS.shared, HELPER_URL, KEY_URL))

# Of the Slurm on this machine.
try:
    SAID = subprocess.run(["slurmd", "-V"], capture_output=True, text=True, check=True).stdout
except OSError:
    SAID = "slurm-wlm 23.11.4"  # where no machine can be booted either
RELEASE = SAID.split()[-1].rpartition(".")[0]
# Without its package a machine has no slurmd; the stand-ins of apt and dnf put it back.
SLURMD = shutil.which("slurmd", path="/usr/sbin:/usr/bin") or ""
IS_LINK = Path(SLURMD).is_symlink()
NO_SLURMD = {SLURMD: "", "/etc/local-slurmd": str(Path(SLURMD).resolve())} if IS_LINK else {}
SLURM_URL = "https://packages.example.com/slurm"
SLURM_BUCKET = "slurm-packages"


def jammy(release: str) -> NodeValues:
    repository = Repository(SLURM_URL, KEY_URL, release, "jammy", ("main",))
    return replace(INSTALLS, os="ubuntu22.04", repository=repository)


def in_s3(values: NodeValues, folder: str) -> NodeValues:
    """The same, whose repository and key lie in S3."""
    place = f"s3://{SLURM_BUCKET}/"
    repository = Repository(f"{place}{folder}", f"{place}slurm.asc", RELEASE)
    return replace(values, repository=repository)


UBUNTU_22 = {
    **APT,
    "/etc/os-release": 'ID=ubuntu\nVERSION_ID="22.04"\n',
    "/usr/local/bin/curl": stub("curl-7.81"),
}
SLURMLESS = {**UBUNTU_22, **NO_SLURMD}
# SchedMD's own packages have other names.
SCHEDMD = {
    **SLURMLESS,
    "/usr/bin/apt-cache": "#!/bin/sh\n[ $1 != madison ] || echo $2 | grep ^slurm-smd-\n",
}
AMAZON = replace(
    INSTALLS,
    os="al2023",
    shared=replace(INSTALLS.shared, cuda_url=HELPER_URL),
    driver_branch="580",
    shapes=(replace(A10GX4, has_nvswitch=True),),
    repository=Repository(SLURM_URL, KEY_URL, RELEASE),
)
AL2023 = {
    **DRIVERLESS,
    **NO_SLURMD,
    **manager("580.65.06"),
    "/etc/os-release": 'ID="amzn"\nVERSION_ID="2023"\n',
    "/usr/bin/apt-get": "",
    "/etc/yum.repos.d/amazonlinux.repo": "[amazonlinux]\n",
    "/usr/bin/dnf": stub("dnf"),
    "/usr/bin/rpm": stub("rpm"),
}

MIG = {"/usr/bin/nvidia-mig-parted": stub("nvidia-mig-parted"), **manager("580.65.06")}
MIG_NODE = replace(shaped(instances=7, gpu_type="a10g_1g.3gb"), gpu=GpuSettings(mig="1g.3gb"))
# With NVSwitch, as p4d.24xlarge has it: its links go off as the GPUs are cut.
LAYOUTS = GpuSettings(mig_profiles=("1g.3gb", "3g.12gb"))
LAYOUTS_NODE = replace(shaped(has_nvswitch=True), gpu=LAYOUTS)
HALF = {**MIG, "/etc/local-mig-fails": "1\n"}
LAYOUT = {"tidegate:mig": "3=3g.12gb:1/1g.3gb:4 1=1g.3gb:7"}
MPS = {"/usr/bin/nvidia-cuda-mps-control": stub("nvidia-cuda-mps-control")} | DCGM
PYXIS = dict.fromkeys(
    ("/usr/bin/enroot", "/usr/bin/nvidia-container-cli", "/usr/lib/slurm/spank_pyxis.so"),
    "#!/bin/sh\n# pyxis: importer\n",
)

NEURON_NODE = replace(
    shaped(gpus=2, gpu_type="trainium", gres_name="neuron"),
    installs=True,
    has_exporters=True,
    shared=replace(SHARED, neuron_url=f"http://{BRIDGE_ADDRESS}:{AWS_PORT}/efs-packages/neuron"),
)
# A module that the package brings makes the devices.
NEURON = (
    APT
    | NEURON_MONITOR
    | {
        "/usr/sbin/mount.efs": MOUNT_EFS,
        "/etc/os-release": "ID=ubuntu\nVERSION_ID=24.04\nVERSION_CODENAME=noble\n",
        "/usr/sbin/modinfo": "#!/bin/sh\nexit 1\n",
        "/usr/sbin/modprobe": "#!/bin/sh\n[ $1 != neuron ] || [ ! -e /etc/local-neuron ] ||"
        " { mknod /dev/neuron0 c 1 3; mknod /dev/neuron1 c 1 3; }\n",
    }
)
SSSD = {
    "/etc/sssd/sssd.conf": "[sssd]\n",
    "/etc/systemd/system/sssd.service": "[Service]\nExecStart=/bin/sleep 1000\n",
}

# An image with the stages of this version; those of another; and one made of a machine that ran.
ARCHIVE = node_bundle().tar
RAN = {
    "/opt/tidegate/boot/.is": f"{node_bundle().sha256}\n",
    "/opt/tidegate/boot/boot.sh": "#!/bin/sh\necho tampered with >>/dev/console\n",
}

EFA_THERE = {"/etc/local-efa": "1\n2\n"}
EFA_LATE = {
    "/etc/local-efa": "1\n",
    "/usr/bin/lspci": stub("lspci-late"),
    "/usr/bin/local-lspci": (LOCAL_BIN / "lspci").read_text(),
}

FAULTS = {
    "healthy": Fault(),
    "baked": Fault("", {ARCHIVE_AT: ARCHIVE}, key="is-not-in-S3.tgz"),
    "baked_differs": Fault("", {ARCHIVE_AT: ARCHIVE + b"x"}),
    "baked_ran": Fault("", {ARCHIVE_AT: ARCHIVE, **RAN}, key="is-not-in-S3.tgz"),
    "baked_ubuntu_22": Fault(
        "",
        {**UBUNTU_22, "/usr/sbin/mount.efs": MOUNT_EFS, ARCHIVE_AT: ARCHIVE},
        replace(LOCAL_NODE, os="ubuntu22.04"),
        key="is-not-in-S3.tgz",
    ),
    "gpu_missing": Fault("health failed (exit 78): g5.12xlarge has 4 GPUs; 3 are on", gpus=3),
    "driver_broken": Fault("stage gpu failed", {STATE: "broken=1"}),
    "cannot_tell": Fault(
        "stage health failed", {KERNEL_LOG: "", "/usr/bin/journalctl": "#!/bin/sh\nexit 1\n"}
    ),
    "ecc": Fault("2 uncorrected ECC errors", {STATE: "ecc.errors.uncorrected.volatile.total=2"}),
    "row_remap": Fault("rows of memory could not be remapped", {STATE: "remapped_rows.failure=1"}),
    "slowed_down": Fault("slowed down", {STATE: "clocks_event_reasons.hw_slowdown=Active"}),
    "memory_is_bad": Fault(
        "dcgmi diag -r memory ended with 205, for xid: Xid 48",
        {TO_TEST: "xid: Xid 48\n", "/usr/bin/dcgmi": "#!/bin/sh\nexit 205\n"},
    ),
    "memory_is_well": Fault("", {TO_TEST: "xid: Xid 48\n", "/usr/bin/dcgmi": "#!/bin/sh\n"}),
    "fatal_xid": Fault("Xid 79: GPU has fallen off the bus", {KERNEL_LOG: XID.format(79)}),
    "harmless_xid": Fault("", {KERNEL_LOG: XID.format(31) + XID.format(63) + SXID}),
    "old_driver": Fault("driver 580.65.06; a10g needs 595.10", values=shaped(min_driver="595.10")),
    "fabric_mismatch": Fault(
        "stage fabric failed (exit 78): fabric manager 580.65.05, driver 580.65.06",
        manager("580.65.05"),
        shaped(has_nvswitch=True),
    ),
    "fabric_of_a100": Fault(
        "",
        {**manager("580.65.06"), STATE: "fabric=N/A\nfabric_status=N/A"},
        shaped(has_nvswitch=True),
    ),
    "fabric_equal": Fault("", manager("580.65.06"), shaped(has_nvswitch=True)),
    "efa_too_few": Fault(
        "g5.12xlarge has 2 EFA devices; 1 are there",
        {"/etc/local-efa": "1\n"},
        shaped(efa_devices=2),
    ),
    "efa_late": Fault("", EFA_LATE, shaped(efa_devices=2)),
    "efa_there": Fault("", EFA_THERE, replace(shaped(efa_devices=2), has_exporters=True)),
    "power_limit": Fault("", values=wanting(power_limit_w=250, compute_mode="EXCLUSIVE_PROCESS")),
    "power_refused": Fault(
        "asked for power.limit 250, the GPU has 300",
        {STATE: "keeps=1"},
        wanting(power_limit_w=250),
    ),
    "power_out_of_bounds": Fault(
        "asked for 900 W, the GPU takes 100.00 to 300.00", values=wanting(power_limit_w=900)
    ),
    "mig": Fault("", MIG, MIG_NODE),
    "mig_tool_missing": Fault("the image has no nvidia-mig-parted", values=MIG_NODE),
    "mig_instance_gone": Fault(
        "28 MIG instances expected, gres.conf has 24", {**MIG, STATE: "mig_lost=1"}, MIG_NODE
    ),
    "mig_layout": Fault("", MIG, LAYOUTS_NODE, tags=LAYOUT),
    "mig_layout_unknown": Fault("says '': no layout of 4 GPUs with 1g.3gb", MIG, LAYOUTS_NODE),
    "mig_half_cut": Fault("error creating MIG devices: In use", HALF, LAYOUTS_NODE, tags=LAYOUT),
    "mps": Fault("", MPS, replace(wanting(has_mps=True), has_exporters=True)),
    "mps_missing": Fault("the image has no nvidia-cuda-mps-control", values=wanting(has_mps=True)),
    "pyxis": Fault("", PYXIS, replace(LOCAL_NODE, containers=Containers("pyxis", 14, 200))),
    "pyxis_missing": Fault(
        "the image lacks enroot", values=replace(LOCAL_NODE, containers=Containers("pyxis"))
    ),
    "neuron": Fault("", NEURON, NEURON_NODE, gpus=0),
    "neuron_sick": Fault("device 1 (fatal", {**NEURON, KERNEL_LOG: NEURON_ERROR}, NEURON_NODE, 0),
    "neuron_missing": Fault(
        "the image lacks the Neuron driver", values=replace(NEURON_NODE, installs=False), gpus=0
    ),
    "cloudwatch": Fault("", AGENT, replace(LOCAL_NODE, log_group="/tidegate/dev/nodes")),
    "cloudwatch_missing": Fault(
        "the image has no CloudWatch agent", values=replace(LOCAL_NODE, log_group="/x")
    ),
    "sssd": Fault("", SSSD, replace(LOCAL_NODE, users="sssd")),
    "sssd_missing": Fault("no /etc/sssd/sssd.conf", values=replace(LOCAL_NODE, users="sssd")),
    "scratch": Fault("", {"/usr/sbin/mkfs.xfs": stub("mkfs.xfs")}, stores=1),
    "scratch_of_image": Fault(**LOADS),
    "image_lacks": Fault("stage packages failed (exit 78): the image lacks mount.efs", LACKING),
    "installed": Fault("", APT, INSTALLS),
    "driver_installed": Fault("", DRIVERLESS, replace(INSTALLS, driver_branch="580")),
    "upgradable": Fault("", {"/usr/bin/dpkg-query": stub("dpkg-query"), **MARKS}),
    "ubuntu_22": Fault("", SLURMLESS, jammy(RELEASE)),
    "schedmd_s_packages": Fault("", SCHEDMD, jammy(RELEASE)),
    "another_release": Fault("has no Slurm 19.05 for this system", SLURMLESS, jammy("19.05")),
    "amazon_linux": Fault("", AL2023, AMAZON),
    "slurm_in_s3": Fault("", SLURMLESS, in_s3(jammy(RELEASE), "jammy")),
    "slurm_in_s3_for_dnf": Fault("", AL2023, in_s3(AMAZON, "al2023")),
    "slurm_not_in_s3": Fault(
        "nothing lies under s3://slurm-packages/noble/", UBUNTU_22, in_s3(jammy(RELEASE), "noble")
    ),
    "efs_late": Fault("", {**MOUNT_EFS_AFTER, "/usr/sbin/mount.efs": stub("mount.efs-late")}),
    "efs_never": Fault(
        "stage shared failed (exit 1): Failed to resolve",
        {"/usr/sbin/mount.efs": '#!/bin/sh\necho "Failed to resolve $1" >&2\nexit 1\n'},
        replace(LOCAL_NODE, shared=replace(SHARED, wait_s=2)),
    ),
    "secret_throttled_twice": Fault(
        files={"/usr/local/bin/scontrol": stub("scontrol-deaf")},
        env={"AWS_ENDPOINT_URL_SECRETSMANAGER": f"http://{BRIDGE_ADDRESS}:{HEALING_PORT}"},
    ),
    "apt_locked_once": Fault("", {**APT, "/etc/local-apt": "locked=1"}, INSTALLS),
    "package_missing": Fault("", {**APT, "/etc/local-apt": "unknown=mdadm"}, INSTALLS),
    "tampered": Fault("1 computed checksum did NOT match", key=TAMPERED_KEY),
    "more_file_systems": Fault(
        "",
        {
            "/usr/sbin/mount.nfs": mounts.MOUNT_NFS,
            "/usr/sbin/mount.s3files": stub("mount.s3files"),
            "/usr/bin/mount-s3": stub("mount-s3"),
        },
        mounting(("efs", "fs-0a1b2c3d", "/data", ""), mounts.NAS, mounts.LAKE, mounts.SETS),
    ),
    "lustre": Fault("", APT | mounts.LUSTRELESS, WITH_LUSTRE),
    "lustre_without_module": Fault(
        "AWS's packages have no Lustre module for kernel", APT | mounts.NO_MODULE, WITH_LUSTRE
    ),
    "lustre_by_hook": Fault(
        "", APT | mounts.NO_MODULE, replace(WITH_LUSTRE, on_node_start=(BRINGS,))
    ),
    "lustre_brought": Fault(
        "", mounts.LUSTRELESS, replace(WITH_LUSTRE, installs=False, on_node_start=(BRINGS,))
    ),
    "nfs_refuses": Fault(
        "mount.nfs: Connection refused",
        {"/usr/sbin/mount.nfs": mounts.MOUNT_NFS},
        mounting((mounts.NAS[0], "other.example.com:/x", *mounts.NAS[2:]), wait_s=2),
    ),
    "no_nfs_client": Fault(
        "stage file_systems failed (exit 78): the image has no NFS client",
        {"/usr/sbin/mount.nfs": "", "/sbin/mount.nfs": ""},
        mounting(mounts.NAS),
    ),
    "hooks": Fault(
        "", values=hooked(IN_S3, replace(BY_HTTP, sha256=sha256(HOOK).hexdigest()), start=(EARLY,))
    ),
    "hook_fails": Fault(
        "on_node_configured hook 2 (inline) exited with 3: no licence server",
        values=hooked(IN_S3, inline("#!/bin/sh\necho one\necho no licence server >&2\nexit 3\n")),
    ),
    "hook_hangs": Fault(
        "on_node_start hook 1 (inline) was ended after 1 s: waiting",
        values=hooked(start=(inline("#!/bin/sh\necho waiting\nsleep 60\n", timeout_s=1),)),
    ),
    "hook_changed": Fault(
        f"(s3://{HOOKS_BUCKET}/tools/set_up.sh) has checksum {sha256(HOOK).hexdigest()}, not 0000",
        values=hooked(replace(IN_S3, sha256="0" * 64)),
    ),
    "hook_is_no_program": Fault(
        "on_node_configured hook 1 (inline) exited with 12",
        values=hooked(inline("#!/usr/bin/nosuch\n")),
    ),
    "job_role": Fault("", values=replace(LOCAL_NODE, job_roles=JOB_ROLES)),
    "full_disk": Fault("stage bundle failed: disk full", free_kib=0),
    "small_disk": Fault(
        "stage health failed (exit 78): 3 GiB free on the root disk, of 10", free_kib=3 << 20
    ),
    "disk_fills_at_boot": Fault(
        "the root disk is full: it needs more GiB (root_gib), or less on it",
        values=hooked(start=(inline(f"#!/bin/sh\n{FILLS}\n"),)),
        free_kib=20 << 10,
    ),
    "gets_worse": Fault(free_kib=20 << 20),
}
