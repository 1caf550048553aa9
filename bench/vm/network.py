"""The network of the bench: metadata service, names, addresses, and AWS's services."""

import shutil
import subprocess
from pathlib import Path

from local.boot.cloud import Cloud, start_cloud
from local.dns import Dns
from local.imds import Identity, Imds
from local.world import BRIDGE, BRIDGE_ADDRESS, HEAD_ADDRESS, raise_network

__all__ = ["BRIDGE", "FILES_ADDRESS", "HEAD_ADDRESS", "Network"]

FILES_ADDRESS = "10.77.255.253"
_DOMAIN = "ec2.internal"


class Network:
    """What a VPC gives its machines. Use it as a context, after namespaces.enter()."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.imds = Imds()
        self.dns = Dns(folder / "dns", address=BRIDGE_ADDRESS)
        self._dhcp: subprocess.Popen[bytes] | None = None
        self.cloud: Cloud

    def __enter__(self) -> "Network":
        raise_network()
        self.cloud = start_cloud()
        self.imds.start()
        self.dns.start()
        (self._folder / "dhcp").mkdir(parents=True)
        program = shutil.which("dnsmasq", path="/usr/sbin:/usr/bin")
        assert program
        options = ["--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--user=root"]
        options += [f"--interface={BRIDGE}", f"--dhcp-hostsdir={self._folder / 'dhcp'}"]
        options += [f"--dhcp-range={HEAD_ADDRESS},static,255.255.0.0,1h", "--pid-file="]
        options += [f"--domain={_DOMAIN}", f"--dhcp-option=option:dns-server,{BRIDGE_ADDRESS}"]
        options += [f"--dhcp-option=option:router,{BRIDGE_ADDRESS}"]
        options += [f"--dhcp-leasefile={self._folder / 'leases'}"]
        log = (self._folder / "dhcp.log").open("ab")
        self._dhcp = subprocess.Popen([program, *options], stdout=log, stderr=log)
        return self

    def __exit__(self, *_: object) -> None:
        if self._dhcp:
            self._dhcp.kill()
            self._dhcp.wait()
        self.dns.stop()
        self.imds.stop()

    def admit(self, identity: Identity, *names: str) -> None:
        """A machine's address, metadata and names."""
        self.imds.register(identity)
        every = (f"{identity.instance_id}.{_DOMAIN}", *names)
        self.dns.register(identity.ip, *every)
        host = self._folder / "dhcp" / identity.instance_id
        host.write_text(f"{identity.mac},{identity.ip}\n")
