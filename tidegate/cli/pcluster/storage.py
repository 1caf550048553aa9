"""Shared files: one EFS and one Lustre of the stack's, and those of a site's own beside them.

ParallelCluster makes one EFS and one Lustre at most as well, and up to five volumes of EBS, which
its head shares (its constants.py, MAX_NEW_STORAGE_COUNT and MAX_EBS_COUNT).
"""

import re

from tidegate.cli.pcluster import asking, links
from tidegate.cli.pcluster.keys import EFS_SPEED
from tidegate.cli.pcluster.outcome import Gap, Translated, Yaml
from tidegate.cli.pcluster.shape import (
    Configuration,
    FileCache,
    FileSystem,
    SharedStorage,
    VolumeSettings,
)
from tidegate.wire.places import shared_dir
from tidegate.wire.problems import shown

LUSTRE_STEP_GIB, LEAST_LUSTRE_GIB = 2400, 1200
STAND_IN_GROUP, STAND_IN_MOUNT, STAND_IN_NFS = "sg-00000000", "fsx", "nfs.example:/path"
STAND_IN_FILES = "fs-00000000"
# Source: ParallelCluster guide v3, SharedStorage, DeletionPolicy, which is Delete by default.
BEGINS_EMPTY = (
    "it begins empty: copy what is in the old one, which the old cluster deletes with itself, but"
    " for DeletionPolicy: Retain"
)
HOMES, OLD_HOMES = "/home", "/old-home"
USUAL_DIR = "/shared"
OTHER_DIRS = ("/efs", "/cluster", *(f"/cluster{number}" for number in range(2, 100)))
SCRATCH, PERSISTENT = "scratch", "persistent"
_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[a-zA-Z0-9-]+")


def shared(old: Configuration, done: Translated) -> None:
    """The first EFS is shared_dir, a new Lustre is lustre, what is there already is beside."""
    for each in sorted(old.shared_storage or (), key=_rank):
        place = f"SharedStorage[{each.name}]"
        directory = f"/{each.mount_dir.strip('/')}"
        if each.storage_type == "Ebs":
            _volume(each, directory, place, done)
            continue
        if _are_homes(each, directory, place, done):
            continue
        if _may_be_shared(directory) and _mounted(each, directory, place, done):
            continue
        done.lose(place, "storage", f"{each.storage_type} at {shown(directory)} is not mounted")
    _own_directory(done)
    _key(old, done)


def _rank(each: SharedStorage) -> int:
    """One that is to be made is shared_dir before one that is there, which may be anywhere; a
    volume's directory is, where there is no EFS at all.
    """
    if each.storage_type == "Ebs":
        return 2
    return int(not (each.storage_type == "Efs" and _settings(each).file_system_id is None))


def _settings(each: SharedStorage) -> FileSystem:
    found = each.efs_settings if each.storage_type == "Efs" else each.fsx_lustre_settings
    return found or FileSystem()


def has_lustre(done: Translated) -> bool:
    return "lustre" in done.file or any(
        "lustre" in each for each in done.file.get("file_systems", ())
    )


def _volume(each: SharedStorage, directory: str, place: str, done: Translated) -> None:
    """Its paths stay where they are when the cluster's own EFS can be there instead."""
    settings = each.ebs_settings or VolumeSettings()
    source = settings.volume_id or settings.snapshot_id
    what = f"what is in {source}" if source else "what is in it"
    if directory == HOMES:
        means = f"homes are in SHARED_DIR/home, on EFS; copy {what} (docs/migrating.md)"
    elif _may_be_shared(directory) and _is_free(directory, done):
        done.file["shared_dir"] = directory
        means = f"{shown(directory)} is EFS, paid by use, and begins empty: copy {what}"
    else:
        means = f"nothing is at {shown(directory)}: copy {what} into SHARED_DIR, and link it"
        means = f"{means} (docs/migrating.md)"
    done.lose(place, "shared-volume", f"no EBS volume is shared from the head; {means}")


