"""A domain controller of Active Directory (Samba's), and a machine that asks it by sssd.

A program of its own, since pytest stays outside the namespaces: prints what happened as JSON.

    python -m tests.boot.ad_world
"""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from local import namespaces
from local.boot.cloud import AWS_PORT
from local.machine import Machine, MachineSpec
from local.waiting import wait_for
from local.world import World, WorldSettings
from tests.boot.directory_world import HOST, made
from userdata.directory import asked

LAYER = Path("/var/tmp/tidegate-active-directory")
BASE = "DC=ad,DC=example,DC=com"
READER, PASSWORD, ADAS = f"CN=reader,CN=Users,{BASE}", "Only-reads.1", "Passw0rd.ada"
AUTHTOK = f"[domain/tidegate]\nldap_default_authtok = {PASSWORD}\n"
# Members of members too.
MAY_LOG_IN = f"(memberOf:1.2.840.113556.1.4.1941:=CN=hpc,CN=Users,{BASE})"

CONTROLLER = f"""#!/bin/bash
set -e
rm -f /etc/samba/smb.conf
samba-tool domain provision --realm=AD.EXAMPLE.COM --domain=AD --host-name=dc --quiet \\
    --adminpass=Passw0rd.root --server-role=dc --dns-backend=NONE \\
    --option='posix:eadb=/var/lib/samba/private/eadb.tdb'
chmod 600 /etc/ldap/server.key
for line in certfile=server.pem keyfile=server.key cafile=ca.pem; do
    sed -i "/\\[global\\]/a tls ${{line%%=*}} = /etc/ldap/${{line#*=}}" /etc/samba/smb.conf
done
samba-tool user create Ada.Lovelace {ADAS} --use-username-as-cn
samba-tool user create linus Passw0rd.linus
samba-tool user create grace Passw0rd.grace
samba-tool user create reader {PASSWORD}
samba-tool group add hpc
samba-tool group add 'GPU Users'
samba-tool group addmembers hpc 'GPU Users'
samba-tool group addmembers 'GPU Users' Ada.Lovelace,grace
samba-tool user disable grace
for name in Ada.Lovelace grace; do
    ldbmodify -H /var/lib/samba/private/sam.ldb <<END
dn: CN=$name,CN=Users,{BASE}
changetype: modify
add: altSecurityIdentities
altSecurityIdentities: $(</etc/ldap/key.pub)
END
done
samba -D
until (echo >/dev/tcp/127.0.0.1/636) 2>/dev/null; do sleep 0.05; done
touch /run/up
"""

CLIENT = """#!/bin/bash
set -e
chmod 600 /etc/sssd/sssd.conf /etc/sssd/conf.d/*
sssd -D
touch /run/up
"""

# Whether PAM takes the password, and lets the account in, as sshd asks it; 0 is yes.
PAM = """\
import ctypes as c, sys
lib, libc = c.CDLL("libpam.so.0"), c.CDLL("libc.so.6")
libc.calloc.restype = libc.strdup.restype = c.c_void_p
class Message(c.Structure): _fields_ = [("style", c.c_int), ("text", c.c_char_p)]
class Answer(c.Structure): _fields_ = [("text", c.c_void_p), ("code", c.c_int)]
MANY = c.POINTER(c.POINTER(Message))
ASK = c.CFUNCTYPE(c.c_int, c.c_int, MANY, c.POINTER(c.c_void_p), c.c_void_p)
class Conversation(c.Structure): _fields_ = [("ask", ASK), ("data", c.c_void_p)]
user, password = sys.argv[1:]
def ask(count, messages, answers, data):
    made = libc.calloc(count, c.sizeof(Answer))
    for each in c.cast(made, c.POINTER(Answer * count)).contents:
        each.text = libc.strdup(password.encode())
    answers[0] = made
    return 0
with_us, handle = Conversation(ASK(ask), None), c.c_void_p()
lib.pam_start(b"tidegate", user.encode(), c.byref(with_us), c.byref(handle))
print(lib.pam_authenticate(handle, 0), lib.pam_acct_mgmt(handle, 0))
"""


def boot_controller(world: World, files: dict[str, str]) -> Machine:
    names = ("ca.pem", "server.pem", "server.key", "key.pub")
    kept = {f"/etc/ldap/{name}": files[name] for name in names}
    return booted(world, MachineSpec(HOST.partition(".")[0], "m7i.large", CONTROLLER, files=kept))


def booted(world: World, spec: MachineSpec) -> Machine:
    machine = world.boot(replace(spec, layer=LAYER))
    is_up = wait_for(lambda: not machine.run(["test", "-e", "/run/up"]).returncode, 60)
    assert is_up, machine.console.read_text()[-3000:]
    return machine


def boot_client(world: World, ca: str) -> Machine:
    """With the files that the stage `directory` writes."""
    found = asked(
        uris=[f"ldaps://{HOST}"],
        search_base=BASE,
        schema="ad",
        bind_dn=READER,
        secret="asked-elsewhere",
        ca_certificate=ca,
        access_filter=MAY_LOG_IN,
    )
    files = {
        "/etc/sssd/sssd.conf": found.conf("/shared"),
        "/etc/sssd/tidegate-ca.pem": ca,
        "/etc/sssd/conf.d/10-authtok.conf": AUTHTOK,
        "/etc/nsswitch.conf": "passwd: files sss\ngroup: files sss\nhosts: files dns\n",
        "/etc/pam.d/tidegate": "auth required pam_sss.so\naccount required pam_sss.so\n",
        "/root/pam.py": PAM,
    }
    machine = booted(world, MachineSpec("i-0c0c0c0c0c0c0c0c0", "m7i.large", CLIENT, files=files))
    known = wait_for(lambda: not machine.run(["id", "linus"]).returncode, 20)
    assert known, machine.run(["cat", "/var/log/sssd/sssd_tidegate.log"]).stdout[-3000:]
    return machine


def scenario() -> dict[str, Any]:
    with World(WorldSettings(AWS_PORT)) as world, tempfile.TemporaryDirectory() as folder:
        files = made(Path(folder))
        boot_controller(world, files)
        client = boot_client(world, files["ca.pem"])

        def said(*words: str) -> str:
            return client.run(list(words)).stdout.strip()

        def pam(user: str, password: str) -> str:
            return said("/usr/bin/python3", "/root/pam.py", user, password)

        return {
            "people": {n: said("getent", "passwd", n) for n in ("ada.lovelace", "Ada.Lovelace")},
            "groups": said("id", "-Gn", "ADA.LOVELACE"),
            "number": said("id", "-u", "ada.lovelace"),
            "key": said("sss_ssh_authorizedkeys", "ada.lovelace"),
            "pub": files["key.pub"].strip(),
            "ada": pam("ada.lovelace", ADAS),
            "wrong": pam("ada.lovelace", "Passw0rd.linus"),
            "linus": pam("linus", "Passw0rd.linus"),
            "grace": pam("grace", "Passw0rd.grace"),
            "known": said("id", "-un", "grace"),
        }


if __name__ == "__main__":
    namespaces.enter()
    print(json.dumps(scenario()))
