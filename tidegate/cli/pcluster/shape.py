"""What a ParallelCluster 3 configuration must look like to be translated.

Source: AWS ParallelCluster guide v3, "Cluster configuration file".
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_pascal

from tidegate.wire.finite import FINITE
from tidegate.wire.problems import Problem, problems_of

NonEmpty = Annotated[str, Field(min_length=1)]
type CapacityType = Literal["ONDEMAND", "SPOT", "CAPACITY_BLOCK"]


class _Part(BaseModel):
    """Names that are not read may hold anything; `keys.py` knows them."""

    model_config = ConfigDict(alias_generator=to_pascal, **FINITE)


class Reservation(_Part):
    capacity_reservation_id: str | None = None
    capacity_reservation_resource_group_arn: str | None = None


class PlacementGroup(_Part):
    enabled: bool | None = None
    id: str | None = None
    name: str | None = None

    @property
    def named(self) -> str:
        return self.name or self.id or ""


class Proxy(_Part):
    http_proxy_address: str | None = None


class Networking(_Part):
    subnet_id: str | None = None
    subnet_ids: list[str] | None = None
    placement_group: PlacementGroup | None = None
    proxy: Proxy | None = None
    additional_security_groups: list[str] | None = None


class Script(_Part):
    script: str | None = None
    args: list[Any] | None = None


class Action(Script):
    sequence: list[Script] | None = None


type Actions = dict[str, Action | None]


class Image(_Part):
    os: str | None = None
    custom_ami: str | None = None


class RootVolume(_Part):
    size: int | None = None
    iops: int | None = None
    throughput: int | None = None


class LocalStorage(_Part):
    root_volume: RootVolume | None = None


class ComputeSettings(_Part):
    local_storage: LocalStorage | None = None


class Instance(_Part):
    instance_type: str


class Efa(_Part):
    enabled: bool | None = None


class ComputeResource(_Part):
    name: NonEmpty
    instance_type: str | None = None
    instances: list[Instance] | None = None
    min_count: int | None = Field(default=None, ge=0)
    max_count: int | None = Field(default=None, ge=0)
    efa: Efa | None = None
    disable_simultaneous_multithreading: bool | None = None
    networking: Networking | None = None
    capacity_reservation_target: Reservation | None = None

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        """A type may be left out where the resource itself names a reservation, which has one."""
        target = self.capacity_reservation_target
        if not self.types and not (target and target.capacity_reservation_id):
            raise ValueError("has neither InstanceType nor Instances")
        if self.least > self.most:
            raise ValueError(f"MinCount is {self.least}, more than MaxCount ({self.most})")
        return self

    @property
    def types(self) -> list[str]:
        one = [self.instance_type] if self.instance_type else []
        return one or list(dict.fromkeys(each.instance_type for each in self.instances or ()))

    @property
    def least(self) -> int:
        return self.min_count or 0

    @property
    def most(self) -> int:
        """ParallelCluster's default where there is no value, which YAML may also say."""
        return 10 if self.max_count is None else self.max_count


class Policy(_Part):
    policy: str


class MachineIam(_Part):
    additional_iam_policies: list[Policy] | None = None


class Bucket(_Part):
    bucket_name: NonEmpty
    key_name: str | None = None
    enable_write_access: bool | None = None

    def __str__(self) -> str:
        way = "read and write" if self.enable_write_access else "read"
        return f"{way} s3://{self.bucket_name}/{self.key_name or '*'}"


class QueueIam(MachineIam):
    """An instance profile is given by its ARN, and so is a role."""

    instance_role: str | None = None
    instance_profile: str | None = None
    s3_access: list[Bucket] | None = None


class Queue(_Part):
    name: NonEmpty
    iam: QueueIam | None = None
    capacity_type: CapacityType | None = None
    networking: Networking | None = None
    image: Image | None = None
    compute_settings: ComputeSettings | None = None
    capacity_reservation_target: Reservation | None = None
    compute_resources: list[ComputeResource] | None = None
    custom_slurm_settings: dict[str, Any] | None = None
    job_exclusive_allocation: bool | None = None
    custom_actions: Actions | None = None

    @property
    def subnets(self) -> list[str]:
        return (self.networking.subnet_ids if self.networking else None) or []

    @property
    def own_image(self) -> str | None:
        return self.image.custom_ami if self.image else None

    @property
    def root_volume(self) -> RootVolume | None:
        storage = self.compute_settings.local_storage if self.compute_settings else None
        return storage.root_volume if storage else None


class Database(_Part):
    uri: str | None = None


class Settings(_Part):
    scaledown_idletime: int | None = Field(default=None, ge=-1)
    enable_memory_based_scheduling: bool | None = None
    database: Database | None = None
    custom_slurm_settings: list[dict[str, Any]] | None = None
    munge_key_secret_arn: str | None = None


