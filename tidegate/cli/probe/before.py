"""What can be asked before a cluster is deployed, beside what `validate --live` asks."""

from collections.abc import Iterator

from tidegate.adapters.account import Account
from tidegate.adapters.dry_runs import try_launch
from tidegate.adapters.stacks import StackState, stack_state
from tidegate.cli.deployable import CHECKS, Answer, Check, Found, Needless, Note, Unasked, answer
from tidegate.cli.probe import rights
from tidegate.core.model.cluster import Pool
from tidegate.core.model.ec2 import Market
from tidegate.wire.config import ClusterFile
from tidegate.wire.image_names import parent_image
from tidegate.wire.problems import Problem

# Source: CloudFormation user guide, "Stack status codes": from these a stack takes no update.
_DELETED_FIRST = frozenset({"CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED"})
_FOUND_STUCK = frozenset({"DELETE_FAILED", "UPDATE_ROLLBACK_FAILED", "UPDATE_FAILED"})
_BUSY = "_IN_PROGRESS"

# Of the names that a stack gives: what CloudFormation finds there already, it refuses to make.
_NAMED = "/tidegate/{}/"


def answers(file: ClusterFile, account: Account) -> Iterator[Answer]:
    """One question after another; each as soon as AWS has answered it."""
    for check in (*CHECKS, *BEFORE):
        yield answer(check, file, account)


def stack_names(file: ClusterFile) -> tuple[str, str]:
    """The stack of what is kept, and the one of all the rest."""
    name = f"tidegate-{file.cluster.name}"
    return f"{name}-data", name


def _stacks(file: ClusterFile, account: Account) -> Found:
    """The stacks are not there yet, or in a state from which they can be deployed."""
    client = account.clients("cloudformation")
    images = (f"tidegate-{file.cluster.name}-images",) if file.images else ()
    kept, _ = stack_names(file)
    for name in (*stack_names(file), *images):
        state = stack_state(client, name)
        if state:
            yield from _stuck(name, state, is_protected=name == kept)


def _stuck(name: str, state: StackState, *, is_protected: bool) -> Iterator[Problem | Note]:
    """CDK's command line deletes what could not be made, but not what it has protected before."""
    said = f"{name} is {state.status}" + (f" ({state.reason})" if state.reason else "")
    if state.status in _DELETED_FIRST:
        unprotect = "update-termination-protection --no-enable-termination-protection"
        commands = ((unprotect,) if is_protected else ()) + ("delete-stack",)
        of_stack = (f"aws cloudformation {each} --stack-name {name}" for each in commands)
        do = f"delete it first: {' && '.join(of_stack)}"
        yield Problem((), f"{said}: no update is possible, {do}")
    elif state.status in _FOUND_STUCK:
        do = "resolve what it names, then `continue-update-rollback` or `delete-stack`"
        yield Problem((), f"{said}: {do} (docs/deploying.md)")
    elif state.status.endswith(_BUSY) and state.status != "REVIEW_IN_PROGRESS":
        yield Problem((), f"{said}: wait for its end, then ask again")


def _leftovers(file: ClusterFile, account: Account) -> Found:
    """Nothing is left of an earlier cluster of the same name."""
    client = account.clients("cloudformation")
    data, rest = (stack_state(client, name) for name in stack_names(file))
    if data and rest:
        yield Needless("the cluster is deployed")
        return
    if not rest:
        for group in account.log_groups(_NAMED.format(file.cluster.name)):
            text = f"the log group {group} is there: CloudFormation would refuse to make it"
            yield Problem(("name",), f"{text}; delete it, or name the cluster otherwise")
    if not data and (kept := account.tagged(file.cluster.name)):
        shown = ", ".join(kept[:3]) + (f" and {len(kept) - 3} more" if len(kept) > 3 else "")
        text = f"of an earlier cluster {shown} is kept: this one would get new and empty ones"
        yield Problem(("name",), f"{text}; take them up (docs/recovery.md) or delete them")


def _launch(file: ClusterFile, account: Account) -> Found:
    """EC2 would let who asks launch an instance of each pool (RunInstances with DryRun).

    Not CreateFleet: an instant fleet needs a launch template, and before a deployment there is
    none. DryRun asks for rights alone by AWS's word (API reference, RunInstances, DryRun), not for
    capacity or quotas; who asks is not the planner, whose rights are asked once it is deployed.
    """
    ec2 = account.clients("ec2")
    for pool in file.cluster.pools:
        market = next((each for each in pool.markets if each in _MARKETS), None)
        if market is None:
            yield Unasked(f"pool {pool.name} launches into reservations alone")
            continue
        kind = pool.instance_types[0]
        newest = parent_image(kind.arch, file.os, installs_driver=file.installs_driver)
        refused = try_launch(
            ec2,
            image=file.image_of(pool.name) or f"resolve:ssm:{newest}",
            instance_type=kind.name,
            zone=pool.zones[0],
            subnet_id=_subnet(file, pool),
            is_spot=market is Market.SPOT,
        )
        if refused is None:
            continue
        text = f"{kind.name} in {pool.zones[0]}: {refused}"
        if refused.is_of_caller or refused.is_of_network:
            yield Unasked(f"pool {pool.name}, {text}")
        else:
            yield Problem(("pools", pool.name), f"EC2 would refuse {text}")


def _subnet(file: ClusterFile, pool: Pool) -> str:
    """Where its nodes would be first; "": in a network that is not there yet."""
    shared = file.network.subnets
    return file.subnets_of(pool.name, pool.zones[0], shared)[0] if shared else ""


_MARKETS = (Market.ON_DEMAND, Market.SPOT)

BEFORE: tuple[Check, ...] = (
    *(_stacks, _leftovers, rights.bootstrapped, rights.rights_to_deploy),
    *(rights.rights_of_cloudformation, rights.permissions_boundary, rights.rights_to_ask),
    _launch,
)
