"""JupyterHub by its recipe on a login node: a notebook is a job, and ends when nobody uses it.

By hand, since its packages are heavy: `scripts/jupyterhub.sh` fetches them and runs this, which
prints what happened as JSON. Four minutes.

    python -m tests.boot.jupyterhub_world SHARED    # what the head's hook made, for its folder
"""

import json
import subprocess
import sys
import time
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
from tests.boot.login_world import PUBLISH, must, told
from userdata.render import Hook, LoginValues

LAYER = Path("/var/tmp/tidegate-jupyterhub")
RECIPE = Path("/shared/jupyterhub")
PERSON = Path(__file__).with_name("jupyterhub_person.py")
# The recipe's hour, shortened; and a cell that is silent for far longer than that.
IDLE_S, SILENT_S = 20, 150
HOUR = "IDLE_S = 60 * MINUTE_S"
INLINE = "inline:IyEvYmluL2Jhc2gKZXhlYyAvc2hhcmVkL2p1cHl0ZXJodWIvaW5zdGFsbC5zaCBodWIK"
# Parts of what is seen; the rest are times.
EXPECTED: dict[str, Any] = {
    "before": {"as another": False, "again": False},
    "notebook": {"logged_in": True, "other options": 400, "no profile": 400, "asked": 200},
    "cell": ["i-0b0b0b0b0b0b0b0b0", "0", "/shared/home/ada"],
    "queue": "jupyter ada RUNNING 8:00:00 gres:gpu:t4:1",
    "queue when it had computed": "jupyter ada RUNNING 8:00:00 gres:gpu:t4:1",
    "busy": {"after a restart": True, "silent": "computed\n"},
    "unknown options": [],
    "who": ["jupyterhub"],
    "hub as": {"root squeue": 3, "daemon squeue": 3, "ada id": 2, "ada squeue": 0},
}


def boot(cloud: Cloud, world: World) -> tuple[Machine, Machine, Machine]:
    login = LoginValues(
        slurm=LOCAL_SLURM,
        munge=cloud.munge,
        shared=HEAD.shared,
        users_poll_s=0.5,
        on_login_configured=(Hook(INLINE),),
    )
    head = data_of_head(cloud, replace(HEAD, slurm=LOCAL_SLURM, munge=cloud.munge, agent=None))
    node = data_of_node(cloud, replace(LOCAL_NODE, munge=cloud.munge))
    role, pool = {"tidegate:role": "login"}, {"tidegate:pool": "gpu"}
    of_login = MachineSpec("i-0a0a0a0a0a0a0a0a0", "m7i.large", told(cloud, login), tags=role)
    of_node = MachineSpec("i-0b0b0b0b0b0b0b0b0", T4X1.instance_type, node, gpus=1, tags=pool)
    made = (
        world.boot(MachineSpec("i-0123456789abcdef0", "m7i.large", head, is_head=True)),
        world.boot(replace(of_login, layer=LAYER)),
        world.boot(of_node),
    )
    assert wait_for(lambda: all(READY in each.console.read_text() for each in made)), [
        each.console.read_text() for each in made
    ]
    return made


def password(login: Machine) -> str:
    """The line that `jupyter-password` prints it on."""
    said = login.run(["jupyter-password"], user="ada", input="").stdout.splitlines()
    return next(each for each in said if each.startswith("MUNGE:"))


def queue(head: Machine) -> str:
    return head.run(["squeue", "-h", "-o", "%j %u %T %l %b"]).stdout.strip()


def spent(login: Machine, head: Machine) -> dict[str, Any]:
    """All that ada does, and what Slurm shows meanwhile."""
    argv = [str(RECIPE / "venv/bin/python"), str(PERSON), "ada", password(login), str(SILENT_S)]
    spaces = [
        "nsenter",
        "-t",
        str(login.init_pid),
        *("--net", "--uts", "--mount", "--pid", "--ipc", "--root"),
    ]
    line = [*spaces, "--wd=/", "setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", *argv]
    with subprocess.Popen(line, stdin=-1, stdout=-1, text=True, env={"HOME": "/tmp"}) as ada:
        assert ada.stdin
        assert ada.stdout

        def heard(word: str = "") -> Any:
            assert ada.stdin
            assert ada.stdout
            if word:
                ada.stdin.write(f"{word}\n")
                ada.stdin.flush()
            return json.loads(ada.stdout.readline())

        seen = {"before": heard(), "notebook": heard(password(login)), "queue": queue(head)}
        seen["cell"] = seen["notebook"].pop("cell")
        must(login, "systemctl restart jupyterhub")
        seen["busy"] = heard("go on")
        began_s = time.monotonic()
        seen["queue when it had computed"] = queue(head)
        assert wait_for(lambda: not queue(head), 300)
        seen["idle_until_gone_s"] = round(time.monotonic() - began_s, 1)
        seen["hub"] = heard("it is gone")
    return seen


def scenario(shared: Path) -> dict[str, Any]:
    cloud = start_cloud()
    with World(WorldSettings(AWS_PORT)) as world:
        subprocess.run(["cp", "-a", str(shared), str(world.shared_dir / RECIPE.name)], check=True)
        config = world.shared_dir / RECIPE.name / "jupyterhub_config.py"
        assert HOUR in config.read_text()
        config.write_text(config.read_text().replace(HOUR, f"IDLE_S = {IDLE_S}"))
        began_s = time.monotonic()
        head, login, _node = boot(cloud, world)
        seen: dict[str, Any] = {"booted_s": round(time.monotonic() - began_s, 1)}
        must(head, "/usr/local/sbin/tidegate-user add ada")
        must(head, PUBLISH)
        assert wait_for(lambda: login.run(["id", "ada"]).returncode == 0)
        try:
            seen |= spent(login, head)
        finally:
            print(login.run(["cat", "/var/log/units/jupyterhub.log"]).stdout, file=sys.stderr)
            print(head.run(["bash", "-c", "cat ~ada/.jupyterhub.log"]).stdout, file=sys.stderr)
        log = login.run(["cat", "/var/log/units/jupyterhub.log"]).stdout
        seen["unknown options"] = [each for each in log.splitlines() if "not recognized" in each]
        seen["who"] = must(
            login, "ps -o user= -C jupyterhub,node,configurable-ht | sort -u"
        ).split()
        as_root = "runuser -u jupyterhub -- sudo -n /usr/local/sbin/jupyterhub-as"
        seen["hub as"] = {
            asked: login.run(["bash", "-c", f"{as_root} {asked}"]).returncode
            for asked in EXPECTED["hub as"]
        }
    return seen


def holds(said: Any, seen: Any) -> bool:
    return said.items() <= seen.items() if isinstance(said, dict) else bool(said == seen)


if __name__ == "__main__":
    namespaces.enter()
    found = scenario(Path(sys.argv[1]))
    print(json.dumps(found, indent=2))
    if wrong := [part for part, said in EXPECTED.items() if not holds(said, found[part])]:
        sys.exit(f"not as expected: {', '.join(wrong)}")
