"""S3 behind folders of FSx for Lustre: associations, and what came before them.

Sources: AWS ParallelCluster guide v3, "FsxLustreSettings"; FSx API reference,
CreateFileSystemLustreConfiguration (ImportPath, ExportPath, AutoImportPolicy); FSx for Lustre user
guide, "Working with older deployment types".
"""

from pydantic import TypeAdapter, ValidationError

from tidegate.cli.pcluster.outcome import Translated, Yaml
from tidegate.cli.pcluster.shape import FileSystem, Link
from tidegate.wire.data_repositories import DataRepositoryModel, FileEvent
from tidegate.wire.problems import problems_of

SCHEME = "s3://"

_MODEL = TypeAdapter(DataRepositoryModel)


def repositories(settings: FileSystem, place: str, done: Translated) -> list[Yaml]:
    """As `lustre.data_repositories` has them; what it cannot say is lost."""
    found: list[Yaml] = []
    wanted = [
        (f"{place}.DataRepositoryAssociations[{each.name or index}]", _associated(each))
        for index, each in enumerate(settings.data_repository_associations or ())
    ]
    if settings.import_path:
        wanted.append((f"{place}.ImportPath", _imported(settings, settings.import_path)))
        _export(settings, settings.import_path, place, done)
    for where, entry in wanted:
        if why := _refused(entry):
            done.lose(where, "lustre-repository", f"is not linked: {why}")
        else:
            found.append(entry)
    return found


def of_existing(place: str, done: Translated) -> None:
    means = "a file system that is there keeps the links to S3 that it has: none is made here"
    done.lose(f"{place}.FsxLustreSettings", "lustre-repository", means)


def _associated(link: Link) -> Yaml:
    """ParallelCluster imports nothing by itself when it links."""
    entry: Yaml = {
        "path": f"/{link.file_system_path.strip('/')}",
        "s3": _place(link.data_repository_path),
        "import_on_create": bool(link.batch_import_meta_data_on_create),
    }
    if link.imported_file_chunk_size is not None:
        entry["imported_file_chunk_mib"] = link.imported_file_chunk_size
    for key, events in (
        ("auto_import", link.auto_import_policy),
        ("auto_export", link.auto_export_policy),
    ):
        if events:
            entry[key] = events
    return entry


def _imported(settings: FileSystem, path: str) -> Yaml:
    """The root of the file system is that of the bucket: a prefix is a folder of the same name, of
    which all is listed when the file system is made.
    """
    s3 = _place(path)
    entry: Yaml = {"path": f"/{s3.partition('/')[2]}", "s3": s3, "import_on_create": True}
    if settings.imported_file_chunk_size is not None:
        entry["imported_file_chunk_mib"] = settings.imported_file_chunk_size
    words = (settings.auto_import_policy or "NONE").split("_")
    if events := [each for each in words if each in list(FileEvent)]:
        entry["auto_import"] = events
    return entry


def _export(settings: FileSystem, import_path: str, place: str, done: Translated) -> None:
    """Nothing goes back by itself, there as here; what somebody sends back lands elsewhere, but
    where ExportPath is the bucket itself.
    """
    bucket = _place(import_path).partition("/")[0]
    exported = _place(settings.export_path or "")
    if exported == bucket:
        return
    means = "export tasks write over the objects that were imported, not below"
    if exported:
        done.lose(f"{place}.ExportPath", "lustre-repository", f"{means} {settings.export_path}")
    else:
        means = f"{means} a prefix FSxLustre... of their own; none runs by itself"
        done.lose(f"{place}.ImportPath", "without-harm", means, is_heavy=False)


def _place(path: str) -> str:
    """`bucket/prefix` of an address."""
    return path.removeprefix(SCHEME).strip("/")


def _refused(entry: Yaml) -> str:
    """Why the entry may not stand in a cluster file; "" when it may."""
    try:
        _MODEL.validate_python(entry)
    except ValidationError as error:
        return "; ".join(map(str, problems_of(error, DataRepositoryModel)))
    return ""
