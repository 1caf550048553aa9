"""What a stack would have put there for the head's agent: bucket, bus and queues."""

from local.boot.cloud import AWS_PORT, Cloud
from local.world import BRIDGE_ADDRESS
from tidegate.adapters.bus import AwsBus

_CLUSTER, _BUCKET, _BUS = "dev", "digests", "tidegate-dev"
_URGENT, _ROUTINE = (
    f"http://{BRIDGE_ADDRESS}:{AWS_PORT}/123456789012/{name}" for name in ("urgent", "routine")
)


def make_agents_way(cloud: Cloud) -> tuple[tuple[str, str], ...]:
    """The agent's environment that names what was made."""
    cloud.client("s3").create_bucket(Bucket=_BUCKET)
    cloud.client("events").create_event_bus(Name=_BUS)
    for url in (_URGENT, _ROUTINE):
        cloud.client("sqs").create_queue(QueueName=url.rpartition("/")[2])
    return (
        ("TIDEGATE_CLUSTER", _CLUSTER),
        ("TIDEGATE_BUCKET", _BUCKET),
        ("TIDEGATE_BUS", _BUS),
        ("TIDEGATE_URGENT_QUEUE_URL", _URGENT),
        ("TIDEGATE_ROUTINE_QUEUE_URL", _ROUTINE),
        ("TIDEGATE_SHARED_DIR", "/shared"),
        ("TIDEGATE_SLURMCTLD_LOG", "/var/log/slurm/slurmctld.log"),
        ("TIDEGATE_HEARTBEAT_S", "1"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    )


def planners_bus(cloud: Cloud) -> AwsBus:
    """The way's other end: what the agent reports, and orders to it."""
    return AwsBus(
        cloud.client("s3"),
        cloud.client("events"),
        cloud.client("sqs"),
        cluster=_CLUSTER,
        bucket=_BUCKET,
        event_bus=_BUS,
        urgent_queue_url=_URGENT,
        routine_queue_url=_ROUTINE,
    )


def agent_started_s(cloud: Cloud) -> float:
    """When the agent that reported last was started; 0 before the first report."""
    received = planners_bus(cloud).newest_digest()
    return received.digest.stamp.agent_started_at_s if received else 0.0
