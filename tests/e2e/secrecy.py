"""What must stay closed or hidden in a machine, and whether it does."""

import base64
import hashlib
from pathlib import Path

from local.machine import Machine
from local.world import World


def reaches_imds(machine: Machine, user: str) -> bool:
    """Whether `user` gets a token. By setpriv: `slurm` cannot log in."""
    url = "http://169.254.169.254/latest/api/token"
    curl = ["curl", "-sS", "-m", "1", "-X", "PUT", "-H"]
    as_user = ["setpriv", f"--reuid={user}", "--clear-groups"]
    done = machine.run([*as_user, *curl, "X-aws-ec2-metadata-token-ttl-seconds: 60", url])
    return done.returncode == 0


def reaches_files(machine: Machine, user: str) -> bool:
    """Whether `user` gets through to the proxy of the shared file system, past the mount."""
    as_user = ["setpriv", f"--reuid={user}", "--clear-groups"]
    line = "exec 3<>/dev/tcp/127.0.0.1/20049 && head -c 9 <&3"
    return machine.run([*as_user, "bash", "-c", line]).stdout == "efs-proxy"


BETWEEN = {
    # What its restart does before our unit follows.
    "tables emptied": "nft flush ruleset",
    "firewall restarted": "systemctl restart nftables",
    "routes gone": "ip rule del pref 91 && ip -6 rule del pref 91",
}


# Whether this computer would send on what a container with a bridge of its own sends there.
FORWARDS = """
echo 1 >/proc/sys/net/ipv4/ip_forward
ip link add br9 type bridge && ip addr add 10.9.0.1/24 dev br9 && ip link set br9 up || exit 0
ip route get 169.254.169.254 from 10.9.0.2 iif br9
code=$?
ip link del br9
exit $code
"""


def firewall_restarted(machine: Machine) -> dict[str, list[str]]:
    """Who reaches the metadata service while and after something is amiss with the firewall."""
    found: dict[str, list[str]] = {}
    for name, line in BETWEEN.items():
        done = machine.run(["bash", "-c", line])
        users = [user for user in ("root", "nobody") if reaches_imds(machine, user)]
        found[name] = users if done.returncode == 0 else [done.stderr]
        if name == "tables emptied" and machine.run(["bash", "-c", FORWARDS]).returncode == 0:
            found[name].append("containers")
    found["files"] = [user for user in ("root", "nobody") if reaches_files(machine, user)]
    return found


def leaks(key: bytes, world: World) -> list[str]:
    """Files of any machine, and consoles, that hold the Munge key or half of it."""
    signs = [key[:256], base64.b64encode(key[:255])]
    files = [*(world.directory / "machines").glob("*/upper/**/*"), *world.log_dir.glob("*.log")]
    return [
        str(file)
        for file in files
        if file.is_file() and not file.is_symlink()
        if file.name != "munge.key" and any(sign in file.read_bytes() for sign in signs)
    ]


def what_leaked(head: Machine) -> list[str]:
    """What of this computer's own Munge and Slurm a fresh head can see."""
    host_key = Path("/etc/munge/munge.key")
    key = head.run(["sha256sum", "/etc/munge/munge.key"]).stdout.split()[:1]
    if host_key.exists() and key == [hashlib.sha256(host_key.read_bytes()).hexdigest()]:
        return ["munge.key"]
    return head.run(["find", "/etc/slurm", "-name", "plugstack*"]).stdout.split()