def _is_free(directory: str, done: Translated) -> bool:
    """Whether the cluster's own files may be there."""
    return "shared_dir" not in done.file and not _lies_in(directory, _taken(done))


def _own_directory(done: Translated) -> None:
    """The cluster's own files are elsewhere where the site's have their directory."""
    taken = _taken(done)
    if "shared_dir" in done.file or not _lies_in(USUAL_DIR, taken):
        return
    free = next(each for each in OTHER_DIRS if not _lies_in(each, taken))
    done.file["shared_dir"] = free
    done.notes.append(
        f"shared_dir: {free} has homes and the cluster's own files; {USUAL_DIR} is taken"
    )


def _taken(done: Translated) -> list[str]:
    beside = [each["directory"] for each in done.file.get("file_systems", ())]
    return [*beside, *([done.file["lustre"]["directory"]] if "lustre" in done.file else [])]


def _lies_in(directory: str, others: list[str]) -> bool:
    """Whether one of them is in the other."""
    pairs = (sorted((directory, each), key=len) for each in others)
    return any(f"{inner}/".startswith(f"{outer}/") for outer, inner in pairs)


def _are_homes(each: SharedStorage, directory: str, place: str, done: Translated) -> bool:
    """Homes are in the shared folder here; those of before are mounted beside it, to be copied."""
    if directory != HOMES:
        return False
    where = f"at {OLD_HOMES}" if _there_already(each, OLD_HOMES, place, done) else "not mounted"
    means = f"is {where}: homes are in SHARED_DIR/home here; copy them (docs/migrating.md)"
    done.lose(place, "storage", f"{each.storage_type} at {HOMES} {means}")
    return True


def _mounted(each: SharedStorage, directory: str, place: str, done: Translated) -> bool:
    """Whether there is a way to have it at this directory."""
    if each.storage_type == "Efs" and "shared_dir" not in done.file:
        done.file["shared_dir"] = directory
        _files(each.efs_settings or FileSystem(), place, done)
    elif _there_already(each, directory, place, done):
        pass
    elif each.storage_type == "FsxLustre" and "lustre" not in done.file:
        lustre = each.fsx_lustre_settings or FileSystem()
        done.file["lustre"] = {"directory": directory, **_lustre(lustre, place, done)}
        done.lose(place, "without-harm", BEGINS_EMPTY, is_heavy=False)
    else:
        return _yours_to_make(each, directory, done)
    return True


def _yours_to_make(each: SharedStorage, directory: str, done: Translated) -> bool:
    """A further one of a kind, which ParallelCluster makes where its validators are suppressed."""
    if each.storage_type not in ("Efs", "FsxLustre"):
        return False
    kind, resource = ("efs", "EFS") if each.storage_type == "Efs" else ("lustre", "FSx")
    beside = _beside(done)
    text = (
        f"the old cluster's, with DeletionPolicy: Retain for {each.name}"
        f" ({asking.made_by_stack(f'AWS::{resource}::FileSystem')}), or one that you make"
    )
    path = ("file_systems", str(len(beside)))
    done.gaps.append(Gap((*path, kind), text, STAND_IN_FILES))
    entry: Yaml = {"directory": directory, kind: None}
    if kind == "lustre":
        _of_lustre(path, "ID", done)
        entry |= {"mount_name": None, "security_group": None}
    beside.append(entry)
    return True


def _there_already(each: SharedStorage, directory: str, place: str, done: Translated) -> bool:
    """Whether it is one of the site's own, which is then mounted at this directory."""
    settings = _settings(each)
    match each.storage_type:
        case "Efs" if settings.file_system_id:
            _beside(done).append({"directory": directory, "efs": settings.file_system_id})
        case "FsxLustre" if settings.file_system_id:
            _existing_lustre(settings.file_system_id, directory, done)
            if settings.import_path or settings.data_repository_associations:
                links.of_existing(place, done)
        case "FileCache" if cache := (each.file_cache_settings or FileCache()).file_cache_id:
            _existing_lustre(cache, directory, done)
        case "FsxOpenZfs" | "FsxOntap":
            path = ("file_systems", str(len(_beside(done))), "nfs")
            volume = (each.fsx_open_zfs_settings or each.fsx_ontap_settings or {}).get("VolumeId")
            is_zfs = each.storage_type == "FsxOpenZfs"
            ask = asking.path_of_zfs if is_zfs else asking.path_of_ontap
            text = f"host:/path of {volume}: {'; '.join(ask(str(volume)))}"
            done.gaps.append(Gap(path, text, STAND_IN_NFS))
            _beside(done).append({"directory": directory, "nfs": None})
        case _:
            return False
    return True


