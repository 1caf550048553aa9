"""Shared files: one EFS and one Lustre of the stack's, and those of a site's own beside them."""

import re

from tidegate.cli.pcluster import links
from tidegate.cli.pcluster.keys import EFS_SPEED
from tidegate.cli.pcluster.outcome import Gap, Translated, Yaml
from tidegate.cli.pcluster.shape import Configuration, FileCache, FileSystem, SharedStorage
from tidegate.wire.places import shared_dir

LUSTRE_STEP_GIB, LEAST_LUSTRE_GIB = 2400, 1200
STAND_IN_GROUP, STAND_IN_MOUNT, STAND_IN_NFS = "sg-00000000", "fsx", "nfs.example:/path"
STAND_IN_IMAGE, STAND_IN_FILES = "ami-00000000", "fs-00000000"
HOMES, OLD_HOMES = "/home", "/old-home"
USUAL_DIR = "/shared"
OTHER_DIRS = ("/efs", "/cluster", *(f"/cluster{number}" for number in range(2, 100)))
SCRATCH, PERSISTENT = "scratch", "persistent"
_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[a-zA-Z0-9-]+")


def shared(old: Configuration, done: Translated) -> None:
    """The first EFS is shared_dir, a new Lustre is lustre, what is there already is beside."""
    for each in old.shared_storage or ():
        place = f"SharedStorage[{each.name}]"
        directory = f"/{each.mount_dir.strip('/')}"
        is_told = each.ebs_settings  # then `keys.py` knows it
        if _are_homes(each, directory, place, done):
            continue
        if _may_be_shared(directory) and _mounted(each, directory, place, done):
            continue
        if not is_told:
            done.lose(place, "storage", f"{each.storage_type} at {directory} is not mounted")
    _own_directory(done)
    is_own_everywhere = done.file.get("head", {}).get("image") and all(
        each.own_image for each in old.queues
    )
    if _has_lustre(done) and "image" not in done.file and not is_own_everywhere:
        done.file["image"] = None
        text = "one of yours with FSx for Lustre's client, as ParallelCluster's have it: images.md"
        done.gaps.append(Gap(("image",), text, STAND_IN_IMAGE))
    _key(old, done)


def _has_lustre(done: Translated) -> bool:
    return "lustre" in done.file or any(
        "lustre" in each for each in done.file.get("file_systems", ())
    )


def _own_directory(done: Translated) -> None:
    """The cluster's own files are elsewhere where the site's have their directory."""
    taken = [each["directory"] for each in done.file.get("file_systems", ())]
    taken += [done.file["lustre"]["directory"]] if "lustre" in done.file else []
    if "shared_dir" in done.file or not _lies_in(USUAL_DIR, taken):
        return
    free = next(each for each in OTHER_DIRS if not _lies_in(each, taken))
    done.file["shared_dir"] = free
    done.notes.append(
        f"shared_dir: {free} has homes and the cluster's own files; {USUAL_DIR} is taken"
    )


def _lies_in(directory: str, others: list[str]) -> bool:
    """Whether one of them is in the other."""
    pairs = (sorted((directory, each), key=len) for each in others)
    return any(f"{inner}/".startswith(f"{outer}/") for outer, inner in pairs)


def _are_homes(each: SharedStorage, directory: str, place: str, done: Translated) -> bool:
    """Homes are in the shared folder here; those of before are mounted beside it, to be copied."""
    if directory != HOMES or each.ebs_settings:
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
    else:
        return _yours_to_make(each, directory, done)
    return True


def _yours_to_make(each: SharedStorage, directory: str, done: Translated) -> bool:
    """A further one that ParallelCluster made: the stack makes one of each kind."""
    if each.storage_type not in ("Efs", "FsxLustre"):
        return False
    kind, service = ("efs", "efs") if each.storage_type == "Efs" else ("lustre", "fsx")
    settings = (each.efs_settings if kind == "efs" else each.fsx_lustre_settings) or FileSystem()
    size = f" with {settings.storage_capacity} GiB" if settings.storage_capacity else ""
    beside = _beside(done)
    text = (
        f"the id of one{size} that you make (aws {service} create-file-system), or of the one that"
        f" the old cluster made for {each.name} and leaves (DeletionPolicy: Retain)"
    )
    path = ("file_systems", str(len(beside)))
    done.gaps.append(Gap((*path, kind), text, STAND_IN_FILES))
    entry: Yaml = {"directory": directory, kind: None}
    if kind == "lustre":
        _of_console(path, "it", done)
        entry |= {"mount_name": None, "security_group": None}
    beside.append(entry)
    return True


def _there_already(each: SharedStorage, directory: str, place: str, done: Translated) -> bool:
    """Whether it is one of the site's own, which is then mounted at this directory."""
    efs, lustre = each.efs_settings or FileSystem(), each.fsx_lustre_settings or FileSystem()
    match each.storage_type:
        case "Efs" if efs.file_system_id:
            _beside(done).append({"directory": directory, "efs": efs.file_system_id})
        case "FsxLustre" if lustre.file_system_id:
            _existing_lustre(lustre.file_system_id, directory, done)
            if lustre.import_path or lustre.data_repository_associations:
                links.of_existing(place, done)
        case "FileCache" if cache := (each.file_cache_settings or FileCache()).file_cache_id:
            _existing_lustre(cache, directory, done)
        case "FsxOpenZfs" | "FsxOntap":
            path = ("file_systems", str(len(_beside(done))), "nfs")
            volume = (each.fsx_open_zfs_settings or each.fsx_ontap_settings or {}).get("VolumeId")
            text = f"host:/path of {volume}: its file system's DNS name, and its junction path"
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
        done.lose(place, EFS_SPEED.code, EFS_SPEED.means)
        return
    existing = done.file.setdefault("existing", {})
    existing["file_system"] = settings.file_system_id
    existing["file_security_group"] = None
    text = f"the security group of the mount targets of {settings.file_system_id}"
    done.gaps.append(Gap(("existing", "file_security_group"), text, STAND_IN_GROUP))


def _existing_lustre(id: str, directory: str, done: Translated) -> None:
    """A File Cache is one as well: its clients are those of Lustre.

    Source: ParallelCluster user guide, SharedStorage, FileCacheSettings; swsmith.cc, "Setup FSx
    FileCache with AWS ParallelCluster".
    """
    beside = _beside(done)
    _of_console(("file_systems", str(len(beside))), id, done)
    gaps = {"mount_name": None, "security_group": None}
    beside.append({"directory": directory, "lustre": id, **gaps})


def _of_console(path: tuple[str, str], of: str, done: Translated) -> None:
    for name, what, stand_in in (
        ("mount_name", "mount name", STAND_IN_MOUNT),
        ("security_group", "security group", STAND_IN_GROUP),
    ):
        text = f"the {what} of {of}, see FSx's console"
        done.gaps.append(Gap((*path, name), text, stand_in))


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
