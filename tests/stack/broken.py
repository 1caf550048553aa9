"""What goes wrong in the cluster of broken.yaml."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from local.stack_world import StackWorld
from tests.make import job
from tidegate.core.model.slurm import Job
from tidegate.wire.events import BOOT_FAILED_DETAIL_TYPE, STATE_DETAIL_TYPE

CLUSTER_FILE = Path(__file__).with_name("broken.yaml")


def of(job_id: int, partition: str, **more: Any) -> Job:
    """A job that can only start in this partition."""
    return replace(job(job_id, **more), partitions=(partition,))


def gives_up(world: StackWorld, name: str, stage: str = "", tail: str = "") -> None:
    """What a node says on its way out, unless it has no word left, and EC2 of its end."""
    if stage:
        world.tell_of_boot(name, BOOT_FAILED_DETAIL_TYPE, stage=stage, tail=tail)
    world.cloud.observer("ec2").terminate_instances(InstanceIds=[name])
    world.put("aws.ec2", STATE_DETAIL_TYPE, {"instance-id": name, "state": "shutting-down"})