class Scheduling(_Part):
    scheduler: Literal["slurm"] = "slurm"
    slurm_queues: list[Queue] | None = None
    slurm_settings: Settings | None = None


class Ssh(_Part):
    allowed_ips: str | None = None


class HeadImds(_Part):
    secured: bool | None = None


class HeadNode(_Part):
    iam: MachineIam | None = None
    imds: HeadImds | None = None
    instance_type: str | None = None
    networking: Networking | None = None
    image: Image | None = None
    local_storage: LocalStorage | None = None
    ssh: Ssh | None = None
    custom_actions: Actions | None = None


class LoginPool(_Part):
    name: str = "login"
    iam: MachineIam | None = None
    count: int = Field(default=1, ge=0)
    instance_type: str | None = None
    networking: Networking | None = None
    image: Image | None = None
    ssh: Ssh | None = None
    custom_actions: Actions | None = None

    @property
    def subnet(self) -> str | None:
        subnets = (self.networking.subnet_ids if self.networking else None) or ()
        return next(iter(subnets), None)


class LoginNodes(_Part):
    pools: list[LoginPool] | None = None


class DirectoryService(_Part):
    domain_name: NonEmpty
    domain_addr: NonEmpty
    domain_read_only_user: str | None = None
    password_secret_arn: str | None = None
    ldap_tls_ca_cert: str | None = None
    ldap_tls_req_cert: str | None = None
    ldap_access_filter: str | None = None
    additional_sssd_configs: dict[str, Any] | None = None


class Tag(_Part):
    key: NonEmpty
    value: str


class Link(_Part):
    """A data repository association."""

    name: str = ""
    file_system_path: NonEmpty
    data_repository_path: NonEmpty
    batch_import_meta_data_on_create: bool | None = None
    imported_file_chunk_size: int | None = None
    auto_import_policy: list[str] | None = None
    auto_export_policy: list[str] | None = None


class FileSystem(_Part):
    file_system_id: str | None = None
    kms_key_id: str | None = None
    storage_capacity: int | None = Field(default=None, ge=1)
    deployment_type: str | None = None
    import_path: str | None = None
    export_path: str | None = None
    imported_file_chunk_size: int | None = None
    auto_import_policy: str | None = None
    data_repository_associations: list[Link] | None = None


class VolumeSettings(_Part):
    volume_id: str | None = None
    snapshot_id: str | None = None


class FileCache(_Part):
    file_cache_id: str | None = None


class SharedStorage(_Part):
    name: NonEmpty
    mount_dir: NonEmpty
    storage_type: NonEmpty
    efs_settings: FileSystem | None = None
    fsx_lustre_settings: FileSystem | None = None
    ebs_settings: VolumeSettings | None = None
    fsx_open_zfs_settings: dict[str, Any] | None = None
    fsx_ontap_settings: dict[str, Any] | None = None
    file_cache_settings: FileCache | None = None


class Timeouts(_Part):
    head_node_bootstrap_timeout: int | None = Field(default=None, ge=1)
    compute_node_bootstrap_timeout: int | None = Field(default=None, ge=1)


class DevSettings(_Part):
    timeouts: Timeouts | None = None


class CloudWatchLogs(_Part):
    enabled: bool | None = None
    retention_in_days: int | None = Field(default=None, ge=0)


class Logs(_Part):
    cloud_watch: CloudWatchLogs | None = None


class Monitoring(_Part):
    logs: Logs | None = None


class Iam(_Part):
    permissions_boundary: str | None = None


class Configuration(_Part):
    region: str | None = None
    image: Image | None = None
    head_node: HeadNode | None = None
    scheduling: Scheduling
    shared_storage: list[SharedStorage] | None = None
    monitoring: Monitoring | None = None
    iam: Iam | None = None
    dev_settings: DevSettings | None = None
    tags: list[Tag] | None = None
    login_nodes: LoginNodes | None = None
    directory_service: DirectoryService | None = None

    @property
    def login_pools(self) -> list[LoginPool]:
        """Those that have machines."""
        pools = (self.login_nodes.pools if self.login_nodes else None) or []
        return [each for each in pools if each.count]

    @property
    def timeouts(self) -> Timeouts:
        return (self.dev_settings.timeouts if self.dev_settings else None) or Timeouts()

    @property
    def queues(self) -> list[Queue]:
        return self.scheduling.slurm_queues or []

    @property
    def settings(self) -> Settings:
        return self.scheduling.slurm_settings or Settings()


def shaped(text: Any) -> Configuration | list[Problem]:
    """The configuration, or what of it cannot be translated, each with its place.

    ParallelCluster takes "3" in quotes for 3 as well, and so do we.
    """
    try:
        return Configuration.model_validate(text)
    except ValidationError as error:
        return problems_of(error, Configuration)
