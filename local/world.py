"""A small cloud in one network namespace: a bridge, IMDS, DNS, a shared folder, machines."""

import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from local.disks import Disks, ebs_link
from local.dns import Dns
from local.firewall import Firewall, Outside
from local.imds import ADDRESS as IMDS_ADDRESS
from local.imds import Identity, Imds
from local.layers import make_layer
from local.machine import Machine, MachineSpec, Place
from local.namespaces import WORLD_DIR

BRIDGE = "tidegate0"
BRIDGE_ADDRESS = "10.77.255.254"
# Where mount targets answer; the files themselves lie in a folder of the world.
FILES_ADDRESS = "10.77.255.253"
NFS_PORT = 2049
HEAD_ADDRESS = "10.77.0.1"

# Without one of its own a bridge takes the lowest of its ports': each new machine could change
# it, and the others would talk to nobody until their ARP entry runs out.
_BRIDGE_MAC = "02:00:0a:4d:ff:fe"
_REPOSITORY = Path(__file__).parent.parent
_SHIMS = (
    ("systemctl", "usr/bin"),
    *(("units.py", "usr/lib/local-systemctl"), ("asked.py", "usr/lib/local-systemctl")),
    ("systemd-run", "usr/bin"),
    *(("nvidia-smi", "usr/bin"), ("mount.efs", "usr/sbin")),
    *(("lspci", "usr/bin"), ("journalctl", "usr/bin")),
)
# What this computer's own Slurm and Munge left behind must not get into a machine; nor what its apt
# knows, which each question after a new repository would read for half a second.
_HIDDEN = (
    "var/lib/apt/lists",
    *("etc/munge/munge.key", "etc/slurm", "var/lib/slurm", "var/log/slurm", "var/log/munge"),
    *("etc/systemd/system/multi-user.target.wants", "var/lib/cloud"),
)
# What Debian's packages enable when they are installed.
_ENABLED = ("munge", "slurmctld", "slurmd")


@dataclass(frozen=True, slots=True)
class WorldSettings:
    """`aws_port`: where moto listens in this namespace, on all addresses.

    `log_dir`: where consoles are kept after the world has gone; None: nowhere.
    """

    aws_port: int
    region: str = "us-east-1"
    domain: str = "ec2.internal"
    log_dir: Path | None = None


