"""A head, a login node and a node: people log in by SSH, and work from there.

A program of its own, since pytest stays outside the namespaces: prints what happened as JSON.

    python -m tests.boot.login_world
"""

import json
import time
from dataclasses import replace
from typing import Any

from local import namespaces
from local.boot.cloud import AWS_PORT, Cloud, publish, start_cloud
from local.boot.machines import LOCAL_NODE, LOCAL_SLURM, READY, data_of_head, data_of_node
from local.boot.values import HEAD, T4X1
from local.machine import Machine, MachineSpec
from local.waiting import wait_for
from local.world import World, WorldSettings
from tests.e2e.secrecy import reaches_files, reaches_imds
from userdata.render import Hook, LoginValues, login_bundle, login_parameter, login_user_data

PARAMETER = "/tidegate/dev/login"
HOOK = Hook("inline:IyEvYmluL3NoCmVjaG8gaG9vayA+L2V0Yy9sb2NhbC1sb2dpbgo=")  # writes a file
# What the agent does with the people of the head.
PUBLISH = (
    "for each in passwd group; do"
    " getent $each | awk -F: '$3 >= 1000 && $3 < 60000' >/shared/.tidegate/users/$each; done"
)


def told(cloud: Cloud, values: LoginValues) -> str:
    """The user data of login nodes, whose parameter and bundle are there."""
    text = login_parameter(values, publish(cloud, login_bundle(values)))
    cloud.client("ssm").put_parameter(Name=PARAMETER, Value=text, Type="String", Overwrite=True)
    return login_user_data(values, PARAMETER)


def must(machine: Machine, line: str) -> str:
    done = machine.run(["bash", "-c", line])
    assert done.returncode == 0, f"{line}: {done.stderr}"
    return done.stdout.strip()


class Person:
    """Somebody at home with a key, whom the head lets in nowhere."""

    def __init__(self, name: str, head: Machine, login: Machine) -> None:
        self._name, self._head, self._login = name, head, login
        self._key = f"/root/{name}"
        must(head, f"ssh-keygen -q -t ed25519 -N '' -f {self._key}")
        must(head, f'/usr/local/sbin/tidegate-user add {name} --key "$(cat {self._key}.pub)"')

    def ssh(self, line: str) -> str:
        """What the command says there; how ssh ended, when it said nothing."""
        options = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
        to = f"{self._name}@{self._login.ip}"
        ssh = ["ssh", *options.split(), "-o", "BatchMode=yes", "-i", self._key, to, line]
        done = self._head.run(ssh)
        return done.stdout.strip() or f"{done.returncode} {done.stderr.strip()}"


def boot(cloud: Cloud, world: World) -> tuple[Machine, Machine, Machine, LoginValues]:
    """All three at once, as a first deployment does."""
    login = LoginValues(
        slurm=LOCAL_SLURM,
        munge=cloud.munge,
        shared=HEAD.shared,
        update_poll_s=1,
        users_poll_s=0.5,
        on_login_configured=(HOOK,),
    )
    head = replace(HEAD, slurm=LOCAL_SLURM, munge=cloud.munge, agent=None)
    node = replace(LOCAL_NODE, munge=cloud.munge)
    of_head, of_login = data_of_head(cloud, head), told(cloud, login)
    pool = {"tidegate:pool": "cheap"}
    role = {"tidegate:role": "login"}
    made = (
        world.boot(MachineSpec("i-0123456789abcdef0", "m7i.large", of_head, is_head=True)),
        world.boot(MachineSpec("i-0a0a0a0a0a0a0a0a0", "m7i.large", of_login, tags=role)),
        world.boot(
            MachineSpec(
                "i-0b0b0b0b0b0b0b0b0",
                T4X1.instance_type,
                data_of_node(cloud, node),
                gpus=1,
                tags=pool,
            )
        ),
    )
    assert wait_for(lambda: all(READY in each.console.read_text() for each in made)), [
        each.console.read_text() for each in made
    ]
    return *made, login


def scenario() -> dict[str, Any]:
    cloud = start_cloud()
    with World(WorldSettings(AWS_PORT)) as world:
        head, login, node, values = boot(cloud, world)
        must(login, "mkdir -p /run/sshd && ssh-keygen -A && /usr/sbin/sshd")
        ada = Person("ada", head, login)
        seen: dict[str, Any] = {"unpublished": ada.ssh("id -un")}
        must(head, PUBLISH)
        began_s = time.monotonic()
        wait_for(lambda: ada.ssh("id -un") == "ada")
        seen |= {"known_s": time.monotonic() - began_s, "id": ada.ssh("id -un; pwd")}
        asked = "--gres=gpu:t4:1 -t1"
        seen["batch"] = ada.ssh(
            f"sbatch --parsable --wait {asked} --wrap 'hostname; pwd'; cat *.out"
        )
        seen["srun"] = ada.ssh(f"srun {asked} hostname")
        seen["why"] = ada.ssh("bash -lc 'type -t why; scontrol ping'")
        seen["imds"] = {user: reaches_imds(login, user) for user in ("root", "ada")}
        seen["files"] = {user: reaches_files(login, user) for user in ("root", "ada")}
        seen["key"] = ada.ssh("cat /etc/munge/munge.key")
        seen["sudo"] = ada.ssh("sudo -n id")
        seen["hook"] = must(login, "cat /etc/local-login")
        seen["daemons"] = login.run(["pgrep", "-l", "slurm"]).stdout
        seen["slice"] = must(login, "cat /etc/systemd/system/user-.slice.d/*.conf")
        seen["node"] = node.spec.instance_id

        must(head, "userdel ada")
        must(head, PUBLISH)
        wait_for(lambda: ada.ssh("id -un") != "ada")
        seen["gone"] = ada.ssh("id -un")

        other = replace(values.slurm, settings=(*values.slurm.settings, ("MaxArraySize", "77")))
        told(cloud, replace(values, slurm=other))
        conf = "/etc/slurm/slurm.conf"
        wait_for(lambda: "MaxArraySize=77" in login.run(["cat", conf]).stdout)
        seen["deployed"] = must(login, f"grep MaxArraySize {conf}")
    return seen


if __name__ == "__main__":
    namespaces.enter()
    print(json.dumps(scenario()))
