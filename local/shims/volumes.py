"""Volumes that are attached once, and that a running instance does not let go of.

Nobody outside sees whether a volume is mounted, so an attached one counts as mounted for as long as
its instance runs: a head mounts its data volume while it boots.
"""

from typing import Any

from moto.cloudformation.exceptions import ValidationError
from moto.ec2.exceptions import VolumeInUseError
from moto.ec2.models.elastic_block_store import EBSBackend, VolumeAttachment
from moto.ec2.models.instances import Instance

_attach_volume: Any = EBSBackend.attach_volume
_detach_volume: Any = EBSBackend.detach_volume


class Stuck(ValidationError):
    """What CloudFormation waits for in vain: neither this nor what it depends on can go."""


def attach_all(instance: Instance, volumes: list[dict[str, str]]) -> None:
    """`Volumes` of AWS::EC2::Instance, when the instance is there. A failure ends the instance.

    Source: CloudFormation reference, AWS::EC2::Instance: a change of it interrupts nothing.
    """
    ec2: Any = instance.ec2_backend
    for each in volumes:
        held = ec2.get_volume(each["VolumeId"]).attachment
        if held and held.instance is instance:
            continue
        try:
            ec2.attach_volume(each["VolumeId"], instance.id, each["Device"])
        except VolumeInUseError:
            instance.terminate()
            raise


def _attach(self: Any, volume_id: str, *args: Any, **kwargs: Any) -> Any:
    """Source: EC2 API reference, error codes: VolumeInUse, a volume is attached once."""
    held = self.get_volume(volume_id).attachment
    if held:
        raise VolumeInUseError(volume_id, held.instance.id)
    return _attach_volume(self, volume_id, *args, **kwargs)


def _detach(self: Any, volume_id: str, *args: Any, **kwargs: Any) -> Any:
    """Source: EC2 API reference, DetachVolume: what is still mounted stays in the state `busy`."""
    held = self.get_volume(volume_id).attachment
    if held and held.instance.is_running():
        held.status = "busy"
        return held
    return _detach_volume(self, volume_id, *args, **kwargs)


def _let_go(self: Any) -> None:
    """As moto's: an instance that ends has unmounted, and lets go of all that it holds."""
    for device, held in self.get_block_device_mapping:
        _detach_volume(self.ec2_backend, held.volume_id, self.id, device)
        if held.delete_on_termination:
            self.ec2_backend.delete_volume(held.volume_id)


def _remove(self: Any, account_id: str, region_name: str) -> None:
    """Source: CloudFormation reference, AWS::EC2::VolumeAttachment: unmount it before."""
    if self.volume.attachment is not self:
        return
    held = self.instance.ec2_backend.detach_volume(self.volume.id, self.instance.id, self.device)
    if held.status == "busy":
        words = f"{self.volume.id} is busy: {self.instance.id} runs and has it mounted"
        raise Stuck(message=words)


def install() -> None:
    disks: Any = EBSBackend
    instance: Any = Instance
    attachment: Any = VolumeAttachment
    disks.attach_volume = _attach
    disks.detach_volume = _detach
    instance.teardown_defaults = _let_go
    attachment.delete = _remove
