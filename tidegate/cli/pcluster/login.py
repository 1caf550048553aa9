"""Login nodes: ParallelCluster has pools of them, a cluster file kinds."""

import re
from collections.abc import Collection

from pydantic import ValidationError

from tidegate.cli.pcluster import custom, scripts
from tidegate.cli.pcluster.network import Places, own_subnet, stand_in_zone
from tidegate.cli.pcluster.outcome import Gap, Path, Translated, Yaml, reason
from tidegate.cli.pcluster.pools import ARM_MACHINE, is_arm
from tidegate.cli.pcluster.shape import Configuration, LoginPool
from tidegate.core.model.frozen import frozen
from tidegate.wire.login import MAX_LOGIN_NODES, LoginOptions

PREFIX_LIST = "pl-"


@frozen
class _Asked:
    """A pool of login nodes, and where the cluster file says what they are."""

    pool: LoginPool
    path: Path

    @property
    def place(self) -> str:
        return f"LoginNodes.Pools[{self.pool.name}]"

    @property
    def ssh_from(self) -> str:
        return ".".join((*self.path, "ssh_from"))


def login(old: Configuration, region: str, places: Places, done: Translated) -> None:
    """One pool is `login` itself, several are its kinds."""
    pools = old.login_pools
    # A login node has as long as a node: ParallelCluster's login_nodes_stack.py.
    said_s = old.timeouts.compute_node_bootstrap_timeout
    if len(pools) == 1:
        asked = _Asked(pools[0], ("login",))
        done.file["login"] = _pool(asked, old, region, places, done)
        actions = asked.pool.custom_actions or {}
        scripts.of_login(actions, said_s, f"{asked.place}.CustomActions", done)
    elif pools:
        made: Yaml = {}
        done.file["login"] = {"kinds": made}
        for pool in pools:
            name = _kind_name(pool.name, made)
            asked = _Asked(pool, ("login", "kinds", name))
            made[name] = _pool(asked, old, region, places, done)
            actions, place = pool.custom_actions or {}, f"{asked.place}.CustomActions"
            made[name] |= scripts.of_login_kind(actions, name, said_s, place, done)


def _pool(asked: _Asked, old: Configuration, region: str, places: Places, done: Translated) -> Yaml:
    """What its machines are, but for their scripts."""
    pool = asked.pool
    made: Yaml = {"count": min(pool.count, MAX_LOGIN_NODES)}
    if pool.count > MAX_LOGIN_NODES:
        means = f"{MAX_LOGIN_NODES} login nodes of {pool.count}: a kind has no more"
        done.lose(f"{asked.place}.Count", "login-nodes", means)
    if pool.instance_type:
        made |= _checked({"instance_type": pool.instance_type}, asked, "InstanceType", done)
    if "instance_type" not in made and is_arm(old):  # the usual one boots from none of its images
        made["instance_type"] = ARM_MACHINE
    made |= _image(old, asked, done)
    if pool.subnet:
        made |= own_subnet(old, pool.subnet, places) or {"zone": None}
        if made["zone"] is None:
            text = f"the zone of {pool.subnet}"
            stand_in = stand_in_zone(old, pool.subnet, region, places)
            done.gaps.append(Gap((*asked.path, "zone"), text, stand_in))
    groups = pool.networking.additional_security_groups if pool.networking else None
    if groups:
        where = "Networking.AdditionalSecurityGroups"
        made |= _checked({"security_groups": groups}, asked, where, done)
    made |= _ssh(old, asked, done)
    if pool.count > 1:
        means = "no load balancer is before them: LoginHost leads to all, inside the network alone"
        done.lose(asked.place, "without-harm", f"{means} (docs/users.md)", is_heavy=False)
    if policies := custom.of_machine(pool.iam, asked.place, done):
        made["policies"] = policies
    return made


def _image(old: Configuration, asked: _Asked, done: Translated) -> Yaml:
    """Its own or the cluster's, never the head's, which it has here where it names none.

    Source: ParallelCluster's cluster_config.py, login_nodes_ami.
    """
    own = asked.pool.image.custom_ami if asked.pool.image else None
    if own:
        return _checked({"image": own}, asked, "Image.CustomAmi", done)
    head = old.head_node.image.custom_ami if old.head_node and old.head_node.image else None
    cluster = old.image.custom_ami if old.image else None
    if not head or head == cluster:
        return {}
    if cluster:
        return {"image": cluster}
    means = f"they boot from the head's image ({head}), not from AWS's: name one in"
    image = ".".join((*asked.path, "image"))
    done.lose(asked.place, "without-harm", f"{means} {image}", is_heavy=False)
    return {}


def _kind_name(pool: str, taken: Collection[str]) -> str:
    """The pool's, as far as a host's name may have it, and no other's."""
    name = re.sub(r"[^a-z0-9]+", "-", pool.lower()).strip("-")
    name = name if name[:1].isalpha() else f"login-{name}".rstrip("-")
    known = {each.replace("-", "") for each in taken}
    names = (name[:31].rstrip("-"), *(f"{name[:28].rstrip('-')}-{n}" for n in range(2, 100)))
    return next(each for each in names if each.replace("-", "") not in known)


def _ssh(old: Configuration, asked: _Asked, done: Translated) -> Yaml:
    """From where SSH is open there: a pool that does not say it has the head's word."""
    place = f"{asked.place}.Ssh.AllowedIps"
    of_head = old.head_node.ssh if old.head_node else None
    said = [each.allowed_ips for each in (asked.pool.ssh, of_head) if each and each.allowed_ips]
    if said and said[0].startswith(PREFIX_LIST):
        means = f"{said[0]} is a list of networks: name them in {asked.ssh_from}"
        done.lose(place, "login-nodes", means)
        return {}
    if said:
        return _checked({"ssh_from": said[:1]}, asked, "Ssh.AllowedIps", done)
    means = "open to everybody when left out, and here to nobody: name networks in"
    done.lose(place, "login-nodes", f"{means} {asked.ssh_from}")
    return {}


def _checked(part: Yaml, asked: _Asked, key: str, done: Translated) -> Yaml:
    """The part of the file, or nothing where it may not stand there."""
    try:
        LoginOptions.model_validate(part)
    except ValidationError as error:
        text = f"is left out: {reason(error, LoginOptions)}"
        done.lose(f"{asked.place}.{key}", "login-nodes", text)
        return {}
    return part
