"""The cluster that the golden files of userdata describe."""

from userdata.render import (
    BundleAt,
    HeadValues,
    MungeSecret,
    NodePool,
    NodeShape,
    NodeValues,
    Shared,
    SlurmConfValues,
    SlurmPartition,
    SlurmPool,
)

T4X1 = NodeShape("g4dn.xlarge", cpus=4, memory_mib=15564, gpus=1, gpu_type="t4")
T4X4 = NodeShape("g4dn.12xlarge", cpus=48, memory_mib=186777, gpus=4, gpu_type="t4")
A10GX4 = NodeShape("g5.12xlarge", cpus=48, memory_mib=186777, gpus=4, gpu_type="a10g", weight=2)

MUNGE = MungeSecret("arn:aws:secretsmanager:us-east-1:123456789012:secret:munge-AbCdEf")
SHARED = Shared("fs-0123456789abcdef0")

# A bundle in the bucket that `cdk bootstrap` makes.
AT = BundleAt("cdk-hnb659fds-assets-123456789012-us-east-1", "b" * 64 + ".tgz", "c" * 64)
# The agent, beside it.
AGENT = BundleAt(AT.bucket, "d" * 64 + ".tgz", "e" * 64)

NODE = NodeValues(
    cluster="dev",
    head_host="head.ec2.internal",
    shapes=(T4X1, T4X4, A10GX4),
    pools=(NodePool("gpu", ("team-ml", "fast")), NodePool("cheap")),
    munge=MUNGE,
    shared=SHARED,
)

SLURM = SlurmConfValues(
    cluster="dev",
    head_host="head.ec2.internal",
    pools=(
        SlurmPool("gpu", (T4X1, T4X4, A10GX4), ("spot", "on-demand"), ("team-ml", "fast")),
        SlurmPool("cheap", (T4X1,), ("spot",), max_job_nodes=32),
    ),
    partitions=(
        SlurmPartition("gpu", ("gpu", "cheap"), is_default=True),
        SlurmPartition("cheap", ("cheap",)),
    ),
    max_nodes=40,
)

HEAD = HeadValues(
    slurm=SLURM,
    munge=MUNGE,
    shared=SHARED,
    agent=AGENT,
    agent_env=(("TIDEGATE_BUCKET", "tidegate-dev"), ("TIDEGATE_BUS", "tidegate-dev")),
)
