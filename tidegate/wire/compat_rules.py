"""The rules that hold cluster files against facts on GPUs, drivers, images and Slurm."""

from tidegate.core.model.codes import Coded

DRIVER = "take an image with another driver: image: dlami, or one of your own that says its own"


class Rule(Coded):
    """What `validate` names with each error and warning of this kind."""

    R01 = "R01", "the image's driver is older than the oldest that knows the pool's GPU", DRIVER
    R02 = (
        "R02",
        "the GPU has no such MIG profile, or the image's driver does not know it",
        "name a profile that `gpu.mig` of this GPU has (docs/fractions.md)",
    )
    R03 = (
        "R03",
        "the image's CUDA is newer than its driver, or has left the pool's GPU",
        "take an older CUDA, or a newer driver branch",
    )
    R04 = (
        "R04",
        "the fabric manager of GPUs behind an NVSwitch has another version than the driver",
        "install both in one version",
    )
    R05 = (
        "R05",
        "the driver's kernel modules are open where the GPU needs closed ones, or the reverse",
        DRIVER,
    )
    R06 = "R06", "the image's driver branch has left the pool's GPU", DRIVER
    R07 = (
        "R07",
        "the instance type has no EFA interface, or types of one pool have different numbers",
        "leave efa out, or give each kind of type its own pool",
    )
    R08 = (
        "R08",
        "versions of EFA's installer, its NCCL plugin and NCCL do not go together",
        "take the versions that the sentence names",
    )
    R10 = "R10", "EFA's installer has left the image's system", "take a newer system"
    R11 = (
        "R11",
        "NVIDIA mends the image's driver branch no more",
        "take a newer branch when it suits you",
    )
    R12 = (
        "R12",
        "the user data of a machine is nearly as large as EC2 takes, or larger",
        "shorten hooks and settings that are written into it",
    )
    R13 = (
        "R13",
        "the pool's types and the file's facts give GPUs another name or number than Slurm's gres",
        "name the types anew, or report it",
    )
    R14 = (
        "R14",
        "a value looks like a secret, and what stands there can be read by many",
        "put it into Secrets Manager or Parameter Store, and name that",
    )
    R16 = (
        "R16",
        "the GPU's compute mode does not go with how its pool shares it",
        "leave compute_mode out, or set it as docs/fractions.md says",
    )
    R17 = (
        "R17",
        "nodes with several network interfaces get no public address, and have no other way out",
        "set network.nat or network.endpoints, or take subnets behind a NAT gateway",
    )
    R18 = "R18", "the image has no EFA software", "take dlami, or an image of your own"
    R19 = (
        "R19",
        "the image is not known to hold nvidia-mig-parted, which cuts GPUs",
        "bake it (images), or see that your own image has it",
    )
    R20 = (
        "R20",
        "the image lacks what the file asks of nodes: containers, users, logs, Lustre or Neuron",
        "bake an image (images), or name one of your own that holds it",
    )
    R21 = (
        "R21",
        "this release or patch of Slurm has a fault in what Tidegate uses",
        "do what the sentence says, or take the newer patch that it names",
    )
    R22 = "R22", "the image's system has a bash before 5.1", "take a newer system"
    R23 = (
        "R23",
        "a pool has instance types with GPUs and without: jobs without any may take the dear ones",
        "give each kind its own pool",
    )
    R24 = (
        "R24",
        "the head has little memory for Slurm and what runs beside it",
        "take a larger head.instance_type",
    )
    R25 = (
        "R25",
        "fractions of a GPU (g6f, gr6f) need NVIDIA's GRID driver, which AWS's images lack",
        "name an image of your own that holds it",
    )
