"""File systems that a site has already, which head and nodes mount beside the shared one."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tidegate.core.model.frozen import frozen
from tidegate.wire import names
from tidegate.wire.section import Section, at_most

FILE_SYSTEMS_MAX = 8

NfsSource = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:/[A-Za-z0-9_./+@-]*$",
        json_schema_extra={"x-expected": "host:/path, like nas.example.com:/export/data"},
    ),
]
MountOption = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9_]+(=[A-Za-z0-9_.:/@-]+)?$",
        json_schema_extra={"x-expected": "one option of mount, like nconnect=16"},
    ),
]
# EFS's and FSx's own advice for Linux; hard: a server that is away is waited for.
NFS_OPTIONS = (
    *("nfsvers=4.1", "rsize=1048576", "wsize=1048576", "hard", "timeo=600", "retrans=2"),
    "noresvport",
)

# Another word for one of these, or its opposite: both on one line would depend on who reads it.
_INSTEAD = {"vers": "nfsvers", "soft": "hard", "softerr": "hard", "resvport": "noresvport"}
# Source: nfs(5). The mount would fail, and with it each boot.
_VERSIONS = ("3", "4", "4.0", "4.1", "4.2")
_OPTION_WORDS = {
    "vers": _VERSIONS,
    "nfsvers": _VERSIONS,
    "proto": ("tcp", "tcp6", "udp", "udp6", "rdma", "rdma6"),
    "sec": ("sys", "krb5", "krb5i", "krb5p", "none"),
    "lookupcache": ("all", "none", "pos", "positive"),
    "local_lock": ("all", "flock", "posix", "none"),
    "nconnect": tuple(map(str, range(1, 17))),
}
_OPTION_LISTS = ("sec",)  # in the order of preference
_OPTION_NUMBERS = (
    *("rsize", "wsize", "timeo", "retrans", "retry", "port", "mountport", "actimeo", "acregmin"),
    *("acregmax", "acdirmin", "acdirmax"),
)


# Source: S3 user guide, "General purpose bucket naming rules"; of keys what needs no quoting.
S3Place = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9!_.()=+@-]+)*/?$",
        json_schema_extra={"x-expected": "bucket or bucket/prefix, like data-sets/imagenet"},
    ),
]
# Source: AWS CLI reference, s3files create-mount-target, --file-system-id.
S3FilesId = Annotated[
    str,
    Field(
        pattern=r"^fs-[0-9a-f]{17,40}$",
        json_schema_extra={"x-expected": "an S3 file system's id like fs-0a1b2c3d4e5f60001"},
    ),
]

Kind = Literal["efs", "lustre", "nfs", "s3files", "s3"]


@frozen
class FileSystem:
    """`source`: an id of EFS, FSx for Lustre, File Cache or S3 Files, host:/path of NFS, or a
    bucket with its prefix.

    `mount_name`: FSx shows Lustre's beside the id. `bucket`: what nodes read of an S3 file system
    directly, "" for nothing.
    `security_group` "": its door is open already.
    """

    directory: str
    kind: Kind
    source: str
    options: tuple[str, ...]
    security_group: str
    bucket: str = ""
    mount_name: str = ""

    @property
    def is_read_only(self) -> bool:
        return "ro" in self.options


class FileSystemModel(Section):
    """One that is there already: EFS, FSx for Lustre, what speaks NFS, S3 Files, or a bucket."""

    directory: names.SharedDir = Field(description="where head and nodes have it, like /data")
    efs: names.FileSystemId | None = Field(
        default=None, description="an EFS file system's id; mounted with TLS and the machine's role"
    )
    lustre: names.LustreId | None = Field(
        default=None,
        description="an FSx for Lustre file system's id, or that of a File Cache (fc-); head and"
        " nodes need an image with the client",
    )
    mount_name: names.LustreMountName | None = Field(
        default=None, description="of lustre: FSx shows it beside the id"
    )
    nfs: NfsSource | None = Field(
        default=None,
        description="host:/path of an NFS server, FSx for OpenZFS or ONTAP among them",
    )
    s3_files: S3FilesId | None = Field(
        default=None,
        description="an S3 file system's id: a bucket with all that files can do; mounted with TLS"
        " and the machine's role",
    )
    bucket: S3Place | None = Field(
        default=None,
        description="the bucket behind s3_files, with its prefix: large files are then read from"
        " S3 itself, which the machines' roles may",
    )
    s3: S3Place | None = Field(
        default=None,
        description="a bucket in the cluster's region, with a prefix or none, to read from by"
        " Mountpoint; on nodes with disks of their own what was read stays there",
    )
    options: tuple[MountOption, ...] = Field(
        default=(), description="of mount, over the usual ones of NFS, like nconnect=16"
    )
    read_only: bool = Field(default=False, description="nobody in the cluster writes to it")
    security_group: names.SecurityGroupId | None = Field(
        default=None,
        description="of its network interfaces, which the stack opens to head and nodes for NFS or"
        " Lustre; it is open to them when left out",
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        given = [self.efs, self.lustre, self.nfs, self.s3_files, self.s3]
        if sum(each is not None for each in given) != 1:
            raise ValueError("needs efs, lustre, nfs, s3_files or s3: one of the five")
        if (self.lustre is None) != (self.mount_name is None):
            raise ValueError("lustre and mount_name belong together: FSx shows both")
        if self.options and not self.nfs:
            raise ValueError("options: only of nfs; the others have those of their mount helpers")
        keys = [each.partition("=")[0] for each in self.options]
        if {"exec", "suid", "dev"} & set(keys):
            raise ValueError("options: what lies there makes nobody root (nosuid, nodev)")
        for key, _, value in (each.partition("=") for each in self.options):
            _check_option(key, value)
        if self.bucket and not self.s3_files:
            raise ValueError("bucket: the one behind s3_files; to mount a bucket itself, say s3")
        if self.s3 and self.security_group:
            raise ValueError("security_group: a bucket has none, it is reached as S3 is")
        return self

    def file_system(self) -> FileSystem:
        return FileSystem(
            self.directory,
            self._kind,
            self.efs or self.lustre or self.nfs or self.s3_files or (self.s3 or "").rstrip("/"),
            self._options(),
            self.security_group or "",
            (self.bucket or "").rstrip("/"),
            self.mount_name or "",
        )

    @property
    def _kind(self) -> Kind:
        kinds: tuple[tuple[Kind, str | None], ...] = (
            *(("efs", self.efs), ("lustre", self.lustre), ("nfs", self.nfs)),
            *(("s3files", self.s3_files), ("s3", self.s3)),
        )
        return next(kind for kind, source in kinds if source)

    def _options(self) -> tuple[str, ...]:
        mode = ("ro",) if self.read_only or self.s3 else ()
        if self.nfs:
            given = {each.partition("=")[0] for each in self.options}
            given |= {_INSTEAD[each] for each in given & _INSTEAD.keys()}
            usual = (each for each in NFS_OPTIONS if each.partition("=")[0] not in given)
            return (*usual, *self.options, *mode)
        # Source: README of efs-utils, "S3 Files-specific Mount Options".
        is_through = self.s3_files and not self.bucket
        return ("nodirects3read", *mode) if is_through else mode


def _check_option(key: str, value: str) -> None:
    """Errors: ValueError, for what no client of NFS takes."""
    words = _OPTION_WORDS.get(key)
    given = value.split(":") if key in _OPTION_LISTS else [value]
    if words and not set(given) <= set(words):
        most = f"{words[0]}-{words[-1]}" if key == "nconnect" else ", ".join(words)
        raise ValueError(f"options: {key} must be one of {most}, is {value or 'nothing'}")
    if key in _OPTION_NUMBERS and not (value.isascii() and value.isdigit()):
        raise ValueError(f"options: {key} must be a number, is {value or 'nothing'}")


FileSystems = Annotated[tuple[FileSystemModel, ...], at_most(FILE_SYSTEMS_MAX)]
