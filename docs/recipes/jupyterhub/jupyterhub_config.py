"""JupyterHub on a login node of Tidegate: each notebook is a job of Slurm's (docs/jupyterhub.md).

Names of options are those of JupyterHub 6.1, batchspawner 1.3 and Jupyter Server 2.
"""

import pwd
import socket
import subprocess
from pathlib import Path
from typing import Any

import batchspawner  # noqa: F401  by which a notebook tells the hub its port
from jupyterhub.auth import Authenticator

c = get_config()  # noqa: F821  the hub's own

FOLDER = Path(__file__).parent
VENV, HOMES = FOLDER / "venv", FOLDER.parent / "home"
STATE = "/var/lib/jupyterhub"
MINUTE_S = 60

# What people choose from: the first is chosen for them. Each is an ordinary job.
PROFILES: dict[str, dict[str, str]] = {
    "1 GPU, 4 hours": {"req_gres": "gpu:1", "req_runtime": "4:00:00"},
    "1 T4, 8 hours": {"req_gres": "gpu:t4:1", "req_runtime": "8:00:00"},
    "4 GPUs, 2 hours": {"req_gres": "gpu:4", "req_runtime": "2:00:00"},
}
# A notebook in which nothing has run for so long ends, and with it its job.
IDLE_S = 60 * MINUTE_S
# Twice `timings.boot_bound_s`: one node may fail to boot, which is known a minute after it, and the
# next one is waited for.
START_S = 30 * MINUTE_S


class MungeAuthenticator(Authenticator):  # type: ignore[misc]
    """Who can log in to the cluster can log in here: `jupyter-password` makes the password.

    Munge signs who made it, for the hub's eyes only and for five minutes, and takes each once.
    """

    async def authenticate(self, handler: Any, data: dict[str, str]) -> str | None:
        done = subprocess.run(
            ["unmunge", "--numeric", "--keys=UID"],
            input=data["password"].strip(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            self.log.warning("unmunge: %s", done.stderr.strip())
            return None
        told, _, purpose = done.stdout.partition("\n\n")
        person = pwd.getpwuid(int(told.removeprefix("UID:")))
        is_person = Path(person.pw_dir).parent == HOMES
        is_meant = (purpose, data["username"]) == ("jupyterhub", person.pw_name)
        return person.pw_name if is_person and is_meant else None


def choose(spawner: Any, asked: dict[str, Any]) -> None:
    """What a profile asks of Slurm. Errors: ValueError, which people see as a bad request."""
    name = asked.get("profile", next(iter(PROFILES)))
    if asked.keys() - {"profile"} or name not in PROFILES:
        raise ValueError(f"no such profile: {asked}")
    for option, value in PROFILES[name].items():
        setattr(spawner, option, value)


# Nobody but the login node itself reaches the front door: people come through a tunnel.
c.JupyterHub.bind_url = "http://127.0.0.1:8000"
# Notebooks on nodes speak to the hub here; the login node's group lets head and nodes in alone.
c.JupyterHub.hub_ip = "0.0.0.0"
c.JupyterHub.hub_connect_ip = socket.gethostname()
c.JupyterHub.db_url = f"sqlite:///{STATE}/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = f"{STATE}/cookie_secret"
c.ConfigurableHTTPProxy.pid_file = f"{STATE}/proxy.pid"
# A hub that starts again finds the notebooks that run.
c.JupyterHub.cleanup_servers = False

c.JupyterHub.authenticator_class = MungeAuthenticator
c.Authenticator.allow_all = True

c.JupyterHub.spawner_class = "batchspawner.SlurmSpawner"
c.Spawner.cmd = [f"{VENV}/bin/jupyterhub-singleuser"]
c.Spawner.default_url = "/lab"
c.Spawner.start_timeout = START_S
c.Spawner.http_timeout = 2 * MINUTE_S
c.Spawner.options_form = (
    '<select class="form-control" name="profile">'
    + "".join(f"<option>{name}</option>" for name in PROFILES)
    + "</select>"
)
c.Spawner.options_from_form = "simple"
c.Spawner.apply_user_options = choose
# Each ends what is idle and nothing that computes, whether the hub is there or not.
c.Spawner.args = [
    f"--MappingKernelManager.cull_idle_timeout={IDLE_S}",
    f"--MappingKernelManager.cull_interval={MINUTE_S}",
    "--MappingKernelManager.cull_connected=True",
    f"--TerminalManager.cull_inactive_timeout={IDLE_S}",
    f"--TerminalManager.cull_interval={MINUTE_S}",
    f"--ServerApp.shutdown_no_activity_timeout={IDLE_S}",
]

c.SlurmSpawner.exec_prefix = "sudo -E /usr/local/sbin/jupyterhub-as {username}"
c.SlurmSpawner.batchspawner_singleuser_cmd = f"{VENV}/bin/batchspawner-singleuser"
# While a node boots, each look is a question to slurmctld.
c.SlurmSpawner.startup_poll_interval = 2.0
# On demand, and never started again: a second run would have another address and no hub.
c.SlurmSpawner.req_options = "--constraint=on-demand --no-requeue"
c.SlurmSpawner.batch_script = """#!/bin/bash
#SBATCH --job-name=jupyter
#SBATCH --output={{homedir}}/.jupyterhub.log
#SBATCH --open-mode=truncate
#SBATCH --chdir={{homedir}}
#SBATCH --export={{keepvars}}
#SBATCH --time={{runtime}}
#SBATCH --gres={{gres}}
{% if partition %}#SBATCH --partition={{partition}}
{% endif %}#SBATCH {{options}}
exec {{cmd}}
"""