def _beside(done: Translated) -> list[Yaml]:
    made: list[Yaml] = done.file.setdefault("file_systems", [])
    return made


def _may_be_shared(directory: str) -> bool:
    try:
        return bool(shared_dir(directory))
    except ValueError:
        return False


def _files(settings: FileSystem, place: str, done: Translated) -> None:
    if settings.file_system_id is None:
        done.lose(place, EFS_SPEED.code, f"{BEGINS_EMPTY}; {EFS_SPEED.means}")
        return
    existing = done.file.setdefault("existing", {})
    existing["file_system"] = settings.file_system_id
    existing["file_security_group"] = None
    text = f"that of its mount targets: {asking.group_of_efs(settings.file_system_id)}"
    done.gaps.append(Gap(("existing", "file_security_group"), text, STAND_IN_GROUP))


def _existing_lustre(id: str, directory: str, done: Translated) -> None:
    """A File Cache is one as well: its clients are those of Lustre.

    Source: ParallelCluster user guide, SharedStorage, FileCacheSettings; swsmith.cc, "Setup FSx
    FileCache with AWS ParallelCluster".
    """
    beside = _beside(done)
    _of_lustre(("file_systems", str(len(beside))), id, done)
    gaps = {"mount_name": None, "security_group": None}
    beside.append({"directory": directory, "lustre": id, **gaps})


def _of_lustre(path: tuple[str, str], id: str, done: Translated) -> None:
    for name, command, stand_in in (
        ("mount_name", asking.mount_name(id), STAND_IN_MOUNT),
        ("security_group", asking.group_of_lustre(id), STAND_IN_GROUP),
    ):
        done.gaps.append(Gap((*path, name), f"that of {id}: {command}", stand_in))


def _lustre(settings: FileSystem, place: str, done: Translated) -> Yaml:
    wanted = settings.storage_capacity or LEAST_LUSTRE_GIB
    steps = -(-wanted // LUSTRE_STEP_GIB)
    gib = steps * LUSTRE_STEP_GIB if wanted > LEAST_LUSTRE_GIB else LEAST_LUSTRE_GIB
    if gib != wanted:
        means = f"has {gib} GiB, not {wanted}: 1200 or a multiple of 2400"
        done.lose(f"{place}.FsxLustreSettings.StorageCapacity", "lustre-size", means)
    kind = settings.deployment_type or "SCRATCH_2"
    repositories = links.repositories(settings, f"{place}.FsxLustreSettings", done)
    return {
        "kind": PERSISTENT if kind.startswith("PERSISTENT") else SCRATCH,
        "storage_gib": gib,
        **({"data_repositories": repositories} if repositories else {}),
    }


def _key(old: Configuration, done: Translated) -> None:
    """One key of one's own for all that the stack makes, where all name the same."""
    keys = {
        f"SharedStorage[{each.name}].{kind}Settings.KmsKeyId": settings.kms_key_id
        for each in old.shared_storage or ()
        for kind, settings in (("Efs", each.efs_settings), ("FsxLustre", each.fsx_lustre_settings))
        if settings and settings.kms_key_id
    }
    if len(set(keys.values())) == 1 and _ARN.fullmatch(next(iter(keys.values())) or ""):
        done.file["kms_key"] = next(iter(keys.values()))
        return
    for place, key in keys.items():
        means = f"{key} is not used: kms_key takes one key's ARN, for volumes and files alike"
        done.lose(place, "kms-key", means)
