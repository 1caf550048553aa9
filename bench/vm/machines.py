"""Head, node and file server of the bench: what they are told, and how they boot."""

import hashlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.vm.guest import Guest, GuestSpec
from bench.vm.network import FILES_ADDRESS, HEAD_ADDRESS, Network
from local.boot.agents_way import make_agents_way
from local.boot.cloud import Cloud, publish_agent
from local.boot.machines import READY, data_of_head, data_of_node
from local.boot.values import HEAD, NODE, SLURM
from local.imds import Identity
from local.namespaces import WORLD_DIR
from local.waiting import wait_for
from userdata.render import (
    HeadValues,
    MungeSecret,
    NodePool,
    NodeShape,
    NodeValues,
    SlurmPartition,
    SlurmPool,
)

# The virtual node: two cores with two threads each, two devices in the place of GPUs, and 90 % of
# the memory that QEMU gives it, as of any instance of 8 GiB and less.
SHAPE = NodeShape("g4dn.xlarge", cpus=4, memory_mib=1843, gpus=2, gpu_type="t4")
MEMORY_MIB = 2048
HEAD_ID, NODE_ID = "i-0ead0000000000001", "i-0fa00000000000001"
VOLUME_ID = "vol-0123456789abcdef0"
# Without acceleration a boot takes minutes, and on a busy computer more.
BOOT_S, SHORT_S = 900.0, 120.0

ACCOUNTED = replace(SLURM, accounting=True)
_SLURM = replace(
    ACCOUNTED,
    pools=(SlurmPool("gpu", (SHAPE,), ("on-demand",), max_job_nodes=2),),
    partitions=(SlurmPartition("gpu", ("gpu",), is_default=True),),
    state_dir="/srv/tidegate/slurmctld",
)


def head_values(munge: MungeSecret) -> HeadValues:
    """The product's own: no setting of slurm.conf or cgroup.conf is another one here."""
    return replace(HEAD, slurm=_SLURM, munge=munge, data_volume=VOLUME_ID)


def _with_agent(cloud: Cloud, package: Path) -> HeadValues:
    """The agent as a deployment packs it, with what it needs, and its way to the planner."""
    agent, way = publish_agent(cloud, package), make_agents_way(cloud)
    return replace(head_values(cloud.munge), agent=agent, agent_env=way)


def node_values(munge: MungeSecret) -> NodeValues:
    pools = (NodePool("gpu"),)
    # A boot without acceleration is slower than any instance's.
    return replace(
        NODE,
        shapes=(SHAPE,),
        pools=pools,
        munge=munge,
        boot_bound_s=int(BOOT_S),
        register_wait_s=300,
    )


@dataclass
class Machines:
    """What the probes look at. `agent`: the package of the head's."""

    network: Network
    image: Path
    agent: Path
    folder: Path
    guests: dict[str, Guest] = field(default_factory=dict)

    @property
    def head(self) -> Guest:
        return self.guests["head"]

    @property
    def node(self) -> Guest:
        return self.guests["node"]

    def add(self, spec: GuestSpec) -> Guest:
        guest = Guest(spec, image=self.image, folder=self.folder / spec.name)
        self.guests[spec.name] = guest
        return guest

    def boot_files(self) -> Guest:
        """The file server, which EFS's name in the bench points at."""
        init = f"/usr/local/sbin/file-server -- {FILES_ADDRESS}"
        spec = GuestSpec("files", "", "02:00:00:00:00:03", memory_mib=384, cpus=2, init=init)
        files = self.add(spec)
        files.boot()
        name = f"{HEAD.shared.file_system_id}.efs.us-east-1.amazonaws.com"
        self.network.dns.register(FILES_ADDRESS, name)
        return files

    def boot_head(self) -> Guest:
        user_data = data_of_head(self.network.cloud, _with_agent(self.network.cloud, self.agent))
        identity = Identity(
            HEAD_ID,
            "m7i.large",
            "us-east-1a",
            "on-demand",
            HEAD_ADDRESS,
            user_data=user_data,
            mac="02:00:00:00:00:01",
        )
        self.network.admit(identity, HEAD.slurm.head_host)
        volume = self.folder / "volume"
        with volume.open("wb") as made:
            made.truncate(1 << 30)
        spec = GuestSpec("head", "m7i.large", identity.mac, volume=(VOLUME_ID, volume))
        head = self.add(spec)
        head.boot()
        return head

    def boot_node(
        self, name: str = "node", number: int = 1, memory_mib: int = MEMORY_MIB, clock_s: int = 0
    ) -> Guest:
        identity = Identity(
            f"{NODE_ID[:-1]}{number}",
            SHAPE.instance_type,
            "us-east-1a",
            "on-demand",
            f"10.77.1.{number}",
            tags={"tidegate:pool": "gpu", "tidegate:launch": "bench-1"},
            user_data=data_of_node(self.network.cloud, node_values(self.network.cloud.munge)),
            mac=f"02:00:00:00:01:{number:02}",
        )
        self.network.admit(identity)
        spec = GuestSpec(
            name, SHAPE.instance_type, identity.mac, memory_mib=memory_mib, clock_s=clock_s
        )
        node = self.add(spec)
        node.boot()
        return node


def became_ready(guest: Guest, times: int = 1) -> bool:
    """Whether its stages said so this often, before our patience or the machine ended."""
    wait_for(lambda: guest.said().count(READY) >= times or not guest.is_alive, BOOT_S)
    return guest.said().count(READY) >= times


@contextmanager
def machines(image: Path, agent: Path) -> Iterator[Machines]:
    """The bench's machines, all of which end with it."""
    folder = WORLD_DIR / "vm"
    folder.mkdir()
    with Network(folder) as network:
        made = Machines(network, image, agent, folder)
        try:
            yield made
        finally:
            for guest in made.guests.values():
                guest.pull_the_plug()


def made_image(cache: Path) -> Path:
    """The folder of the image that the files here describe; made when there is none."""
    here = Path(__file__).parent
    sources = [here / "image.sh", *sorted(each for each in (here / "root").rglob("*"))]
    sources += [here.parents[1] / "local/bin" / name for name in ("nvidia-smi", "lspci")]
    content = b"".join(each.read_bytes() for each in sources if each.is_file())
    folder = cache / hashlib.sha256(content).hexdigest()[:16]
    if not (folder / "root.img").exists():
        subprocess.run([str(here / "image.sh"), str(folder)], check=True)
    return folder
