"""An image of one's own: an EC2 Image Builder component that runs the boot's own stages.

The bundle stays in the image, so that nodes of the same version fetch nothing from S3.
Source of the format: Image Builder user guide, "Use the AWSTOE component document framework".
"""

import base64
import lzma
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from userdata.bundle import Bundle, Stage, assignments, in_order
from userdata.node_bundle import baked_stages, node_bundle
from userdata.packages import LUSTRE_PROGRAM, NODE_PROGRAMS, node_packages
from userdata.patterns import check_word
from userdata.repository import Repository, repository_settings
from userdata.values import Shared

_FOLDER = "/opt/tidegate/boot"
# Where the stub looks before it asks S3.
ARCHIVE_AT = f"{_FOLDER}.tar"
_FETCHED_AT = f"{_FOLDER}.tgz"
_TOLD = "/opt/tidegate/image.env"
# Of a document in S3, by default; and of one in the request.
# Source: Image Builder's API, CreateComponent, `uri` and `data`.
MAX_COMPONENT_BYTES = 64 << 10
MAX_INLINE_BYTES = 16_000
# The document's parameter with the place of the archive in S3, where that is not in the document.
BUNDLE = "Bundle"

type Step = dict[str, object]


class _Whole(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class ImageValues:
    """What to bake. `driver_branch`: of the NVIDIA driver to install, "" for a parent that has it.

    `os`: the parent's, in the cluster file's words. `repository`: with Slurm for it, None for the
    system's own.
    `more`: programs, and the packages that bring them, beside those of every node.
    `name`: of the component, tidegate-CLUSTER when left out. `containers`: "pyxis", or "".
    `dcgm`: what is brought of it, in the words of the stage dcgm.
    `programs` and `files`: that the cluster needs and no stage brings; their absence fails the
    build, so that no node has to find out. Files may hold `*`.
    """

    cluster: str
    parent: str
    driver_branch: str = ""
    os: str = ""
    repository: Repository | None = None
    more: tuple[tuple[str, str], ...] = ()
    programs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    name: str = ""
    containers: str = ""
    dcgm: str = ""
    helper_url: str = Shared("any").helper_url

    def __post_init__(self) -> None:
        for word in (self.cluster, self.parent, *self.programs, *self.files):
            check_word("image", word.replace("*", ""))


def image_component(values: ImageValues, *, in_s3: bool = False) -> dict[str, object]:
    """The component document. Raises ValueError when Image Builder would not take it.

    `in_s3`: the boot's stages are fetched from where the parameter `BUNDLE` says, so that the
    document is small enough for a request; else they are in it.
    """
    bundle = node_bundle()
    folder = f"mkdir -p {Path(ARCHIVE_AT).parent}"
    unpacked = (f"gzip -df {_FETCHED_AT}",) if in_s3 else ()
    fetched = _step("folder", 60, (folder,)), _fetched()
    steps = [
        *(fetched if in_s3 else (_step("archive", 60, (folder, *_written(bundle))),)),
        _step("unpack", 60, (*unpacked, _has(bundle), _told(_settings(values)), *_UNPACK)),
        *(
            _step(each.name, _bound_s(each), (f"{_FOLDER}/boot.sh stage {each.name}",))
            for each in in_order(baked_stages())
        ),
        _step("tidy", 60, _TIDY),
    ]
    found = _step("complete", 60, (_has(bundle), *_complete(values)))
    holds = _step("holds", 300, _holds(values))
    document: dict[str, object] = {
        "name": values.name or f"tidegate-{values.cluster}",
        "description": f"What nodes of the Tidegate cluster {values.cluster} would install at boot",
        "schemaVersion": "1.0",
        "phases": [
            {"name": "build", "steps": steps},
            {"name": "validate", "steps": [found]},
            {"name": "test", "steps": [found, holds]},
        ],
    }
    if in_s3:
        document["parameters"] = [{BUNDLE: {"type": "string", "description": "s3://BUCKET/KEY"}}]
    most = MAX_INLINE_BYTES if in_s3 else MAX_COMPONENT_BYTES
    if (size := len(text_of(document).encode())) > most:
        raise ValueError(f"{size} bytes; Image Builder takes {most}")
    return document


def text_of(document: dict[str, object]) -> str:
    """As Image Builder reads it: whole, without YAML's references to what was said before."""
    return yaml.dump(document, Dumper=_Whole, sort_keys=False, width=1 << 20)


# The stages out of the archive.
_UNPACK = (
    f"rm -rf {_FOLDER} && mkdir -p {_FOLDER} /etc/tidegate",
    f"tar -xf {ARCHIVE_AT} -C {_FOLDER} && cp {_TOLD} /etc/tidegate/boot.env",
)
_CLEAN = f"rm -rf {_FOLDER} /etc/tidegate /run/tidegate /var/log/tidegate"
# No daemon starts before the health gate, no key is shared by all clusters of an image, and
# `preset-all` of a first boot does not enable again what is off here.
_TIDY = (
    "rm -f /etc/munge/munge.key",
    "mkdir -p /etc/systemd/system-preset",
    "printf 'disable %s.service\\n' slurmd slurmctld slurmdbd munge"
    " >/etc/systemd/system-preset/10-tidegate.preset",
    "printf 'enable tidegate-early.service\\n' >>/etc/systemd/system-preset/10-tidegate.preset",
    "systemctl disable slurmd slurmctld slurmdbd munge 2>/dev/null || true",
    "systemctl disable prometheus prometheus-node-exporter 2>/dev/null || true",
    "systemctl disable nvidia-dcgm nvidia-dcgm-exporter 2>/dev/null || true",
    _CLEAN,
)


def _settings(values: ImageValues) -> dict[str, str]:
    return {
        "ROLE": "image",
        "DRIVER_BRANCH": values.driver_branch,
        "PROGRAMS": " ".join((NODE_PROGRAMS, *(each[0] for each in values.more))),
        "PACKAGES": " ".join((node_packages(values.os), *(each[1] for each in values.more))),
        "EFS_HELPER_URL": values.helper_url,
        "CUDA_URL": Shared("any").cuda_url,
        **(Shared("any").lustre_source if LUSTRE_PROGRAM in dict(values.more) else {}),
        **repository_settings(values.repository),
        "CONTAINERS": values.containers,
        "DCGM": values.dcgm,
        # As on a machine that has all of it.
        "GPUS": "1",
        "FABRIC": "1",
    }


def _bound_s(stage: Stage) -> int:
    return int(stage.time_limit_s) + int(stage.wait_s) + 60


# Source: xz(1), pb.
_FOR_TEXT = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "pb": 0}


