"""A directory of people (slapd), and a cluster whose machines ask it by sssd.

A program of its own, since pytest stays outside the namespaces: prints what happened as JSON.

    python -m tests.boot.directory_world
"""

import json
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from local import namespaces
from local.boot.cloud import AWS_PORT, Cloud, start_cloud
from local.boot.machines import LOCAL_NODE, LOCAL_SLURM, READY, data_of_head, data_of_node
from local.boot.values import HEAD, T4X1
from local.machine import Machine, MachineSpec
from local.waiting import wait_for
from local.world import World, WorldSettings
from tests.boot.login_world import must, told
from userdata.directory import Directory, asked
from userdata.render import LoginValues

LAYER = Path("/var/tmp/tidegate-directory")
# How Canonical's images start sshd, by a package of theirs. Its options count before all files.
CONNECT = "systemd/system/ssh.service.d/ec2-instance-connect.conf"
INSTANCE_CONNECT = """\
[Service]
ExecStart=
ExecStart=/usr/sbin/sshd -D -o "AuthorizedKeysCommand /usr/share/ec2-instance-connect/eic_run_authorized_keys %%u %%f" -o "AuthorizedKeysCommandUser nobody" $SSHD_OPTS
"""  # noqa: E501
BASE, READER, PASSWORD = "dc=example,dc=com", "cn=reader,dc=example,dc=com", "only reads"
HOST = "i-0d0d0d0d0d0d0d0d0.ec2.internal"
MAY_LOG_IN = "(description=hpc)"

