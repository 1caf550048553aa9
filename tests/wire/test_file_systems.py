"""File systems that are there already: what could not be mounted is refused."""

from pathlib import Path

import pytest

from tests.wire.cluster_files import good, load, problems

NETWORK = {
    "vpc": "vpc-0a1b2c3d4e5f60000",
    "subnets": {"us-east-1a": "subnet-0a1b2c3d4e5f60001"},
}
EFS = {"directory": "/data", "efs": "fs-0a1b2c3d"}
NFS = {"directory": "/nas", "nfs": "nas.example.com:/export/data", "options": ["nconnect=16"]}


def test_options_come_over_the_usual_ones(tmp_path: Path) -> None:
    own = {**NFS, "options": ["nfsvers=4.2", "nconnect=16"], "read_only": True}
    efs, nfs = load(tmp_path, good({"network": NETWORK, "file_systems": [EFS, own]})).file_systems

    assert (efs.is_efs, efs.source, efs.options) == (True, "fs-0a1b2c3d", ())
    assert nfs.options[-3:] == ("nfsvers=4.2", "nconnect=16", "ro")
    assert "nfsvers=4.1" not in nfs.options
    assert "hard" in nfs.options


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([{"directory": "/data"}], "needs efs or nfs: one of the two"),
        ([{**EFS, "nfs": "a:/b"}], "needs efs or nfs: one of the two"),
        ([{**EFS, "options": ["ro"]}], "those of EFS are its mount helper's own"),
        ([{**NFS, "nfs": "/export"}], "host:/path, like nas.example.com:/export/data"),
        ([{**NFS, "options": ["rw,suid"]}], "one option of mount, like nconnect=16"),
        ([{**NFS, "options": ["suid"]}], "what lies there makes nobody root"),
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


def test_a_new_network_reaches_nothing_that_is_there_already(tmp_path: Path) -> None:
    told = problems(tmp_path, good({"file_systems": [EFS]}))

    assert told == [
        "file_systems[0] needs network.vpc: nothing that is there already is reached from a new"
        " network"
    ]
