"""The cluster file: reads it, checks it whole, and makes a `Cluster` of it.

YAML is loaded where it is read: functions start without it.
"""

import json
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from pydantic import ValidationError

from tidegate.core.model.calendar import AlwaysUp
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.errors import BadConfig
from tidegate.core.model.frozen import frozen
from tidegate.wire.advice import AdviceRowModel, read_table
from tidegate.wire.calendar import Schedules
from tidegate.wire.container_model import ContainerCacheModel
from tidegate.wire.deployment import (
    BillAlert,
    ExistingModel,
    HeadModel,
    LustreModel,
    Metrics,
    NetworkModel,
)
from tidegate.wire.directory import Directory
from tidegate.wire.file_systems import FileSystem
from tidegate.wire.finite import parse_json
from tidegate.wire.hooks import Hook, NodeHooks, node_hooks
from tidegate.wire.idle_check_model import IdleCheckModel
from tidegate.wire.images_model import ImagesModel
from tidegate.wire.login import LoginKind, login_kinds
from tidegate.wire.models import ClusterModel
from tidegate.wire.monitoring import MonitoringModel
from tidegate.wire.node_models import DLAMI, OS_OF_IMAGE, OWN_IMAGE, GpuModel, SoftwareModel
from tidegate.wire.notes import notes
from tidegate.wire.notifications_model import NotificationsModel
from tidegate.wire.places import is_local_zone
from tidegate.wire.pool_models import PoolModel
from tidegate.wire.problems import Place, Problem, problems_of, refusal
from tidegate.wire.report_model import ReportModel
from tidegate.wire.rollout_model import RolloutModel
from tidegate.wire.root_volume import RootVolume
from tidegate.wire.rules import problems_across
from tidegate.wire.slurm_model import SlurmModel
from tidegate.wire.subnets import NamedSubnet, SubnetsByZone, named_subnets