SSH = (
    *("ssh", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
    *("-o", "LogLevel=ERROR", "-o", "BatchMode=yes"),
)

SLAPD_CONF = f"""\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
attributetype ( 1.3.6.1.4.1.24552.500.1.1.1.13 NAME 'sshPublicKey'
    EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 )
objectclass ( 1.3.6.1.4.1.24552.500.1.1.2.0 NAME 'ldapPublicKey' SUP top AUXILIARY
    MAY ( sshPublicKey $ uid ) )
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCertificateFile /etc/ldap/server.pem
TLSCertificateKeyFile /etc/ldap/server.key
pidfile /run/slapd.pid
database mdb
suffix "{BASE}"
directory /var/lib/ldap
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{READER}" read by * none
"""


def entry(name: str, number: int, key: str, description: str) -> str:
    return f"""
dn: uid={name},{BASE}
objectClass: account
objectClass: posixAccount
objectClass: ldapPublicKey
uid: {name}
cn: {name}
uidNumber: {number}
gidNumber: 20000
homeDirectory: /home/{name}
description: {description}
sshPublicKey: {key}
"""


def people(key: str) -> str:
    return f"""\
dn: {BASE}
objectClass: dcObject
objectClass: organization
o: example
dc: example

dn: {READER}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: reader
userPassword: {PASSWORD}

dn: cn=physics,{BASE}
objectClass: posixGroup
cn: physics
gidNumber: 20000
{entry("grace", 20001, key, "hpc")}{entry("linus", 20002, key, "kernel")}"""


def made(folder: Path) -> dict[str, str]:
    """A certificate of an authority of its own, and a key to log in with."""
    lines = f"""
        new="openssl req -newkey rsa:2048 -nodes"
        $new -x509 -days 9 -subj /CN=authority -keyout ca.key -out ca.pem
        $new -x509 -days 9 -subj /CN=other -keyout other.key -out other.pem
        $new -subj /CN={HOST} -keyout server.key -out server.csr
        printf subjectAltName=DNS:{HOST} >names
        by="-CA ca.pem -CAkey ca.key -CAcreateserial -extfile names"
        openssl x509 -req -days 9 -in server.csr $by -out server.pem
        ssh-keygen -q -t ed25519 -N "" -f key
    """
    subprocess.run(["bash", "-ec", lines], cwd=folder, check=True, capture_output=True)
    return {each.name: each.read_text() for each in folder.iterdir()}


def boot_directory(world: World, made: dict[str, str]) -> Machine:
    start = (
        "#!/bin/bash\nset -e\nmkdir -p /var/lib/ldap\n"
        "slapadd -f /etc/ldap/slapd.conf </etc/ldap/people\n"
        f"slapd -f /etc/ldap/slapd.conf -h 'ldaps://{HOST}/ ldap://{HOST}/'\ntouch /run/up\n"
    )
    files = {
        "/etc/ldap/slapd.conf": SLAPD_CONF,
        "/etc/ldap/people": people(made["key.pub"].strip()),
        **{f"/etc/ldap/{name}": made[name] for name in ("server.pem", "server.key")},
    }
    name = HOST.partition(".")[0]
    machine = world.boot(MachineSpec(name, "m7i.large", start, files=files, layer=LAYER))
    assert wait_for(lambda: not machine.run(["test", "-e", "/run/up"]).returncode, 20)
    return machine


def directory(cloud: Cloud, ca: str) -> Directory:
    secret = cloud.client("secretsmanager").create_secret(Name="directory", SecretString=PASSWORD)
    return asked(
        uris=["ldaps://not-there.ec2.internal", f"ldap://{HOST}"],
        search_base=BASE,
        schema="rfc2307",
        bind_dn=READER,
        secret=secret["ARN"],
        ca_certificate=ca,
        access_filter=MAY_LOG_IN,
        options=[("ldap_user_ssh_public_key", "sshPublicKey")],
    )


def specs(cloud: Cloud, found: Directory) -> tuple[MachineSpec, MachineSpec, MachineSpec]:
    head = replace(HEAD, slurm=LOCAL_SLURM, munge=cloud.munge, agent=None, directory=found)
    login = LoginValues(
        slurm=LOCAL_SLURM,
        munge=cloud.munge,
        shared=HEAD.shared,
        users="sssd",
        directory=found,
    )
    node = replace(LOCAL_NODE, munge=cloud.munge, users="sssd", directory=found)
    of_head, of_login = data_of_head(cloud, head), told(cloud, login)
    return (
        MachineSpec("i-0123456789abcdef0", "m7i.large", of_head, is_head=True, layer=LAYER),
        MachineSpec(
            "i-0a0a0a0a0a0a0a0a0",
            "m7i.large",
            of_login,
            files={f"/usr/lib/{CONNECT}": INSTANCE_CONNECT},
            layer=LAYER,
        ),
        MachineSpec(
            "i-0b0b0b0b0b0b0b0b0",
            T4X1.instance_type,
            data_of_node(cloud, node),
            gpus=1,
            tags={"tidegate:pool": "cheap"},
            layer=LAYER,
        ),
    )


def sshd(machine: Machine) -> str:
    """What systemd would start: a file in /etc takes the place of the package's of its name."""
    line = f"cd /; cat $(ls -d etc/{CONNECT} usr/lib/{CONNECT} 2>/dev/null | head -n 1)"
    found = [
        each.partition("=")[2].replace("%%", "%").replace(" -D", "")
        for each in machine.run(["bash", "-c", line]).stdout.splitlines()
        if each.startswith("ExecStart=/")
    ]
    return found[0] if found else "/usr/sbin/sshd"


def scenario() -> dict[str, Any]:
    cloud = start_cloud()
    with World(WorldSettings(AWS_PORT)) as world, tempfile.TemporaryDirectory() as folder:
        files = made(Path(folder))
        boot_directory(world, files)
        head, login, node = map(world.boot, specs(cloud, directory(cloud, files["ca.pem"])))
        machines = {"head": head, "login": login, "node": node}
        assert wait_for(
            lambda: all(READY in each.console.read_text() for each in machines.values())
        ), [each.console.read_text() for each in machines.values()]
        must(login, f"mkdir -p /run/sshd && ssh-keygen -A && {sshd(login)}")
        must(head, f"install -m 600 /dev/stdin /root/key <<'END'\n{files['key']}END")

        def ssh(name: str, line: str) -> str:
            words = [*SSH, "-i", "/root/key", f"{name}@{login.ip}", line]
            done = head.run(words)
            return done.stdout.strip() or f"{done.returncode} {done.stderr.strip()}"

        seen: dict[str, Any] = {
            "known": {name: each.run(["id", "grace"]).stdout for name, each in machines.items()},
            "grace": ssh("grace", "id -un; pwd; stat -c %U ."),
            "linus": ssh("linus", "id -un"),
            "job": ssh("grace", "sbatch --wait -t1 --wrap 'id -un; hostname; pwd' && cat *.out"),
            "password": ssh("grace", "cat /etc/sssd/conf.d/* /etc/sssd/sssd.conf"),
            "hidden": [
                name
                for name, each in machines.items()
                if PASSWORD in each.console.read_text() or PASSWORD in each.spec.user_data
            ],
            "node": node.spec.instance_id,
        }
        # What signs its certificate is not who this node trusts, and nothing is remembered.
        must(node, f"cat >/etc/sssd/tidegate-ca.pem <<'END'\n{files['other.pem']}END")
        must(node, "rm -f /var/lib/sss/db/* /var/lib/sss/mc/*; systemctl restart sssd")
        seen["not_trusted"] = node.run(["id", "grace"]).stdout
    return seen


if __name__ == "__main__":
    namespaces.enter()
    print(json.dumps(scenario()))
