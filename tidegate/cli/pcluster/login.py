"""Login nodes: ParallelCluster has pools of them, a cluster file one kind."""

from pydantic import ValidationError

from tidegate.cli.pcluster import custom, scripts
from tidegate.cli.pcluster.network import Places, own_subnet, stand_in_zone
from tidegate.cli.pcluster.outcome import Gap, Translated, Yaml, reason
from tidegate.cli.pcluster.shape import Configuration, LoginPool
from tidegate.wire.login import LoginModel

PREFIX_LIST = "pl-"


def login(old: Configuration, region: str, places: Places, done: Translated) -> None:
    """Those of the first pool; the others are told."""
    pools = old.login_pools
    for other in pools[1:]:
        means = f"there is one kind of login nodes: those of {pools[0].name}"
        done.lose(_place(other), "login-nodes", means)
    if not pools:
        return
    first = pools[0]
    made: Yaml = {"count": first.count}
    if first.instance_type:
        made |= _checked({"instance_type": first.instance_type}, first, "InstanceType", done)
    if first.image and first.image.custom_ami:
        made |= _checked({"image": first.image.custom_ami}, first, "Image.CustomAmi", done)
    if first.subnet:
        made |= own_subnet(old, first.subnet, places) or {"zone": None}
        if made["zone"] is None:
            text = f"the zone of {first.subnet}"
            stand_in = stand_in_zone(old, first.subnet, region, places)
            done.gaps.append(Gap(("login", "zone"), text, stand_in))
    groups = first.networking.additional_security_groups if first.networking else None
    if groups:
        where = "Networking.AdditionalSecurityGroups"
        made |= _checked({"security_groups": groups}, first, where, done)
    made |= _ssh(old, first, done)
    if first.count > 1:
        means = "no load balancer is before them: LoginHost leads to all, inside the network alone"
        done.lose(_place(first), "without-harm", f"{means} (docs/users.md)", is_heavy=False)
    if policies := custom.of_machine(first.iam, _place(first), done):
        made["policies"] = policies
    done.file["login"] = made
    said_s, where = old.timeouts.head_node_bootstrap_timeout, f"{_place(first)}.CustomActions"
    scripts.of_login(first.custom_actions or {}, said_s, where, done)


def _ssh(old: Configuration, pool: LoginPool, done: Translated) -> Yaml:
    """From where SSH is open there: a pool that does not say it has the head's word."""
    of_head = old.head_node.ssh if old.head_node else None
    said = [each.allowed_ips for each in (pool.ssh, of_head) if each and each.allowed_ips]
    if said and said[0].startswith(PREFIX_LIST):
        means = f"{said[0]} is a list of networks: name them in login.ssh_from"
        done.lose(f"{_place(pool)}.Ssh.AllowedIps", "login-nodes", means)
        return {}
    if said:
        return _checked({"ssh_from": said[:1]}, pool, "Ssh.AllowedIps", done)
    means = "open to everybody when left out, and here to nobody: name networks in login.ssh_from"
    done.lose(f"{_place(pool)}.Ssh.AllowedIps", "login-nodes", means)
    return {}


def _place(pool: LoginPool) -> str:
    return f"LoginNodes.Pools[{pool.name}]"


def _checked(part: Yaml, pool: LoginPool, key: str, done: Translated) -> Yaml:
    """The part of the file, or nothing where it may not stand there."""
    try:
        LoginModel.model_validate(part)
    except ValidationError as error:
        text = f"is left out: {reason(error, LoginModel)}"
        done.lose(f"{_place(pool)}.{key}", "login-nodes", text)
        return {}
    return part
