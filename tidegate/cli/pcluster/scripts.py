"""Scripts of a site's own at the boot (CustomActions), and what they read of ParallelCluster."""

import re
from collections.abc import Mapping

from pydantic import ValidationError

from tidegate.cli.pcluster.outcome import Gap, Translated, Yaml, reason
from tidegate.cli.pcluster.shape import Actions, Script
from tidegate.wire.hooks import HookModel

# ParallelCluster's words -> ours, on nodes and on the head, which has one moment for them.
OF_NODES = {"OnNodeStart": "on_node_start", "OnNodeConfigured": "on_node_configured"}
OF_HEAD = {"OnNodeConfigured": "on_head_configured"}
OF_LOGIN = {"OnNodeConfigured": "on_login_configured"}
# ParallelCluster's own default; a boot and all its scripts have it together there.
BOOTSTRAP_S = 1800
MAX_S = 3600
STAND_IN_SHA256 = "0" * 64

# AWS's own, which needs folders that only ParallelCluster's images have. Source:
# aws-samples/aws-parallelcluster-post-install-scripts, pyxis/postinstall.sh.
_PYXIS = re.compile(r"aws-parallelcluster-post-install-scripts/.*/?pyxis/postinstall\.sh$")

# Source: aws-parallelcluster-cookbook, its template cfnconfig.erb. User 1000 is the system's own.
_FACTS = """\
#!/bin/bash
# What scripts that were written for ParallelCluster read. If none of yours does, delete this hook.
case $TIDEGATE_ROLE in head) type=HeadNode ;; login) type=LoginNode ;; *) type=ComputeFleet ;; esac
mkdir -p /etc/parallelcluster
cat >/etc/parallelcluster/cfnconfig <<END
stack_name={name}
cfn_region=$AWS_REGION
cfn_scheduler=slurm
cfn_node_type=$type
cfn_cluster_user=$(id -un 1000)
cfn_ephemeral_dir=/scratch
cfn_ebs_shared_dirs=$TIDEGATE_SHARED_DIR
END
"""
_FACTS_S = 60

type Path = tuple[str, ...]


def of_head(actions: Actions, said_s: int | None, done: Translated) -> None:
    """`said_s`: the time-out of its boot."""
    _of_machine(actions, OF_HEAD, said_s, "HeadNode.CustomActions", done)


def of_login(actions: Actions, said_s: int | None, place: str, done: Translated) -> None:
    """The scripts of all login nodes. `said_s`: the time-out of their boot."""
    _of_machine(actions, OF_LOGIN, said_s, place, done)


def of_login_kind(
    actions: Actions, name: str, said_s: int | None, place: str, done: Translated
) -> Yaml:
    """Those of one kind of several. `said_s`: the time-out of their boot."""
    path = ("login", "kinds", name, "hooks")
    return _own(_hooks(actions, OF_LOGIN, path, place, done), "on_login_configured", said_s, done)


def of_pool(actions: Actions, name: str, said_s: int | None, place: str, done: Translated) -> Yaml:
    """Those of a queue, for the pool of this name. `said_s`: the time-out of its nodes' boot."""
    made = _hooks(actions, OF_NODES, ("pools", name, "hooks"), place, done)
    return _own(made, "on_node_start", said_s, done)


def _own(made: Yaml, first: str, said_s: int | None, done: Translated) -> Yaml:
    """Scripts of some machines; what they read of ParallelCluster is written `first`, on all."""
    if not made:
        return {}
    of_all: Yaml = done.file.setdefault("hooks", {})
    of_all.setdefault(first, [_facts(done)])
    return {"hooks": _timed(made, said_s)}


def _of_machine(
    actions: Actions, words: Mapping[str, str], said_s: int | None, place: str, done: Translated
) -> None:
    (moment,) = words.values()
    before = {moment: [_facts(done)]}
    made = _timed(_hooks(actions, words, ("hooks",), place, done, before), said_s)
    if len(made[moment]) > 1:
        done.file.setdefault("hooks", {}).update(made)


def _facts(done: Translated) -> Yaml:
    return {"inline": _FACTS.format(name=done.file["name"]), "timeout_s": _FACTS_S}


def _timed(hooks: Yaml, said_s: int | None) -> Yaml:
    """A script may take as long as there; that is for all together there, and for each here."""
    timeout_s = min(said_s or BOOTSTRAP_S, MAX_S)
    for scripts in hooks.values():
        for each in scripts:
            each.setdefault("timeout_s", timeout_s)
    return hooks


def _hooks(
    actions: Actions,
    words: Mapping[str, str],
    path: Path,
    place: str,
    done: Translated,
    before: Yaml | None = None,
) -> Yaml:
    """Their scripts in order, after those `before`. One by HTTP needs its checksum, which only you
    can make.
    """
    made: Yaml = dict(before or {})
    for moment, action in actions.items():
        if not action:
            continue
        if moment not in words:
            means = f"scripts do not run then; see hooks.{[*words.values()][-1]}"
            done.lose(f"{place}.{moment}", "hooks", means)
            continue
        for script in action.sequence or [action]:
            if _PYXIS.search(script.script or ""):
                _containers(script, done)
                continue
            index = str(len(made.get(words[moment], ())))  # among those that run
            hook = _hook(script, (*path, words[moment], index), f"{place}.{moment}", done)
            if hook:
                made.setdefault(words[moment], []).append(hook)
    return made


def _containers(script: Script, done: Translated) -> None:
    done.file["containers"] = "pyxis"
    note = f"{script.script}: containers: pyxis brings what it does (docs/containers.md)"
    if note not in done.notes:
        done.notes.append(note)


def _hook(script: Script, path: Path, place: str, done: Translated) -> Yaml:
    hook: Yaml = {"source": script.script}
    if script.args:
        hook["args"] = [str(each) for each in script.args]
    is_http = str(hook["source"]).startswith("http")
    try:
        HookModel.model_validate(hook | ({"sha256": STAND_IN_SHA256} if is_http else {}))
    except ValidationError as error:
        done.lose(place, "hooks", f"{hook['source']} does not run: {reason(error, HookModel)}")
        return {}
    if is_http:
        hook["sha256"] = None
        text = f"of {hook['source']}: curl -fsS URL | sha256sum"
        done.gaps.append(Gap((*path, "sha256"), text, STAND_IN_SHA256))
    return hook
