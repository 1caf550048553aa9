"""File systems that are there already: what could not be mounted is refused."""

from pathlib import Path

import pytest

from tests.wire.cluster_files import good, load, problems

NETWORK = {
    "vpc": "vpc-0a1b2c3d4e5f60000",
    "subnets": {"us-east-1a": "subnet-0a1b2c3d4e5f60001"},
}
EFS = {"directory": "/data", "efs": "fs-0a1b2c3d"}
S3_FILES = {"directory": "/lake", "s3_files": "fs-0a1b2c3d4e5f60001"}
S3 = {"directory": "/sets", "s3": "data-sets/imagenet/"}
NFS = {"directory": "/nas", "nfs": "nas.example.com:/export/data", "options": ["nconnect=16"]}


def test_options_come_over_the_usual_ones(tmp_path: Path) -> None:
    options = ["sec=krb5p:krb5i", "nfsvers=4.2", "nconnect=16"]
    own = {**NFS, "options": options, "read_only": True}
    efs, nfs = load(tmp_path, good({"network": NETWORK, "file_systems": [EFS, own]})).file_systems

    assert (efs.kind, efs.source, efs.options) == ("efs", "fs-0a1b2c3d", ())
    assert nfs.kind == "nfs"
    assert nfs.options[-4:] == (*options, "ro")
    assert "nfsvers=4.1" not in nfs.options
    assert "hard" in nfs.options


def test_another_word_for_a_usual_option_stands_alone(tmp_path: Path) -> None:
    """NFS 3 would be asked for beside 4.1, and what is hard would be soft too."""
    own = {**NFS, "options": ["vers=3", "softerr"]}
    (nfs,) = load(tmp_path, good({"network": NETWORK, "file_systems": [own]})).file_systems

    assert not {"nfsvers=4.1", "hard"} & set(nfs.options)


def test_large_files_come_from_the_bucket_only_where_the_file_names_it(tmp_path: Path) -> None:
    behind = {**S3_FILES, "directory": "/direct", "bucket": "lake/raw/", "read_only": True}
    file = load(tmp_path, good({"network": NETWORK, "file_systems": [S3_FILES, behind]}))

    through, direct = file.file_systems
    assert (through.kind, through.options, through.bucket) == ("s3files", ("nodirects3read",), "")
    assert (direct.options, direct.bucket) == (("ro",), "lake/raw")


def test_a_bucket_is_read_only_and_needs_no_network_that_is_there(tmp_path: Path) -> None:
    (sets,) = load(tmp_path, good({"file_systems": [S3]})).file_systems

    assert (sets.kind, sets.source, sets.options) == ("s3", "data-sets/imagenet", ("ro",))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([{"directory": "/data"}], "needs efs, lustre, nfs, s3_files or s3: one of the five"),
        ([{**EFS, "nfs": "a:/b"}], "needs efs, lustre, nfs, s3_files or s3: one of the five"),
        ([{**EFS, "options": ["ro"]}], "the others have those of their mount helpers"),
        ([{**S3, "s3": "Data/x"}], "bucket or bucket/prefix, like data-sets/imagenet"),
        ([{**S3, "s3": "s3://data/x"}], "bucket or bucket/prefix, like data-sets/imagenet"),
        ([{**S3, "s3": "data/a b"}], "bucket or bucket/prefix, like data-sets/imagenet"),
        ([{**S3, "security_group": "sg-0a1b2c3d"}], "a bucket has none, it is reached as S3 is"),
        ([{**S3_FILES, "s3_files": "fs-0a1b2c3d"}], "id like fs-0a1b2c3d4e5f60001"),
        ([{**EFS, "bucket": "lake"}], "bucket: the one behind s3_files"),
        ([{**NFS, "nfs": "/export"}], "host:/path, like nas.example.com:/export/data"),
        ([{**NFS, "options": ["rw,suid"]}], "one option of mount, like nconnect=16"),
        ([{**NFS, "options": ["suid"]}], "what lies there makes nobody root"),
        ([{**NFS, "options": ["vers=9"]}], "vers must be one of 3, 4, 4.0, 4.1, 4.2, is 9"),
        ([{**NFS, "options": ["nconnect=64"]}], "nconnect must be one of 1-16, is 64"),
        ([{**NFS, "options": ["proto=tpc"]}], "proto must be one of tcp, tcp6"),
        ([{**NFS, "options": ["sec=krb5p:krb5x"]}], "sec must be one of sys, krb5"),
        ([{**NFS, "options": ["timeo=1m"]}], "timeo must be a number, is 1m"),
        ([{**EFS, "directory": "/etc"}], "file_systems[0].directory"),
        ([{**EFS, "directory": "/shared"}], "/shared, and shared_dir has /shared: neither may lie"),
        ([{**EFS, "directory": "/shared/data"}], "and shared_dir has /shared: neither may lie in"),
        ([EFS, {**NFS, "directory": "/data"}], "and file_systems[0] has /data: neither may lie"),
        ([EFS] * 9, "file_systems at most 8 entries, has 9"),
    ],
)
def test_what_could_not_be_mounted_is_refused(
    tmp_path: Path, given: list[object], said: str
) -> None:
    told = problems(tmp_path, good({"network": NETWORK, "file_systems": given}))

    assert any(said in line for line in told), told


def test_a_new_network_reaches_no_mount_target_that_is_there(tmp_path: Path) -> None:
    told = problems(tmp_path, good({"file_systems": [EFS]}))

    assert told == [
        "file_systems[0] needs network.vpc: no mount target that is there is reached from a new"
        " network"
    ]
