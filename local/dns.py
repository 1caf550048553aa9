"""The names of a VPC: EC2's resource names (INSTANCE-ID.ec2.internal) and private hosted zones."""

import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path


class Dns:
    """A dnsmasq on the world's bridge. Names may come and go while it runs."""

    def __init__(self, directory: Path, *, address: str) -> None:
        self._hosts = directory / "hosts.d"
        self._directory = directory
        self._address = address
        self._records: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._hosts.mkdir(parents=True)
        program = shutil.which("dnsmasq", path="/usr/sbin:/sbin:/usr/bin")
        assert program, "namespaces.can_enter() asks for dnsmasq"
        options = ["--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts"]
        options += [f"--listen-address={self._address}", "--bind-interfaces", "--user=root"]
        # A file that appears here is read at once (inotify); removals need a SIGHUP.
        options += [f"--hostsdir={self._hosts}", "--local-ttl=1", "--pid-file="]
        # All our domains end in .internal: an unknown name there does not exist.
        options += ["--local=/internal/", "--local=//"]
        log = (self._directory / "dnsmasq.log").open("ab")
        self._process = subprocess.Popen([program, *options], stdout=log, stderr=log)

    def register(self, ip: str, *names: str) -> None:
        """Full `names` of a machine. Replaces what was known of `ip`."""
        self._write(ip, f"{ip} {' '.join(names)}\n")

    def set_records(self, records: Mapping[str, str]) -> None:
        """All names of hosted zones, each with its address; what was set before is gone."""
        if records == self._records:
            return
        self._write("hosted-zones", "".join(f"{ip} {name}\n" for name, ip in records.items()))
        self._records = dict(records)
        self._read_again()

    def _write(self, name: str, text: str) -> None:
        fresh = self._directory / f".{name}"
        fresh.write_text(text)
        fresh.replace(self._hosts / name)

    def forget(self, ip: str) -> None:
        (self._hosts / ip).unlink(missing_ok=True)
        self._read_again()

    def _read_again(self) -> None:
        if self._process:
            self._process.send_signal(signal.SIGHUP)

    def stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
