"""What goes wrong in the cluster of broken.yaml."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID as ACCOUNT
from moto.ec2.models import ec2_backends
from moto.ec2.models.instances import StateReason

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
    _told_of_its_end(world, name)


def ends_as_it_starts(world: StackWorld, name: str, code: str, words: str) -> None:
    """EC2 took its launch and ends it at once; Describe has the reason, the event has none."""
    world.cloud.observer("ec2").terminate_instances(InstanceIds=[name])
    instance = ec2_backends[ACCOUNT]["us-east-1"].get_instance(name)
    instance.state_reason = StateReason(f"{code}: {words}", code)
    _told_of_its_end(world, name)


def _told_of_its_end(world: StackWorld, name: str) -> None:
    world.put("aws.ec2", STATE_DETAIL_TYPE, {"instance-id": name, "state": "shutting-down"})
