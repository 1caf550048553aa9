"""What a machine needs beside this computer's root for a real systemd and cloud-init."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from shutil import copy2

# Stand-ins elsewhere; here the programs themselves.
_OF_SYSTEMD = ("systemctl", "systemd-run", "journalctl")
# What a namespace cannot have, or what would ask for a network of its own.
_MASKED = (
    *(
        "systemd-networkd.service",
        "systemd-networkd.socket",
        "systemd-networkd-wait-online.service",
    ),
    *("systemd-resolved.service", "systemd-timesyncd.service", "systemd-firstboot.service"),
    *("systemd-udevd.service", "systemd-udev-trigger.service", "systemd-udev-settle.service"),
    *("proc-fs-nfsd.mount", "run-rpc_pipefs.mount", "console-getty.service", "getty.target"),
    *("systemd-logind.service", "networking.service", "e2scrub_reap.service"),
)
_CLOUD = """\
datasource_list: [NoCloud]
network: {config: disabled}
cloud_init_modules: []
cloud_config_modules: []
cloud_final_modules: [scripts-user]
"""


def make_layer(cloud_init: Path, layer: Path, environment: Mapping[str, str]) -> None:
    """The Ec2 datasource refuses containers, so cloud-init gets its data from a folder."""
    # A copy: a layer of an overlay may not lie inside another one.
    subprocess.run(["cp", "-a", str(cloud_init), str(layer)], check=True)
    for name in _OF_SYSTEMD:
        copy2(f"/usr/bin/{name}", layer / "usr/bin" / name)
    units = layer / "etc/systemd/system"
    units.mkdir(parents=True, exist_ok=True)
    for name in _MASKED:
        (units / name).unlink(missing_ok=True)
        (units / name).symlink_to("/dev/null")
    (units / "default.target").symlink_to("/lib/systemd/system/multi-user.target")
    words = " ".join(f'"{name}={value}"' for name, value in environment.items())
    _write(
        layer / "etc/systemd/system.conf.d/local.conf", f"[Manager]\nDefaultEnvironment={words}\n"
    )
    _write(layer / "etc/systemd/journald.conf.d/local.conf", "[Journal]\nReadKMsg=no\n")
    _write(layer / "etc/cloud/cloud.cfg.d/99-local.cfg", _CLOUD)
    _write(layer / "etc/fstab", "")


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
