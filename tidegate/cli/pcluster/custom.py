"""What a site adds of its own: tags, security groups, rights, faster root volumes."""

from pydantic import TypeAdapter, ValidationError

from tidegate.cli.pcluster import scripts
from tidegate.cli.pcluster.outcome import Gap, Translated, Yaml, reason
from tidegate.cli.pcluster.shape import Configuration, MachineIam, Queue, QueueIam
from tidegate.wire import names
from tidegate.wire.deployment import HeadModel
from tidegate.wire.pool_models import PoolModel
from tidegate.wire.root_volume import INCLUDED_IOPS, INCLUDED_MIB_S
from tidegate.wire.section import Section
from tidegate.wire.tags import Tags

# Session Manager comes with every machine.
HAS_ALREADY = ":policy/AmazonSSMManagedInstanceCore"
STAND_IN_ROLE = "arn:aws:iam::123456789012:role/jobs"
_ROLE: TypeAdapter[str] = TypeAdapter(names.RoleArn, config={"defer_build": True})


class _Tagged(Section):
    """The part of a cluster file that has tags."""

    tags: Tags


def of_cluster(old: Configuration, done: Translated) -> None:
    """Tags of everything, and what the head has of its own."""
    tags: dict[str, str] = {}
    for each in old.tags or ():
        try:
            tags = dict(_Tagged.model_validate({"tags": {**tags, each.key: each.value}}).tags)
        except ValidationError as error:
            done.lose(f"Tags[{each.key}]", "tags", f"is not borne: {reason(error, _Tagged)}")
    if tags:
        done.file["tags"] = tags
    head = old.head_node
    if head is None:
        return
    groups = head.networking.additional_security_groups if head.networking else None
    if own := _groups(groups or [], "HeadNode", done):
        done.file.setdefault("head", {})["security_groups"] = own
    if policies := of_machine(head.iam, "HeadNode", done):
        done.file.setdefault("head", {})["policies"] = policies
    if head.imds and head.imds.secured is False:
        means = "only root and the agent have the rights of head and login nodes, people their own"
        code = "rights" if policies else "without-harm"
        done.lose("HeadNode.Imds.Secured", code, means, is_heavy=bool(policies))
    scripts.of_head(head.custom_actions or {}, old.timeouts.head_node_bootstrap_timeout, done)


def of_machine(iam: MachineIam | None, place: str, done: Translated) -> list[str]:
    """Policies of the machine's role, which root alone has here, as with Imds.Secured there."""
    named = [each.policy for each in (iam.additional_iam_policies if iam else None) or ()]
    found = [each for each in named if not each.endswith(HAS_ALREADY)]
    try:
        return list(HeadModel.model_validate({"policies": found}).policies)
    except ValidationError as error:
        means = f"are left out: {reason(error, HeadModel)}"
        done.lose(f"{place}.Iam.AdditionalIamPolicies", "rights", means)
        return []


def of_pool(queue: Queue, name: str, said_s: int | None, done: Translated) -> Yaml:
    """What nodes of the queue have of their own, for the pool of this name. `said_s`: the time-out
    of their boot.
    """
    place = f"Scheduling.SlurmQueues[{queue.name}]"
    made: Yaml = {}
    groups = queue.networking.additional_security_groups if queue.networking else None
    if found := _groups(groups or [], place, done):
        made["security_groups"] = found
    made |= _volume(queue, place, done) | _job_role(queue, name, place, done)
    where = f"{place}.CustomActions"
    return made | scripts.of_pool(queue.custom_actions or {}, name, said_s, where, done)


def _job_role(queue: Queue, name: str, place: str, done: Translated) -> Yaml:
    """Jobs there have the rights of their node; here those of a role that they are given alone."""
    iam = queue.iam or QueueIam()
    _tell_rights(iam, f"{place}.Iam", done)
    path = ("pools", name, "job_role")
    trust = "must trust the role that the stack tells as NodesRoleArn (docs/job-roles.md)"
    if iam.instance_role:
        try:
            role = _ROLE.validate_python(iam.instance_role)
        except ValidationError:
            means = f"jobs have no AWS rights: {iam.instance_role} is no role's ARN; see job_role"
            done.lose(f"{place}.Iam.InstanceRole", "rights", means)
            return {}
        done.gaps.append(Gap(path, trust, role, is_open=False))
        return {"job_role": role}
    if iam.instance_profile:
        profile = iam.instance_profile.rpartition("/")[2]
        command = f"aws iam get-instance-profile --instance-profile-name {profile}"
        done.gaps.append(Gap(path, f"the role in `{command}`; it {trust}", STAND_IN_ROLE))
        return {"job_role": None}
    return {}


def _tell_rights(iam: QueueIam, place: str, done: Translated) -> None:
    """What nodes get beside the rights of ParallelCluster's own, once for all pools of a queue."""
    policies = [each.policy for each in iam.additional_iam_policies or ()]
    rights = [each for each in policies if not each.endswith(HAS_ALREADY)]
    rights += [str(each) for each in iam.s3_access or ()]
    if rights and not done.has_lost(place):
        means = (
            f"jobs have no AWS rights: make a role with {', '.join(rights)}, and name it in"
            " job_role of the queue's pools (docs/job-roles.md); for root's scripts: node_policies"
        )
        done.lose(place, "rights", means)


def _groups(groups: list[str], place: str, done: Translated) -> list[str]:
    try:
        return list(HeadModel.model_validate({"security_groups": groups}).security_groups)
    except ValidationError as error:
        where = f"{place}.Networking.AdditionalSecurityGroups"
        done.lose(where, "security-groups", f"are left out: {reason(error, HeadModel)}")
        return []


def _volume(queue: Queue, place: str, done: Translated) -> Yaml:
    """gp3's figures; other kinds are told by their key."""
    volume = queue.root_volume
    if volume is None:
        return {}
    fast: Yaml = {"root_gib": volume.size} if volume.size else {}
    if volume.iops and volume.iops > INCLUDED_IOPS:
        fast["root_iops"] = volume.iops
    if volume.throughput and volume.throughput > INCLUDED_MIB_S:
        fast["root_throughput_mib_s"] = volume.throughput
    try:
        PoolModel.model_validate(
            {
                "instance_types": ["m6i.large"],
                "zones": ["us-east-1a"],
                "capacity_types": ["spot"],
                **fast,
            }
        )
    except ValidationError as error:
        where = f"{place}.ComputeSettings.LocalStorage.RootVolume"
        done.lose(
            where,
            "volume-performance",
            f"is as large, but not as fast: {reason(error, PoolModel)}",
        )
        return {"root_gib": volume.size} if volume.size else {}
    return fast
