"""File systems that a site has already, which head and nodes mount beside the shared one."""

from typing import Annotated, Self

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


@frozen
class FileSystem:
    """`source`: an EFS id, or host:/path of NFS. `security_group` "": its door is open already."""

    directory: str
    is_efs: bool
    source: str
    options: tuple[str, ...]
    security_group: str


class FileSystemModel(Section):
    """One that is there already: EFS by its id, or anything that speaks NFS, by its name."""

    directory: names.SharedDir = Field(description="where head and nodes have it, like /data")
    efs: names.FileSystemId | None = Field(
        default=None, description="an EFS file system's id; mounted with TLS and the machine's role"
    )
    nfs: NfsSource | None = Field(
        default=None,
        description="host:/path of an NFS server, FSx for OpenZFS or ONTAP among them",
    )
    options: tuple[MountOption, ...] = Field(
        default=(), description="of mount, over the usual ones of NFS, like nconnect=16"
    )
    read_only: bool = Field(default=False, description="nobody in the cluster writes to it")
    security_group: names.SecurityGroupId | None = Field(
        default=None,
        description="of its network interfaces, which the stack opens for NFS from head and nodes;"
        " it is open to them when left out",
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.efs is None) == (self.nfs is None):
            raise ValueError("needs efs or nfs: one of the two")
        if self.efs and self.options:
            raise ValueError("options: those of EFS are its mount helper's own")
        keys = [each.partition("=")[0] for each in self.options]
        if {"exec", "suid", "dev"} & set(keys):
            raise ValueError("options: what lies there makes nobody root (nosuid, nodev)")
        return self

    def file_system(self) -> FileSystem:
        mode = ("ro",) if self.read_only else ()
        group = self.security_group or ""
        if self.efs:
            return FileSystem(self.directory, True, self.efs, mode, group)
        given = {each.partition("=")[0] for each in self.options}
        usual = (each for each in NFS_OPTIONS if each.partition("=")[0] not in given)
        return FileSystem(
            self.directory, False, self.nfs or "", (*usual, *self.options, *mode), group
        )


FileSystems = Annotated[tuple[FileSystemModel, ...], at_most(FILE_SYSTEMS_MAX)]
