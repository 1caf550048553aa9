"""Buckets of S3 behind folders of FSx for Lustre, in FSx's words data repository associations.

Sources: FSx for Lustre user guide, "Linking your file system to an Amazon S3 bucket"; FSx API
reference, CreateDataRepositoryAssociation.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from tidegate.wire import names
from tidegate.wire.file_systems import S3Place
from tidegate.wire.section import Section, at_most

DATA_REPOSITORIES_MAX = 8


class FileEvent(StrEnum):
    """What becomes of a file or an object, in FSx's words."""

    NEW = "NEW"
    CHANGED = "CHANGED"
    DELETED = "DELETED"


FileEvents = Annotated[tuple[FileEvent, ...], AfterValidator(names.no_repeats)]
FolderPath = Annotated[
    str,
    Field(
        max_length=1024,
        pattern=r"^/$|^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$",
        json_schema_extra={"x-expected": "a folder of the file system like /data, or / for all"},
    ),
]


class DataRepositoryModel(Section):
    """A bucket of S3 behind a folder of the file system: a data repository association of FSx."""

    path: FolderPath = Field(
        description="the folder, counted from lustre.directory: /data is at /fsx/data; / for all"
    )
    s3: S3Place = Field(
        description="the bucket with a prefix or none: what lies there is what lies in the folder"
    )
    import_on_create: bool = Field(
        default=True, description="the folder lists what is in the bucket when it is linked"
    )
    imported_file_chunk_mib: Annotated[int, Field(ge=1, le=512_000)] = Field(
        default=1024, description="MiB of an imported file on one disk, before the next one's"
    )
    auto_import: FileEvents = Field(
        default=(),
        description="NEW, CHANGED, DELETED: objects whose changes the folder follows; the bucket"
        " must be in the cluster's region then",
    )
    auto_export: FileEvents = Field(
        default=(),
        description="NEW, CHANGED, DELETED: files whose changes the bucket follows; nothing is"
        " written to the bucket when left out",
    )


DataRepositories = Annotated[tuple[DataRepositoryModel, ...], at_most(DATA_REPOSITORIES_MAX)]
