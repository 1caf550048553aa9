"""The names of a VPC: INSTANCE-ID.ec2.internal, as EC2's resource-name DNS gives them."""

import shutil
import signal
import subprocess
from pathlib import Path


class Dns:
    """A dnsmasq on the world's bridge. Names may come and go while it runs."""

    def __init__(self, directory: Path, *, address: str, domain: str) -> None:
        self._hosts = directory / "hosts.d"
        self._directory = directory
        self._address = address
        self._domain = domain
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._hosts.mkdir(parents=True)
        program = shutil.which("dnsmasq", path="/usr/sbin:/sbin:/usr/bin")
        assert program, "namespaces.can_enter() asks for dnsmasq"
        options = ["--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts"]
        options += [f"--listen-address={self._address}", "--bind-interfaces", "--user=root"]
        # A file that appears here is read at once (inotify); removals need the SIGHUP of forget().
        options += [f"--hostsdir={self._hosts}", "--local-ttl=1", "--pid-file="]
        options += [f"--domain={self._domain}", f"--local=/{self._domain}/", "--local=//"]
        log = (self._directory / "dnsmasq.log").open("ab")
        self._process = subprocess.Popen([program, *options], stdout=log, stderr=log)

    def register(self, ip: str, *names: str) -> None:
        """`names` without the domain. Replaces what was known of `ip`."""
        full = " ".join(f"{name}.{self._domain}" for name in names)
        fresh = self._directory / f".{ip}"
        fresh.write_text(f"{ip} {full}\n")
        fresh.replace(self._hosts / ip)

    def forget(self, ip: str) -> None:
        (self._hosts / ip).unlink(missing_ok=True)
        if self._process:
            self._process.send_signal(signal.SIGHUP)

    def stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
