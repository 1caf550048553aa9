"""One machine: an overlay of this computer's root in namespaces of its own."""

import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from local.devices import make_devices
from local.disks import Disk

_INIT = Path(__file__).parent / "machine_init.sh"
_POWER_OFF = signal.SIGRTMIN + 4


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """What a machine is: its identity for IMDS, its fake GPUs and its user data.

    `market`: IMDS's instance-life-cycle. `env`: added to the environment of every process.
    `gpus`: how many the driver shows, which may be fewer than the type has. `files`: path ->
    content of what its image has, "" for what it lacks. `disks`: instance stores and volumes
    that it starts with. `layer`: what its image has more. `systemd`: a layer with cloud-init;
    process 1 is then systemd, and cloud-init runs the user data. `free_kib`: what its root disk has
    free when it starts, of a disk of its own; None: what this computer has.
    """

    instance_id: str
    instance_type: str
    user_data: str
    gpus: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)
    market: str = "on-demand"
    zone: str = "us-east-1a"
    is_head: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    disks: tuple[Disk, ...] = ()
    layer: Path | None = None
    systemd: Path | None = None
    free_kib: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a world puts a machine.

    `lower`: the layers of its root, top first. `binds`: SOURCE:TARGET[:ro].
    """

    directory: Path
    console: Path
    lower: tuple[Path, ...]
    bridge: str
    ip: str
    gateway: str
    binds: tuple[str, ...]
    env: Mapping[str, str]


class Machine:
    """An instance's disk and address, and while it runs its processes.

    `root` stays readable after the end, and a machine that was shut down boots from it again.
    """

    def __init__(self, spec: MachineSpec, place: Place) -> None:
        self.spec = spec
        self.ip = place.ip
        self.console = place.console
        self.root = place.directory / "root"
        self._place = place
        self._env = {**place.env, **spec.env}
        self._disks = {disk.link: disk for disk in spec.disks}
        self._process: subprocess.Popen[bytes] | None = None
        self.init_pid = 0

    def boot(self) -> None:
        """Returns when process 1 is about to start the user data, or at a later boot the units."""
        if not self.root.exists():
            self._make_root()
        place, spec = self._place, self.spec
        namespaces = ("--net", "--uts", "--mount", "--pid", "--ipc")
        init = ["bash", str(_INIT), str(self.root), spec.instance_id, place.ip, place.gateway]
        devices = place.directory.with_name(f"{place.directory.name}.dev")
        make_devices(devices, gpus=spec.gpus, disks=self._disks.values())
        init += [str(devices), str(place.console)]
        init += ["yes" if spec.systemd else "", *place.binds]
        with place.console.open("ab") as console:
            self._process = subprocess.Popen(
                ["unshare", *namespaces, "--fork", "--kill-child=SIGKILL", *init],
                stdin=subprocess.PIPE,
                stdout=console,
                stderr=console,
                env=self._env,
                start_new_session=True,
            )
        self.init_pid = _only_child(self._process)
        self._plug_in()
        assert self._process.stdin
        self._process.stdin.write(b"go\n")
        self._process.stdin.close()

    def _make_root(self) -> None:
        upper, work = self._place.directory / "upper", self._place.directory / "work"
        if self.spec.free_kib is not None:
            self._place.directory.mkdir(parents=True)
            _run("mount", "-t", "tmpfs", "disk", str(self._place.directory))
        for folder in (upper, work, self.root):
            folder.mkdir(parents=True)
        lower = ":".join(map(str, self._place.lower))
        options = f"lowerdir={lower},upperdir={upper},workdir={work}"
        _run("mount", "-t", "overlay", "overlay", "-o", options, str(self.root))
        user_data = self.root / "var/lib/cloud/user-data"
        user_data.parent.mkdir(parents=True, exist_ok=True)
        user_data.write_text(self.spec.user_data)
        user_data.chmod(0o700)
        if self.spec.systemd:
            seed = self.root / "var/lib/cloud/seed/nocloud"
            seed.mkdir(parents=True)
            (seed / "user-data").write_text(self.spec.user_data)
            (seed / "meta-data").write_text(f"instance-id: {self.spec.instance_id}\n")
        for path, content in self.spec.files.items():
            file = self.root / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)
            if content:
                file.write_bytes(content.encode() if isinstance(content, str) else content)
                file.chmod(0o755)
        if self.spec.free_kib is not None:
            self.leave_free(self.spec.free_kib)

    def leave_free(self, kib: int) -> None:
        """From now on its root disk, one of its own (`free_kib`), has so much free."""
        disk = self._place.directory
        used = os.statvfs(disk)
        bytes_used = (used.f_blocks - used.f_bfree) * used.f_frsize
        _run("mount", "-o", f"remount,size={bytes_used + (kib << 10)}", str(disk))

    def _plug_in(self) -> None:
        card = "v" + self.spec.instance_id.removeprefix("i-")[-14:]
        # One address of the card for one of the machine, as others remember it between boots.
        mac = ":".join(["02:00", *(f"{int(part):02x}" for part in self.ip.split("."))])
        # The kernel takes a while to clear away the card of the boot before.
        subprocess.run(["ip", "link", "del", card], stderr=subprocess.DEVNULL, check=False)
        lines = (
            f"link add {card} type veth peer name eth0 address {mac} netns {self.init_pid}",
            f"link set {card} master {self._place.bridge} up",
        )
        subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)

    def run(
        self,
        argv: Sequence[str],
        *,
        user: str | None = None,
        cwd: str | None = None,
        input: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside, as root, or as `user` after a login. Exit codes do not raise."""
        line = shlex.join(argv) if cwd is None else f"cd {shlex.quote(cwd)} && {shlex.join(argv)}"
        if user is not None:
            argv = ["runuser", "-l", user, "-c", line]
        elif cwd is not None:
            argv = ["bash", "-c", line]
        spaces = ("--net", "--uts", "--mount", "--pid", "--ipc", "--root", "--wd")
        return subprocess.run(
            ["nsenter", "-t", str(self.init_pid), *spaces, "--", *argv],
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            env=self._env,
            check=False,
        )

    def plug_disk(self, disk: Disk) -> None:
        """Attach a disk, now and at each later boot.

        Nothing happens while the machine does not have its own /dev yet; ask again then.
        """
        if disk.link in self._disks or not self.is_alive:
            return
        made = f"mknod /dev/{disk.name} b {disk.major} {disk.minor}"
        linked = f"ln -s ../../{disk.name} /dev/disk/by-id/{disk.link}"
        if not self.run(["sh", "-c", f"test -e /run/machine && {made} && {linked}"]).returncode:
            self._disks[disk.link] = disk

    def shut_down(self, patience_s: float = 20.0) -> None:
        """End it as StopInstances does: units are stopped, then the plug is pulled."""
        if self.is_alive:
            os.kill(self.init_pid, _POWER_OFF)
            self.wait_for_end(patience_s)
        self.power_off()

    def power_off(self) -> None:
        """Pull the plug: nothing in the machine gets to say good-bye."""
        if self._process is None:
            return
        if self.is_alive:
            # unshare first: the other way round it complains on the console about its child's
            # end. It takes process 1 with it, unless it had not yet come to tie the two.
            ended = os.pidfd_open(self.init_pid)
            self._process.kill()
            with suppress(ProcessLookupError):  # unshare's end was its end, and it is reaped
                signal.pidfd_send_signal(ended, signal.SIGKILL)
            select.select([ended], [], [])
            os.close(ended)
        self._process.wait()

    def wait_for_end(self, seconds: float) -> bool:
        """Whether the machine ended within `seconds`."""
        assert self._process
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None


def _only_child(process: subprocess.Popen[bytes]) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline_s = time.monotonic() + 10
    while time.monotonic() < deadline_s and process.poll() is None:
        if found := children.read_text().split():
            return int(found[0])
        time.sleep(0.002)
    raise RuntimeError("unshare did not start a machine")


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True)