class World:
    """Use it as a context, after namespaces.enter()."""

    def __init__(self, settings: WorldSettings) -> None:
        self.directory = WORLD_DIR
        self.shared_dir = WORLD_DIR / "efs" / "shared"
        self.log_dir = settings.log_dir or WORLD_DIR / "console"
        self.imds = Imds()
        self.dns = Dns(WORLD_DIR / "dns", address=BRIDGE_ADDRESS)
        self.firewall = Firewall(Outside(BRIDGE_ADDRESS, settings.aws_port))
        self._files: socket.socket | None = None
        self._settings = settings
        self.disks = Disks(WORLD_DIR / "disks")
        self._machines: dict[str, Machine] = {}
        self._lock = threading.Lock()
        self._num_booted = 0

    def __enter__(self) -> Self:
        for folder in (self.shared_dir, self.log_dir, self.directory / "pycache"):
            folder.mkdir(parents=True, exist_ok=True)
        raise_network(FILES_ADDRESS)
        # Whoever connects has reached the files: the kernel answers, nobody reads.
        self._files = socket.create_server((FILES_ADDRESS, NFS_PORT), backlog=4096)
        self._make_image()
        self.imds.start()
        self.dns.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for machine in self.machines():
            machine.power_off()
        if self._files:
            self._files.close()
        self.disks.close()
        self.dns.stop()
        self.imds.stop()

    def boot(self, spec: MachineSpec) -> Machine:
        """Give the machine an address, tell IMDS and DNS, and boot it.

        Returns when the user data is about to run; `machine.console` tells how it goes.
        """
        ip = HEAD_ADDRESS if spec.is_head else self._next_ip()
        machine = Machine(spec, self._place(spec, ip))
        identity = Identity(
            instance_id=spec.instance_id,
            instance_type=spec.instance_type,
            zone=spec.zone,
            market=spec.market,
            ip=ip,
            tags=spec.tags,
        )
        self.imds.register(identity)
        names = [spec.instance_id, *(["head"] if spec.is_head else [])]
        self.dns.register(ip, *(f"{name}.{self._settings.domain}" for name in names))
        machine.console.touch()
        self._machines[spec.instance_id] = machine
        machine.boot()
        return machine

    def power_off(self, instance_id: str) -> None:
        """End a machine and forget its name and identity; unknown ones are no error."""
        machine = self._machines.pop(instance_id, None)
        if machine:
            machine.power_off()
            self.dns.forget(machine.ip)
            self.imds.forget(machine.ip)

    def stop(self, instance_id: str) -> None:
        """End a machine's processes; disk, address, name and identity stay."""
        self._machines[instance_id].shut_down()

    def start(self, instance_id: str) -> None:
        """Boot a machine that was stopped."""
        self._machines[instance_id].boot()

    def attach(self, instance_id: str, volume_id: str) -> None:
        """Plug a volume in; its content is there for as long as the world."""
        self._machines[instance_id].plug_disk(self.disks.disk(ebs_link(volume_id)))

    def machine(self, instance_id: str) -> Machine | None:
        return self._machines.get(instance_id)

    def machines(self) -> tuple[Machine, ...]:
        return tuple(self._machines.values())

    @property
    def head(self) -> Machine | None:
        return next((found for found in self.machines() if found.spec.is_head), None)

    def _next_ip(self) -> str:
        with self._lock:
            self._num_booted += 1
            return f"10.77.{1 + self._num_booted // 250}.{1 + self._num_booted % 250}"

    def _place(self, spec: MachineSpec, ip: str) -> Place:
        return Place(
            directory=self.directory / "machines" / spec.instance_id,
            console=self.log_dir / f"{spec.instance_id}.log",
            lower=(*self._systemd(spec), *self._more(spec), self.directory / "image", Path("/")),
            bridge=BRIDGE,
            ip=ip,
            gateway=BRIDGE_ADDRESS,
            binds=(
                f"{self.directory / 'efs'}:/.efs",
                f"{self.directory / 'pycache'}:/.pycache",
                *_binds_of_interpreter(),
            ),
            env=self._environment(),
        )

    def _systemd(self, spec: MachineSpec) -> tuple[Path, ...]:
        """The layers of a machine with a real systemd, over those of the stand-ins."""
        if spec.systemd is None:
            return ()
        layer = self.directory / "systemd"
        if not layer.exists():
            make_layer(spec.systemd, layer, self._environment())
        return (layer,)

    def _more(self, spec: MachineSpec) -> tuple[Path, ...]:
        """A copy: a layer of an overlay may not lie inside another one."""
        if spec.layer is None:
            return ()
        copy = self.directory / "layers" / spec.layer.name
        if not copy.exists():
            copy.parent.mkdir(exist_ok=True)
            _run("cp", "-a", str(spec.layer), str(copy))
        return (copy,)

    def _environment(self) -> dict[str, str]:
        """What every process of a machine finds; nothing of this computer's environment."""
        programs = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        return {
            "PATH": ":".join([str(Path(sys.prefix) / "bin"), *programs]),
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "AWS_ENDPOINT_URL": f"http://{BRIDGE_ADDRESS}:{self._settings.aws_port}",
            "AWS_DEFAULT_REGION": self._settings.region,
            "AWS_REGION": self._settings.region,
        }

    def _make_image(self) -> None:
        """The layer that makes this computer's root fit to be a machine's."""
        image, root = self.directory / "image", self.directory / "image_root"
        work = self.directory / "image_work"
        for folder in (image, root, work):
            folder.mkdir()
        options = f"lowerdir=/,upperdir={image},workdir={work}"
        _run("mount", "-t", "overlay", "overlay", "-o", options, str(root))
        _run("rm", "-rf", *(str(root / path) for path in _HIDDEN))
        for name, target in _SHIMS:
            _run(
                "install", "-Dm755", "-t", str(root / target), str(_REPOSITORY / "local/bin" / name)
            )
        wants = root / "etc/systemd/system/multi-user.target.wants"
        wants.mkdir(parents=True)
        for name in _ENABLED:
            (wants / f"{name}.service").symlink_to(f"/lib/systemd/system/{name}.service")
        owner = ("-o", "munge", "-g", "munge")
        _run("install", "-d", *owner, "-m", "700", str(root / "var/log/munge"))
        (root / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
        (root / "etc/resolv.conf").unlink(missing_ok=True)
        (root / "etc/resolv.conf").write_text(
            f"nameserver {BRIDGE_ADDRESS}\nsearch {self._settings.domain}\n"
        )
        (root / ".efs").mkdir(mode=0o700)
        _open_way_to(Path(sys.base_prefix), root)
        _open_way_to(_REPOSITORY, root)
        _run("umount", str(root))


def _open_way_to(path: Path, root: Path) -> None:
    """Let users who are not root pass to `path`, as an interpreter may lie in root's home."""
    for parent in path.parents:
        inside = root / parent.relative_to("/")
        if inside.exists() and not inside.stat().st_mode & 0o001:
            inside.chmod(inside.stat().st_mode | 0o001)


def _binds_of_interpreter() -> tuple[str, ...]:
    """Folders that a machine's root does not show: mounts of their own, or below its own /tmp."""
    wanted = (_REPOSITORY, Path(sys.prefix), Path(sys.base_prefix))
    root_device = Path("/").stat().st_dev
    return tuple(
        f"{path}:{path}:ro"
        for path in dict.fromkeys(wanted)
        if path.stat().st_dev != root_device or path.is_relative_to("/tmp")
    )


def raise_network(*more: str) -> None:
    """The bridge of a world, with the metadata service's address and `more` of the network's."""
    lines = (
        f"link add {BRIDGE} address {_BRIDGE_MAC} type bridge",
        *(f"addr add {address}/16 dev {BRIDGE}" for address in (BRIDGE_ADDRESS, *more)),
        f"addr add {IMDS_ADDRESS}/32 dev {BRIDGE}",
        f"link set {BRIDGE} up",
    )
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True)
