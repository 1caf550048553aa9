"""A virtual machine of QEMU, without the kernel's help (TCG); its guest agent runs commands."""

import base64
import json
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.vm.network import BRIDGE

_AGENT = "org.qemu.guest_agent.0"
# A command is asked for again and again until it has ended.
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class GuestSpec:
    """What a virtual machine is made of.

    `cpus`: threads, two on each core. `volume`: the id and file of a volume of EBS. `init`: what
    is process 1 in the place of systemd, with its words. `clock_s`: by how much its clock is ahead.
    """

    name: str
    instance_type: str
    mac: str
    memory_mib: int = 2048
    cpus: int = 4
    volume: tuple[str, Path] | None = None
    init: str = ""
    clock_s: int = 0


class Guest:
    """A machine's disk over the image, and while it runs its process."""

    def __init__(self, spec: GuestSpec, *, image: Path, folder: Path) -> None:
        self.spec = spec
        self.console = folder / "console"
        self._image = image
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._unread = b""

    def boot(self) -> None:
        disk = self._folder / "disk.qcow2"
        if not disk.exists():
            self._folder.mkdir(parents=True)
            self.console.touch()
            made = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw"]
            subprocess.run([*made, "-b", str(self._image / "root.img"), str(disk)], check=True)
        self._close()
        with (self._folder / "qemu.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["nice", "-n", "10", "qemu-system-x86_64", *self._options(disk)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _options(self, disk: Path) -> list[str]:
        spec, plug = self.spec, _plug(self._folder)
        # How Nitro tells what it is; cloud-init looks there (its ds-identify).
        uuid = f"ec200000-0000-0000-0000-{spec.mac.replace(':', '')}"
        kernel = "root=/dev/vda rw console=ttyS0 mitigations=off panic=-1 quiet"
        if spec.init:
            kernel += f" init={spec.init}"
        options = {
            "accel": "tcg,thread=multi,tb-size=256",
            # Without -cx16 the kernel 6.12 panics under TCG.
            "cpu": "Haswell-noTSX,-cx16",
            "smp": f"{spec.cpus},sockets=1,cores={spec.cpus // 2},threads=2",
            "m": str(spec.memory_mib),
            "smbios": f"type=1,manufacturer=Amazon EC2,product={spec.instance_type},"
            f"serial={uuid},uuid={uuid}",
            "rtc": f"base={datetime.fromtimestamp(time.time() + spec.clock_s, UTC):%FT%T}",
            "kernel": str(self._image / "vmlinuz"),
            "initrd": str(self._image / "initrd"),
            "append": kernel,
            "display": "none",
            "monitor": "none",
            "chardev": f"file,id=console,path={self.console},append=on",
            "serial": "chardev:console",
            "drive": f"file={disk},if=virtio,format=qcow2,cache=unsafe",
            "netdev": f"tap,id=card,ifname=tap-{spec.name},script={plug},downscript=no",
        }
        listed = [word for name, value in options.items() for word in (f"-{name}", value)]
        listed += ["-nodefaults", "-device", f"virtio-net-pci,netdev=card,mac={spec.mac}"]
        listed += ["-chardev", f"socket,path={self._folder}/agent,server=on,wait=off,id=agent"]
        listed += ["-device", "virtio-serial"]
        listed += ["-device", f"virtserialport,chardev=agent,name={_AGENT}"]
        if spec.volume:
            volume_id, file = spec.volume
            listed += ["-drive", f"file={file},if=none,id=volume,format=raw,cache=unsafe"]
            listed += ["-device", f"nvme,drive=volume,serial={volume_id.replace('-', '')}"]
        return listed

    def run(
        self,
        argv: Sequence[str],
        *,
        user: str | None = None,
        input: str | None = None,
        patience_s: float = 120.0,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside, as root, or as `user` after a login. Exit codes do not raise."""
        words = list(argv) if user is None else ["runuser", "-l", user, "-c", shlex.join(argv)]
        asked: dict[str, Any] = {"path": "/usr/bin/env", "arg": words, "capture-output": True}
        if input is not None:
            asked["input-data"] = base64.b64encode(input.encode()).decode()
        pid = self._ask("guest-exec", asked)["pid"]
        until_s = time.monotonic() + patience_s
        while not (ended := self._ask("guest-exec-status", {"pid": pid}))["exited"]:
            if time.monotonic() > until_s:
                return subprocess.CompletedProcess(words, 124, "", f"no end after {patience_s} s")
            time.sleep(_POLL_S)
        out, err = (
            base64.b64decode(ended.get(name, "")).decode(errors="replace")
            for name in ("out-data", "err-data")
        )
        return subprocess.CompletedProcess(words, ended.get("exitcode", 128), out, err)

    def sh(self, line: str, *, user: str | None = None, patience_s: float = 120.0) -> str:
        """What a line of shell prints, its faults too."""
        done = self.run(["bash", "-c", line], user=user, patience_s=patience_s)
        return (done.stdout + done.stderr).strip()

    def answers(self) -> bool:
        """Whether the guest agent does, which systemd starts early."""
        try:
            self._ask("guest-ping", {}, patience_s=2)
        except OSError:
            self._close()
            return False
        return True

    def _ask(self, command: str, arguments: dict[str, Any], *, patience_s: float = 60) -> Any:
        """Raises OSError when there is no answer."""
        if self._channel is None:
            self._channel = self._connect()
        self._channel.settimeout(patience_s)
        said = json.dumps({"execute": command, "arguments": arguments})
        self._channel.sendall(said.encode() + b"\n")
        answer = json.loads(self._line())
        if "return" not in answer:
            raise OSError(f"{command}: {answer}")
        return answer["return"]

    def _connect(self) -> socket.socket:
        """A channel without answers to what nobody waited for."""
        channel = socket.socket(socket.AF_UNIX)
        channel.settimeout(2)
        channel.connect(str(self._folder / "agent"))
        mark = time.monotonic_ns()
        asked = {"execute": "guest-sync-delimited", "arguments": {"id": mark}}
        channel.sendall(b"\xff" + json.dumps(asked).encode() + b"\n")
        self._channel, self._unread = channel, b""
        try:
            while str(mark) not in self._line():
                pass
        except OSError:
            channel.close()
            self._channel = None
            raise
        return channel

    def _line(self) -> str:
        assert self._channel
        while b"\n" not in self._unread:
            more = self._channel.recv(1 << 16)
            if not more:
                raise OSError("the machine has gone")
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return line.lstrip(b"\xff").decode()

    def _close(self) -> None:
        if self._channel:
            self._channel.close()
        self._channel = None

    def said(self) -> str:
        return self.console.read_text(errors="replace")

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def freeze(self) -> None:
        """Nothing in it goes on, and nothing outside is told: who asks it waits."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def pull_the_plug(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
        self._close()


def _plug(folder: Path) -> Path:
    """QEMU's way to put a card on a bridge."""
    script = folder / "plug.sh"
    if not script.exists():
        script.write_text(f'#!/bin/sh\nip link set "$1" master {BRIDGE} up\n')
        script.chmod(0o755)
    return script
