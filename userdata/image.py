"""An image of one's own: an EC2 Image Builder component that runs the boot's own stages.

Source of the format: Image Builder user guide, "Use the AWSTOE component document framework".
"""

import base64
from collections.abc import Iterable
from dataclasses import dataclass, replace

from userdata.bundle import RUNNER, Bundle, Stage, assignments, in_order, read, read_stage, tar_gz
from userdata.packages import NODE_PACKAGES, NODE_PROGRAMS
from userdata.values import Shared, check_word

# What a boot would do in minutes, and what it would undo otherwise.
_STAGES = ("both/quiesce", "both/packages", "node/driver")
_FOLDER = "/opt/tidegate/bake"
# Image Builder takes this much as text; more has to lie in S3.
MAX_COMPONENT_BYTES = 16_000

type Step = dict[str, object]


@dataclass(frozen=True, slots=True)
class ImageValues:
    """What to bake. `driver_branch`: of the NVIDIA driver to install, "" for a parent that has it.

    `for_head`: programs, and the packages that bring them, which the head needs as well.
    `programs` and `files`: that the cluster needs and no stage brings; their absence fails the
    build, so that no node has to find out. Files may hold `*`.
    """

    cluster: str
    parent: str
    driver_branch: str = ""
    for_head: tuple[tuple[str, str], ...] = ()
    programs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    helper_url: str = Shared("any").helper_url

    def __post_init__(self) -> None:
        for word in (self.cluster, self.parent, *self.programs, *self.files):
            check_word("image", word.replace("*", ""))


def image_component(values: ImageValues) -> dict[str, object]:
    """The component document. Raises ValueError when Image Builder would not take it."""
    bundle = _bundle(values)
    packed = base64.b64encode(bundle.archive).decode()
    if len(packed) > MAX_COMPONENT_BYTES:
        raise ValueError(f"{len(packed)} bytes; Image Builder takes {MAX_COMPONENT_BYTES}")
    stages = in_order(_stages())
    steps = [
        _step("unpack", 60, _unpack(packed, bundle.sha256)),
        *(
            _step(each.name, _bound_s(each), (f"{_FOLDER}/boot.sh stage {each.name}",))
            for each in stages
        ),
        _step("tidy", 60, _TIDY),
    ]
    found = _step("complete", 60, _complete(values))
    return {
        "name": f"tidegate-{values.cluster}",
        "description": f"What nodes of the Tidegate cluster {values.cluster} would install at boot",
        "schemaVersion": "1.0",
        "phases": [
            {"name": "build", "steps": steps},
            {"name": "validate", "steps": [found]},
            {"name": "test", "steps": [found]},
        ],
    }


# No daemon starts before the health gate, no key is shared by all clusters of an image, and
# `preset-all` of a first boot does not enable again what is off here.
_TIDY = (
    "rm -f /etc/munge/munge.key",
    "mkdir -p /etc/systemd/system-preset",
    "printf 'disable %s.service\\n' slurmd slurmctld slurmdbd munge"
    " >/etc/systemd/system-preset/10-tidegate.preset",
    "systemctl disable slurmd slurmctld slurmdbd munge 2>/dev/null || true",
    f"rm -rf {_FOLDER} /run/tidegate /var/log/tidegate",
)


def _bundle(values: ImageValues) -> Bundle:
    stages = list(_stages())
    settings = {
        "ROLE": "image",
        "DRIVER_BRANCH": values.driver_branch,
        "PROGRAMS": " ".join((NODE_PROGRAMS, *(each[0] for each in values.for_head))),
        "PACKAGES": " ".join((NODE_PACKAGES, *(each[1] for each in values.for_head))),
        "EFS_HELPER_URL": values.helper_url,
        # As on a machine that has all of it.
        "GPUS": "1",
        "FABRIC": "1",
    }
    entries: dict[str, str | bytes] = {name: read(name) for name in RUNNER}
    entries |= {f"stages/{each.name}.sh": each.text for each in stages}
    entries["graph"] = "".join(f"{each.row(settings)}\n" for each in stages)
    entries["settings"] = assignments(settings)
    return Bundle(tar_gz(entries))


def _stages() -> Iterable[Stage]:
    """Each needs only what is baked as well."""
    stages = [read_stage(path) for path in _STAGES]
    names = {each.name for each in stages}
    return (replace(each, needs=tuple(n for n in each.needs if n in names)) for each in stages)


def _bound_s(stage: Stage) -> int:
    return stage.time_limit_s + int(stage.wait_s) + 60


def _unpack(packed: str, sha256: str) -> tuple[str, ...]:
    archive = f"{_FOLDER}.tgz"
    return (
        f"rm -rf {_FOLDER} && mkdir -p {_FOLDER}",
        f"echo {packed} | base64 -d >{archive}",
        f"echo '{sha256}  {archive}' | sha256sum -c",
        f"tar -xzf {archive} -C {_FOLDER} && rm {archive}",
    )


def _complete(values: ImageValues) -> tuple[str, ...]:
    driver = ("nvidia-smi",) if values.driver_branch else ()
    of_head = (program for program, _ in values.for_head)
    programs = (*NODE_PROGRAMS.split(), *of_head, *driver, *values.programs)
    return (
        *(
            f"command -v {each} || {{ echo 'the image lacks {each}'; exit 1; }}"
            for each in programs
        ),
        *(
            f"compgen -G '{each}' || {{ echo 'the image lacks {each}'; exit 1; }}"
            for each in values.files
        ),
        "test ! -e /etc/munge/munge.key",
    )


def _step(name: str, timeout_s: int, commands: tuple[str, ...]) -> Step:
    return {
        "name": name,
        "action": "ExecuteBash",
        "timeoutSeconds": timeout_s,
        "onFailure": "Abort",
        "inputs": {"commands": ["set -e", *commands]},
    }