@frozen
class ClusterFile:
    """One cluster file, validated: the planner's part, and what deployment needs beside it.

    None: `image_id` AWS's own image (the system's when `installs_driver`), `images` none are baked,
    `schedules` always up.
    `kms_key` keys of AWS. `backup_days` 0: no backups. `notes`: what patterns and requirements
    mean but cannot have.
    `gpu`, a node's root volume, and `security_groups` beside our own: by pool.
    `pool_subnets`: those that pools name for themselves, by pool and zone.
    `efa`: the pools whose nodes have EFA interfaces.
    `ships_logs`: nodes send their logs to CloudWatch. `tags`: of the site's own, on everything.
    `users`: sssd, or "" for those of the head.
    `containers`: pyxis, or "" for what the image has. `container_cache` None: each node imports.
    `hooks`: the scripts of nodes by pool, the cluster's first; `head_hooks`: those of the head.
    `job_roles`: ARNs of the roles that jobs act as, by pool and in it by Slurm account, "" for all
    other accounts; of the pools whose jobs have one.
    `software`: what the file itself says of the nodes' image and of jobs.
    `os`: the system of the nodes' image, "" for one's own of which the file says none.
    `pool_images`: ids of images of one's own, of the pools that have another than the cluster's.
    `advised`: the table that `slurm.advice` names; none where only the file's text was read.
    `partition_settings`: what each one's line says beside its nodes. `qos`: those that they name.
    """

    cluster: Cluster
    region: str
    slurm: SlurmModel
    shared_dir: str
    head: HeadModel
    network: NetworkModel
    existing: ExistingModel
    metrics: Metrics
    backup_days: int
    log_days: int
    permissions_boundary: str | None = None
    node_policies: tuple[str, ...] = ()
    image_id: str | None = None
    installs_driver: bool = False
    images: ImagesModel | None = None
    schedules: Schedules | None = None
    alarm_email: str | None = None
    notifications: NotificationsModel | None = None
    report: ReportModel | None = None
    bill_alert: BillAlert | None = None
    kms_key: str | None = None
    lustre: LustreModel | None = None
    login_kinds: tuple[LoginKind, ...] = ()
    notes: tuple[str, ...] = ()
    gpu: Mapping[str, GpuModel] = field(default_factory=dict)
    pool_images: Mapping[str, str] = field(default_factory=dict)
    root_volumes: Mapping[str, RootVolume] = field(default_factory=dict)
    security_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pool_subnets: Mapping[str, SubnetsByZone] = field(default_factory=dict)
    efa: frozenset[str] = frozenset()
    hooks: Mapping[str, NodeHooks] = field(default_factory=dict)
    job_roles: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    head_hooks: tuple[Hook, ...] = ()
    containers: str = ""
    container_cache: ContainerCacheModel | None = None
    users: str = ""
    directory: Directory | None = None
    ships_logs: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)
    file_systems: tuple[FileSystem, ...] = ()
    software: SoftwareModel = field(default_factory=SoftwareModel)
    os: str = OS_OF_IMAGE[DLAMI]
    partition_settings: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    qos: tuple[str, ...] = ()
    monitoring: MonitoringModel = field(default_factory=MonitoringModel)
    rollout: RolloutModel = field(default_factory=RolloutModel)
    idle_check: IdleCheckModel | None = None
    advised: tuple[AdviceRowModel, ...] = ()

    def image_of(self, pool: str) -> str | None:
        """The image of one's own that a pool's nodes have; None: AWS's, or one baked from it."""
        return self.pool_images.get(pool, self.image_id)

    def os_of(self, pool: str) -> str:
        """The system of a pool's image, "" where nobody says it."""
        return self.software.os or "" if pool in self.pool_images else self.os

    @property
    def has_own_nodes(self) -> bool:
        """No node is made from an image of AWS's."""
        return all(self.image_of(pool.name) for pool in self.cluster.pools)

    @property
    def has_own_images(self) -> bool:
        """Nor is the head."""
        own_head = self.image_id or self.head.image or self.existing.head
        return bool(own_head) and self.has_own_nodes

    @property
    def has_lustre(self) -> bool:
        """Head and nodes mount FSx for Lustre, and need its client."""
        return bool(self.lustre) or any(each.kind == "lustre" for each in self.file_systems)

    @property
    def zones(self) -> tuple[str, ...]:
        """The availability zones that any pool uses, in order."""
        return tuple(sorted({zone for pool in self.cluster.pools for zone in pool.zones}))

    @property
    def archs(self) -> tuple[str, ...]:
        """The architectures of nodes whose image is the cluster's, each needs one; in order."""
        pools = (each for each in self.cluster.pools if each.name not in self.pool_images)
        return tuple(sorted({pool.instance_types[0].arch for pool in pools}))

    @property
    def calendar(self) -> Schedules | AlwaysUp:
        """When the cluster is up."""
        return self.schedules or AlwaysUp()

    @property
    def head_zone(self) -> str:
        """The availability zone of the head and of its data volume."""
        of_pools = (each for each in self.zones if not is_local_zone(each))
        return self.head.zone or next(of_pools, self.zones[0])

    @property
    def all_zones(self) -> tuple[str, ...]:
        """The availability zones that need a subnet, in order."""
        return tuple(sorted({*self.zones, self.head_zone, *map(self.login_zone, self.login_kinds)}))

    def subnets_of(self, pool: str, zone: str, shared: Mapping[str, str]) -> tuple[str, ...]:
        """The subnets of a pool's nodes in a zone. `shared`: the network's, by zone."""
        return self.pool_subnets.get(pool, {}).get(zone) or (shared[zone],)

    @property
    def named_subnets(self) -> tuple[NamedSubnet, ...]:
        """Every subnet that the file names."""
        machines: list[tuple[Place, str, str | None]]
        machines = [(("head",), self.head_zone, self.head.subnet)]
        machines += [(e.place, self.login_zone(e), e.model.subnet) for e in self.login_kinds]
        return tuple(named_subnets(self.network.subnets, self.pool_subnets, *machines))

    @property
    def machines(self) -> tuple[tuple[Place, str, str], ...]:
        """What the stack makes beside nodes: its place, the instance type, the zone."""
        head: tuple[Place, str, str] = (("head",), self.head.instance_type, self.head_zone)
        kinds = ((e.place, e.model.instance_type, self.login_zone(e)) for e in self.login_kinds)
        return (*(() if self.existing.head else (head,)), *kinds)

    @property
    def directory_secrets(self) -> tuple[str, ...]:
        """ARN of the secret with what the directory is asked by; none where it asks nobody."""
        return (self.directory.secret,) if self.directory and self.directory.secret else ()

    def login_zone(self, kind: LoginKind) -> str:
        """The availability zone of these login nodes."""
        return kind.model.zone or self.head_zone

    def summary(self) -> str:
        """`2 pools, 3 instance types, up to 16 nodes`."""
        pools = self.cluster.pools
        instance_types = {each.name for pool in pools for each in pool.instance_types}
        nodes = _most_nodes(self.cluster)
        return ", ".join(
            (
                _count(len(pools), "pool"),
                _count(len(instance_types), "instance type"),
                "no limit on nodes" if nodes is None else f"up to {_count(nodes, 'node')}",
            )
        )


def load_cluster(path: Path | str) -> ClusterFile:
    """Read and check a cluster file. Errors: BadConfig, whose message lists every problem."""
    from tidegate.wire.yaml_file import read_yaml

    file = _checked(*read_yaml(Path(path)), name=path)
    if file.slurm.advice is None:
        return file
    table = Path(path).parent / file.slurm.advice.table
    return replace(file, advised=read_table(table, file.cluster.name))


def parse_cluster(text: str, name: str) -> ClusterFile:
    """Check a cluster file that was read before, called `name`. Errors: as `load_cluster`."""
    from tidegate.wire.yaml_file import parse_yaml

    return _checked(*parse_yaml(text, name), name=name)


