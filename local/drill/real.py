"""The cluster that a drill breaks: real Slurm in namespaces, the deployed template in moto."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from local.assembly import synthesize
from local.demo.real_stage import HeadDidNotBoot, RealStage
from local.deploy import deploy
from local.disks import ebs_link
from local.sandbox.cluster import write_sandbox_file
from tidegate.wire.digest import decode_digest


def write_drill_file(folder: Path) -> Path:
    """The sandbox's cluster, with accounting."""
    written = write_sandbox_file(folder, None).path
    made: dict[str, Any] = yaml.safe_load(written.read_text())
    made["name"] = "drill"
    made["slurm"]["accounting"] = True
    written.write_text(yaml.safe_dump(made, sort_keys=False))
    return written


@dataclass(slots=True)
class RealCluster:
    stage: RealStage
    _generation: int = 1
    _ec2: Any = field(init=False)

    def __post_init__(self) -> None:
        self._ec2 = self.stage.cloud.observer("ec2")

    def now_s(self) -> float:
        return time.time()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def run(self, line: str) -> str | None:
        try:
            done = self.stage.head.run(["bash", "-c", line])
        except HeadDidNotBoot:
            return None
        return None if done.returncode else done.stdout.strip()

    def lose_head(self) -> None:
        self._end([self.stage.head_id])

    def lose_nodes(self) -> None:
        self._end([name for name, _, _ in self.stage.instances()])

    def lose_volume(self) -> None:
        (volume_id,) = self.stage.deployment.physical_ids("AWS::EC2::Volume")
        self.stage.world.disks.wipe(ebs_link(volume_id))

    def replace_head(self) -> None:
        self._generation += 1
        file = self.stage.cluster_file
        made: dict[str, Any] = yaml.safe_load(file.read_text())
        made["head"] = {"generation": self._generation}
        file.write_text(yaml.safe_dump(made, sort_keys=False))
        assembly = synthesize(file, file.parent / f"cdk.out{self._generation}")
        stack = self.stage.deployment.stack_name
        self.stage.deployment = deploy(self.stage.cloud, assembly, stack)

    def is_heard(self) -> bool:
        (bucket,) = self.stage.deployment.physical_ids("AWS::S3::Bucket")
        key = f"digest/{self.stage.file.cluster.name}.json.gz"
        stored = self.stage.cloud.observer("s3").get_object(Bucket=bucket, Key=key)
        return decode_digest(stored["Body"].read()).stamp.head_instance_id == self.stage.head_id

    def _end(self, instance_ids: list[str]) -> None:
        """Returns when their machines are off."""
        if not instance_ids:
            return
        self._ec2.terminate_instances(InstanceIds=instance_ids)
        while any(self.stage.hypervisor.machine(each) for each in instance_ids):
            time.sleep(0.05)
