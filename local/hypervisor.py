"""Makes the instances of a local EC2 (moto) real: boots, watches and ends their machines."""

import base64
import threading
import time
from collections.abc import Callable, Set
from functools import cache
from typing import TYPE_CHECKING, Any

from local.firewall import Member, groups_in_cloud, groups_of_files
from local.hosted_zones import address_records
from local.instance_roles import InstanceRoles
from local.instances import Instances, Listing
from local.machine import Machine, MachineSpec
from local.world import FILES_ADDRESS, World
from tidegate.core.model.ec2 import HEAD_ROLE, ROLE_TAG

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import InstanceTypeDef

_RUNNING = ("pending", "running")
_STOPPED = ("stopping", "stopped")
_NAMES_POLL_S = 1.0


class Hypervisor:
    """A thread that boots a machine for each new instance, and ends both together.

    An instance tagged `tidegate:role` = `head` becomes the head (10.77.0.1,
    head.ec2.internal). A stopped instance keeps its machine's disk, address and name, and
    boots from that disk when it is started. `adjust` may change what is about to boot: a
    fault, an environment. With `clients` (service -> client) instances get credentials of
    their role, and A records of Route 53's hosted zones resolve in machines. Instances and mount
    targets are reached only as their security groups let.
    """

    def __init__(
        self,
        ec2: "EC2Client",
        world: World,
        *,
        poll_s: float = 0.2,
        boot_delay_s: float = 0.0,
        adjust: Callable[[MachineSpec], MachineSpec] = lambda spec: spec,
        clients: Callable[[str], Any] | None = None,
    ) -> None:
        self._ec2 = ec2
        self._listing = Listing(
            ec2, [{"Name": "instance-state-name", "Values": [*_RUNNING, *_STOPPED]}]
        )
        self._world = world
        self._poll_s = poll_s
        self._boot_delay_s = boot_delay_s
        self._adjust = adjust
        self._gpus = cache(self._gpus_of_type)
        self._seen_at_s: dict[str, float] = {}
        self._booted: set[str] = set()
        self._stopped: set[str] = set()
        self._has_zones = clients is not None
        self._names_due_at_s = 0.0
        if clients:
            roles = InstanceRoles(ec2, clients("iam"), clients("sts"))
            world.imds.credentials_of = roles.credentials_of
        self._reclaim_at_s: dict[str, float] = {}
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="hypervisor", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Watch no more; machines stay as they are until the world ends."""
        self._is_stopped.set()
        self._thread.join()

    def machine(self, instance_id: str) -> Machine | None:
        """The machine of an instance; None before it boots and after it ended."""
        return self._world.machine(instance_id)

    def reclaim_after(self, instance_id: str, seconds: float, *, is_announced: bool = True) -> None:
        """EC2 wants a spot instance back: the notice in IMDS now, the plug in `seconds`.

        Without `is_announced` IMDS says nothing. The event on the bus is the caller's.
        """
        if is_announced:
            self._world.imds.interrupt(instance_id, time.time() + seconds)
        self._reclaim_at_s[instance_id] = time.monotonic() + seconds

    def _loop(self) -> None:
        while not self._is_stopped.wait(self._poll_s):
            self.step()

    def step(self) -> None:
        """One look at EC2 and at the machines."""
        listed = self._listing.now()
        now_s = time.monotonic()
        due = [name for name, at_s in self._reclaim_at_s.items() if at_s <= now_s]
        for instance_id in due:
            del self._reclaim_at_s[instance_id]
            self._world.power_off(instance_id)
        for instance_id in self._booted - listed.keys():
            self._forget(instance_id)
        running = {key: one for key, one in listed.items() if one["State"]["Name"] in _RUNNING}
        self._stop(listed.keys() - running.keys())
        self._note_ended(running)
        for instance_id, instance in running.items():
            seen_at_s = self._seen_at_s.setdefault(instance_id, now_s)
            if instance_id in self._stopped:
                self._stopped.discard(instance_id)
                self._world.start(instance_id)
            elif instance_id not in self._booted and now_s - seen_at_s >= self._boot_delay_s:
                self._booted.add(instance_id)
                self._world.boot(self._adjust(self._spec(instance)))
            self._attach_volumes(instance)
        self._world.firewall.update(groups_in_cloud(), self._members(running))
        self._publish_names(listed, now_s)

    def _members(self, running: Instances) -> list[Member]:
        """The running machines and the file system, with the groups that EC2 and EFS know of."""
        members = [
            Member(
                address=machine.ip,
                private_address=instance.get("PrivateIpAddress", ""),
                groups=frozenset(
                    group["GroupId"]
                    for interface in instance.get("NetworkInterfaces", ())
                    for group in interface["Groups"]
                ),
            )
            for instance_id, instance in running.items()
            if (machine := self._world.machine(instance_id))
        ]
        of_files = groups_of_files()
        if of_files:
            members.append(Member(address=FILES_ADDRESS, private_address="", groups=of_files))
        return members

    def _forget(self, instance_id: str) -> None:
        self._world.power_off(instance_id)
        self._booted.discard(instance_id)
        self._stopped.discard(instance_id)

    def _stop(self, instance_ids: Set[str]) -> None:
        for instance_id in instance_ids & self._booted - self._stopped:
            self._stopped.add(instance_id)
            self._world.stop(instance_id)

    def _note_ended(self, running: Instances) -> None:
        """A machine that powered itself off ends its instance; a head or login node stops it.

        Source: InstanceInitiatedShutdownBehavior, `terminate` in our launch templates, EC2's
        default `stop` for what the stack itself makes.
        """
        for instance_id in self._booted & running.keys() - self._stopped:
            machine = self._world.machine(instance_id)
            if machine and machine.is_alive:
                continue
            del running[instance_id]
            if machine and ROLE_TAG in machine.spec.tags:
                self._ec2.stop_instances(InstanceIds=[instance_id])
                self._stopped.add(instance_id)
            else:
                self._ec2.terminate_instances(InstanceIds=[instance_id])
                self._forget(instance_id)

    def _attach_volumes(self, instance: "InstanceTypeDef") -> None:
        """The volumes beside the root, which may be attached long after the boot."""
        if instance["InstanceId"] not in self._booted:
            return
        for mapping in instance.get("BlockDeviceMappings", []):
            if mapping["DeviceName"] != instance.get("RootDeviceName"):
                self._world.attach(instance["InstanceId"], mapping["Ebs"]["VolumeId"])

    def _publish_names(self, listed: Instances, now_s: float) -> None:
        """Records hold EC2's addresses; the world gave the machines others."""
        if not self._has_zones or now_s < self._names_due_at_s:
            return
        self._names_due_at_s = now_s + _NAMES_POLL_S
        address_of = {
            one["PrivateIpAddress"]: machine.ip
            for key, one in listed.items()
            if (machine := self._world.machine(key)) and "PrivateIpAddress" in one
        }
        self._world.dns.set_records(
            {
                name: address_of[address]
                for name, address in address_records().items()
                if address in address_of
            }
        )

    def _spec(self, instance: "InstanceTypeDef") -> MachineSpec:
        instance_id = instance["InstanceId"]
        answer = self._ec2.describe_instance_attribute(InstanceId=instance_id, Attribute="userData")
        tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
        return MachineSpec(
            instance_id=instance_id,
            instance_type=instance["InstanceType"],
            user_data=base64.b64decode(answer["UserData"].get("Value", "")).decode(),
            gpus=self._gpus(instance["InstanceType"]),
            tags=tags,
            market=instance.get("InstanceLifecycle", "on-demand"),
            zone=instance["Placement"]["AvailabilityZone"],
            is_head=tags.get(ROLE_TAG) == HEAD_ROLE,
        )

    def _gpus_of_type(self, instance_type: str) -> int:
        answer = self._ec2.describe_instance_types(InstanceTypes=[instance_type])  # type: ignore[list-item]
        gpus = answer["InstanceTypes"][0].get("GpuInfo", {}).get("Gpus", [])
        return sum(gpu.get("Count", 0) for gpu in gpus)