def deployed_text(text: str, name: str) -> str:
    """A cluster file as functions read it: JSON, without comments. Errors: BadConfig."""
    from tidegate.wire.yaml_file import parse_yaml

    data, _ = parse_yaml(text, name)
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def parse_deployed(text: str, name: str) -> ClusterFile:
    """Check what `deployed_text` wrote, or YAML. Errors: as `load_cluster`."""
    try:
        data = parse_json(text)
    except ValueError:
        return parse_cluster(text, name)
    if not isinstance(data, dict):
        raise BadConfig(f"{name}: must be a mapping of names to values")
    return _checked(data, [], name=name)


def _checked(data: dict[str, object], problems: list[Problem], *, name: object) -> ClusterFile:
    model: ClusterModel | None = None
    try:
        model = ClusterModel.model_validate(data)
    except ValidationError as error:
        problems += problems_of(error, ClusterModel)
    problems += problems_across(data)
    if problems or model is None:
        raise refusal(name, _in_order(problems))
    return _cluster_file(model)


def _cluster_file(model: ClusterModel) -> ClusterFile:
    cluster = model.cluster()
    of_login = tuple(each.hook() for each in model.hooks.on_login_configured)
    return ClusterFile(
        cluster=cluster,
        region=model.region,
        slurm=model.slurm,
        shared_dir=model.shared_dir,
        head=model.head,
        network=model.network,
        existing=model.existing,
        metrics=model.metrics,
        backup_days=model.backup_days,
        log_days=model.logs.retention_days,
        permissions_boundary=model.permissions_boundary,
        node_policies=model.node_policies,
        image_id=model.image if model.image.startswith(OWN_IMAGE) else None,
        installs_driver=model.image in OS_OF_IMAGE and model.image != DLAMI,
        images=model.images,
        schedules=_schedules(model),
        alarm_email=model.alarm_email,
        notifications=model.notifications,
        report=model.report,
        bill_alert=model.alert(),
        kms_key=model.kms_key,
        lustre=model.lustre,
        login_kinds=tuple(login_kinds(model.login, of_login)),
        notes=tuple(notes(model, cluster)),
        pool_images={name: pool.image for name, pool in model.pools.items() if pool.image},
        root_volumes={name: pool.root_volume() for name, pool in model.pools.items()},
        security_groups={name: pool.security_groups for name, pool in model.pools.items()},
        pool_subnets={name: pool.subnets for name, pool in model.pools.items() if pool.subnets},
        gpu={name: pool.gpu for name, pool in model.pools.items()},
        efa=frozenset(name for name, pool in model.pools.items() if pool.efa),
        hooks={name: node_hooks(model.hooks, pool.hooks) for name, pool in model.pools.items()},
        job_roles={
            name: roles for name, pool in model.pools.items() if (roles := _job_roles(model, pool))
        },
        head_hooks=tuple(each.hook() for each in model.hooks.on_head_configured),
        containers=model.containers or "",
        container_cache=model.container_cache,
        users="sssd" if model.directory else model.users or "",
        directory=model.directory.directory() if model.directory else None,
        ships_logs=model.logs.nodes,
        tags=model.tags,
        file_systems=tuple(each.file_system() for each in model.file_systems),
        software=model.software,
        os=OS_OF_IMAGE.get(model.image) or model.software.os or "",
        partition_settings={
            name: each.within(model.pools).settings() for name, each in model.partitions.items()
        },
        monitoring=model.monitoring,
        rollout=model.rollout,
        idle_check=model.idle_check,
        qos=tuple(sorted({qos for each in model.partitions.values() for qos in each.all_qos})),
    )


def _job_roles(model: ClusterModel, pool: PoolModel) -> dict[str, str]:
    """A pool's own role is that of all its jobs; else their account's, and else the cluster's."""
    if pool.job_role:
        return {"": pool.job_role}
    return ({"": model.job_role} if model.job_role else {}) | model.job_role_by_account


def _schedules(model: ClusterModel) -> Schedules | None:
    boot_s = {name: pool.boot_s for name, pool in model.pools.items()}
    return model.schedules.schedules(boot_s) if model.schedules else None


def _most_nodes(cluster: Cluster) -> int | None:
    """Nodes that the limits on nodes allow at the same time; None: no limit."""
    of_pools = [pool.limits.nodes for pool in cluster.pools]
    bounds = [cluster.limits.nodes, None if None in of_pools else sum(filter(None, of_pools))]
    return min((bound for bound in bounds if bound is not None), default=None)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _in_order(problems: list[Problem]) -> list[Problem]:
    """Problems of one section together, sections in the order of the model."""
    sections = list(ClusterModel.model_fields)

    def section(problem: Problem) -> int:
        first = problem.place[0] if problem.place else ""
        return sections.index(str(first)) if first in sections else len(sections)

    return sorted(problems, key=section)