# The one sign of base85 that Image Builder could take for a reference, and what stands for it.
_BRACE, _NO_BRACE = "{", "."


def _written(bundle: Bundle) -> tuple[str, ...]:
    """By xz, an eighth smaller than by gzip, and in base85, a sixteenth smaller than in base64. The
    images of Ubuntu and Amazon Linux have xz and Python; a parent that has not fails its build
    here, and no node's boot.
    """
    packed = lzma.compress(bundle.tar, check=lzma.CHECK_CRC32, filters=[_FOR_TEXT])
    text = base64.b85encode(packed).decode().replace(_BRACE, _NO_BRACE)
    read = f"base64.b85decode(sys.stdin.read().strip().replace('{_NO_BRACE}', '\\x7b'))"
    python = f"import base64, sys; sys.stdout.buffer.write({read})"
    return (f"echo '{text}' | python3 -IS -c \"{python}\" | xz -d >{ARCHIVE_AT}",)


def _fetched() -> Step:
    """Source: Image Builder user guide, "Action modules supported by AWSTOE", S3Download."""
    source = f"{{{{ {BUNDLE} }}}}"
    return {
        "name": "archive",
        "action": "S3Download",
        "timeoutSeconds": 60,
        "onFailure": "Abort",
        "inputs": [{"source": source, "destination": _FETCHED_AT, "overwrite": True}],
    }


def _told(settings: dict[str, str]) -> str:
    """What the stages are told, which stays in the image for its test."""
    return f"cat >{_TOLD} <<'END'\n{assignments(settings)}END"


def _holds(values: ImageValues) -> tuple[str, ...]:
    """Of a machine that was made from the image: nothing is left that its boot would do.

    A driver is asked where there is a GPU.
    """
    stages = " ".join(each.name for each in in_order(baked_stages()))
    return (
        *_UNPACK,
        f"for each in {stages}; do\n"
        f"{_FOLDER}/boot.sh stage $each\n"
        "[[ $(cat /run/tidegate/how.$each) == skip ]] ||"
        ' { echo "the image leaves $each to each boot"; exit 1; }\n'
        "done",
        "[[ -z $(lspci -n -d 10de:) ]] || nvidia-smi -L",
        _CLEAN,
    )


def _has(bundle: Bundle) -> str:
    return f"echo '{bundle.sha256}  {ARCHIVE_AT}' | sha256sum -c"


def _complete(values: ImageValues) -> tuple[str, ...]:
    driver = ("nvidia-smi",) if values.driver_branch else ()
    added = (program for program, _ in values.more)
    programs = (*NODE_PROGRAMS.split(), *added, *driver, *values.programs)
    return (
        _each_is_there("command -v", programs),
        *((_each_is_there("compgen -G", values.files),) if values.files else ()),
        "test ! -e /etc/munge/munge.key",
    )


def _each_is_there(asked: str, names: Iterable[str]) -> str:
    words = " ".join(f"'{each}'" for each in names)
    return (
        f'for each in {words}; do {asked} "$each" ||'
        ' { echo "the image lacks $each"; exit 1; }; done'
    )


def _step(name: str, timeout_s: int, commands: tuple[str, ...]) -> Step:
    """Its commands are one script, whose exit code is that of the last."""
    stops = ("set -e",) if len(commands) > 1 else ()
    return {
        "name": name,
        "action": "ExecuteBash",
        "timeoutSeconds": timeout_s,
        "onFailure": "Abort",
        "inputs": {"commands": [*stops, *commands]},
    }
