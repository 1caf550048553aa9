"""The parts of a cluster file that are sound in themselves, for the rules across them.

A part with a mistake of its own is left out, not guessed at.
"""

from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError

from tidegate.core.model.frozen import frozen
from tidegate.wire.data_repositories import DataRepositoryModel
from tidegate.wire.deployment import ExistingModel, HeadModel, LogsModel, NetworkModel
from tidegate.wire.directory import DirectoryModel
from tidegate.wire.file_systems import FileSystemModel
from tidegate.wire.finite import FINITE
from tidegate.wire.hooks import HooksModel
from tidegate.wire.idle_check_model import IdleCheckModel
from tidegate.wire.idle_gpus_model import IdleGpusModel
from tidegate.wire.images_model import ImagesModel
from tidegate.wire.login import LoginKindModel, LoginModel, LoginOptions
from tidegate.wire.models import TimingsModel
from tidegate.wire.monitoring import MonitoringModel
from tidegate.wire.names import Region
from tidegate.wire.node_models import DLAMI, OWN_IMAGE, SoftwareModel
from tidegate.wire.partition_model import PartitionModel
from tidegate.wire.pool_models import LimitsModel, PoolModel, ReservationModel
from tidegate.wire.prices import Discount, PriceModel
from tidegate.wire.problems import Place
from tidegate.wire.rollout_model import RolloutModel
from tidegate.wire.savings_plan_model import SavingsPlanModel
from tidegate.wire.schedules_model import SchedulesModel
from tidegate.wire.slurm_model import SlurmModel
from tidegate.wire.waiting_model import WaitingModel

_REGION: TypeAdapter[str] = TypeAdapter(Region)
_NETWORK = TypeAdapter(NetworkModel)
_HEAD = TypeAdapter(HeadModel)
_LOGIN = TypeAdapter(LoginModel)
_LOGIN_KIND = TypeAdapter(LoginKindModel)
_LOGS = TypeAdapter(LogsModel)
_EXISTING = TypeAdapter(ExistingModel)
_LIMITS = TypeAdapter(LimitsModel)
_SCHEDULES = TypeAdapter(SchedulesModel)
_PARTITION = TypeAdapter(PartitionModel)
_POOL = TypeAdapter(PoolModel)
_RESERVATION = TypeAdapter(ReservationModel)
_SAVINGS_PLAN = TypeAdapter(SavingsPlanModel)
_DISCOUNT: TypeAdapter[float] = TypeAdapter(Discount)
_PRICE: TypeAdapter[PriceModel] = TypeAdapter(PriceModel, config=FINITE)
_IMAGES = TypeAdapter(ImagesModel)
_SOFTWARE = TypeAdapter(SoftwareModel)
_SLURM = TypeAdapter(SlurmModel)
_TIMINGS = TypeAdapter(TimingsModel)
_DIRECTORY = TypeAdapter(DirectoryModel)
_FILE_SYSTEM = TypeAdapter(FileSystemModel)
_DATA_REPOSITORY = TypeAdapter(DataRepositoryModel)
_HOOKS = TypeAdapter(HooksModel)
_WAITING = TypeAdapter(WaitingModel)
_IDLE_CHECK = TypeAdapter(IdleCheckModel)
_IDLE_GPUS = TypeAdapter(IdleGpusModel)
_MONITORING = TypeAdapter(MonitoringModel)
_ROLLOUT = TypeAdapter(RolloutModel)


@frozen
class Parts:
    """What is sound in the file. None: not there, or with problems of its own.

    `all_pools`, `all_partitions` and `all_priced` name the unsound ones as well. `logins`: kinds of
    login nodes, by their places. `taken_dirs`: where files of the cluster are mounted, and by which
    option. `reservation_groups`: as they are written.
    """

    region: str | None
    network: NetworkModel | None
    head: HeadModel | None
    logins: Mapping[Place, LoginOptions]
    existing: ExistingModel | None
    limits: LimitsModel | None
    schedules: SchedulesModel | None
    partitions: Mapping[str, PartitionModel]
    pools: Mapping[str, PoolModel]
    prices: Mapping[str, PriceModel]
    reservations: Mapping[int, ReservationModel]
    is_every_reservation_sound: bool
    reservation_groups: tuple[str, ...]
    savings_plans: Mapping[int, SavingsPlanModel]
    discount: float
    job_role_keys: tuple[str, ...]
    ships_logs: bool
    containers: str
    has_container_cache: bool
    image: str
    images: ImagesModel | None
    software: SoftwareModel | None
    slurm: SlurmModel | None
    timings: TimingsModel | None
    waiting: WaitingModel | None
    idle_gpus: IdleGpusModel | None
    monitoring: MonitoringModel | None
    rollout: RolloutModel | None
    idle_check: IdleCheckModel | None
    has_report: bool
    hooks: HooksModel | None
    directory: DirectoryModel | None
    file_systems: Mapping[int, FileSystemModel]
    data_repositories: Mapping[int, DataRepositoryModel]
    taken_dirs: Mapping[str, str]
    all_partitions: frozenset[str]
    all_pools: frozenset[str]
    all_priced: frozenset[str]

    @property
    def is_own_image(self) -> bool:
        return self.image.startswith(OWN_IMAGE)

    @property
    def has_own_image(self) -> bool:
        """The cluster's image, or that of a pool, is one's own."""
        return self.is_own_image or any(pool.image for pool in self.pools.values())

    @property
    def has_own_images_alone(self) -> bool:
        """Each pool has one, whatever the cluster's image."""
        is_complete = self.pools.keys() == self.all_pools
        return is_complete and all(pool.image for pool in self.pools.values())


def parts_of(data: Mapping[str, object]) -> Parts:
    partitions, pools = _mapping(data.get("partitions")), _mapping(data.get("pools"))
    prices = _mapping(data.get("prices_usd_per_hour"))
    reservations = _list(data.get("reservations"))
    lustre = _mapping(data.get("lustre"))
    sound = {index: _sound(_RESERVATION, each) for index, each in enumerate(reservations)}
    return Parts(
        region=_sound(_REGION, data.get("region")),
        network=_sound(_NETWORK, data.get("network", {})),
        head=_sound(_HEAD, data.get("head", {})),
        logins=_logins(data.get("login")),
        existing=_sound(_EXISTING, data.get("existing", {})),
        limits=_sound(_LIMITS, data.get("limits", {})),
        schedules=_sound(_SCHEDULES, schedules) if (schedules := data.get("schedules")) else None,
        partitions=_all_sound(_PARTITION, partitions),
        pools=_all_sound(_POOL, pools),
        prices=_all_sound(_PRICE, prices),
        reservations={index: each for index, each in sound.items() if each is not None},
        is_every_reservation_sound=None not in sound.values(),
        reservation_groups=tuple(map(str, _list(data.get("reservation_groups")))),
        savings_plans=_those_sound(_SAVINGS_PLAN, data.get("savings_plans")),
        discount=(_sound(_DISCOUNT, data.get("discount_percent", 0.0)) or 0.0) / 100,
        job_role_keys=tuple(k for k in ("job_role", "job_role_by_account") if data.get(k)),
        ships_logs=bool((logs := _sound(_LOGS, data.get("logs", {}))) and logs.nodes),
        containers=str(data.get("containers") or ""),
        has_container_cache=data.get("container_cache") is not None,
        image=str(data.get("image", DLAMI)),
        images=_sound(_IMAGES, data["images"]) if data.get("images") is not None else None,
        software=_sound(_SOFTWARE, data.get("software", {})),
        slurm=_sound(_SLURM, data.get("slurm", {})),
        timings=_sound(_TIMINGS, data.get("timings", {})),
        waiting=_sound(_WAITING, data.get("waiting", {})),
        idle_gpus=_sound(_IDLE_GPUS, data["idle_gpus"]) if data.get("idle_gpus") else None,
        monitoring=_sound(_MONITORING, data.get("monitoring", {})),
        rollout=_sound(_ROLLOUT, data.get("rollout", {})),
        idle_check=_sound(_IDLE_CHECK, data["idle_check"]) if data.get("idle_check") else None,
        has_report=data.get("report") is not None,
        hooks=_sound(_HOOKS, data.get("hooks", {})),
        directory=_sound(_DIRECTORY, data["directory"]) if data.get("directory") else None,
        file_systems=_those_sound(_FILE_SYSTEM, data.get("file_systems")),
        data_repositories=_those_sound(_DATA_REPOSITORY, lustre.get("data_repositories")),
        taken_dirs={
            str(data.get("shared_dir", "/shared")): "shared_dir",
            **({str(lustre.get("directory", "/fsx")): "lustre"} if lustre else {}),
        },
        all_partitions=frozenset(partitions),
        all_pools=frozenset(pools),
        all_priced=frozenset(prices),
    )


def _logins(data: object) -> dict[Place, LoginOptions]:
    """Each kind of login nodes, by its place."""
    if kinds := _mapping(_mapping(data).get("kinds")):
        sound = _all_sound(_LOGIN_KIND, kinds)
        return {("login", "kinds", name): kind for name, kind in sound.items()}
    only = _sound(_LOGIN, data)
    return {("login",): only} if only else {}


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _sound[Part](model: TypeAdapter[Part], value: object) -> Part | None:
    try:
        return model.validate_python(value)
    except ValidationError:
        return None


def _those_sound[Part](model: TypeAdapter[Part], values: object) -> dict[int, Part]:
    """Of a list, each by where it stands in it."""
    found = {index: _sound(model, each) for index, each in enumerate(_list(values))}
    return {index: part for index, part in found.items() if part is not None}


def _all_sound[Part](model: TypeAdapter[Part], values: Mapping[str, object]) -> dict[str, Part]:
    found = {name: _sound(model, value) for name, value in values.items()}
    return {name: part for name, part in found.items() if part is not None}
