"""`tidegate import pcluster`: where the cluster's own files are, and where to ask for the rest."""

import re
from pathlib import Path

import jmespath  # type: ignore[import-untyped]
import pytest
from botocore.session import Session
from typer.testing import CliRunner, Result

from tests.cli.pcluster.imported import PLACES, changed, codes, good, written
from tidegate.cli.main import app
from tidegate.cli.pcluster import asking

VOLUME = "StorageType: Ebs"
THERE = "StorageType: Efs, EfsSettings: {FileSystemId: fs-0a1b2c3d}"
TO_MAKE = "StorageType: Efs"
LUSTRE = "StorageType: FsxLustre, FsxLustreSettings: {StorageCapacity: 1200}"


def imported(tmp_path: Path, *storage: tuple[str, str], more: str = "") -> Result:
    lines = [
        f"  - {{Name: s{index}, MountDir: {where}, {what}}}"
        for index, (where, what) in enumerate(storage)
    ]
    text = "\n".join(["SharedStorage:", *lines, f"{more}Scheduling:"])
    file = changed(tmp_path, "Scheduling:", text)
    accept = [f"--accept={each}" for each in ("shared-volume", "efs-throughput", "storage")]
    return CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES, *accept])


def told(done: Result, name: str) -> str:
    (line,) = [each for each in done.stderr.splitlines() if f"SharedStorage[{name}]" in each]
    return line


def test_a_volume_s_paths_stay_where_they_are_on_the_cluster_s_own_files(tmp_path: Path):
    """Programs know where they are installed: conda's, and module files."""
    settings = "EbsSettings: {SnapshotId: snap-0a1b2c3d, Size: 500}"

    done = imported(tmp_path, ("/apps", f"{VOLUME}, {settings}"))

    assert good(done).shared_dir == "/apps"
    said = "/apps is EFS, paid by use, and begins empty: copy what is in snap-0a1b2c3d"
    assert said in told(done, "s0")


def test_of_several_volumes_the_first_keeps_its_place(tmp_path: Path):
    other = f"{VOLUME}, EbsSettings: {{VolumeId: vol-0a1b2c3d}}"

    done = imported(tmp_path, ("/apps", VOLUME), ("/data", other))

    assert good(done).shared_dir == "/apps"
    said = "nothing is at /data: copy what is in vol-0a1b2c3d into SHARED_DIR, and link it"
    assert said in told(done, "s1")


@pytest.mark.parametrize("efs", [THERE, TO_MAKE])
def test_an_efs_goes_before_a_volume_wherever_it_stands(tmp_path: Path, efs: str):
    done = imported(tmp_path, ("/apps", VOLUME), ("/efs", efs))

    assert written(done)["shared_dir"] == "/efs"
    assert "nothing is at /apps" in told(done, "s0")


def test_no_volume_s_place_is_in_that_of_another_file_system(tmp_path: Path):
    done = imported(tmp_path, ("/fsx/apps", VOLUME), ("/fsx", LUSTRE))

    assert "nothing is at /fsx/apps" in told(done, "s0")


def test_homes_on_a_volume_are_not_where_the_cluster_s_files_are(tmp_path: Path):
    done = imported(tmp_path, ("/home", VOLUME))

    assert "shared_dir" not in written(done)
    assert "homes are in SHARED_DIR/home, on EFS; copy what is in it" in told(done, "s0")


def test_the_efs_that_is_to_be_made_is_the_cluster_s_own_and_others_lie_beside(tmp_path: Path):
    """Both have their place then; the one that is there came first, and the other was a gap."""
    done = imported(tmp_path, ("/data", THERE), ("/work", TO_MAKE))

    made = written(done)
    assert (made["shared_dir"], "existing" in made) == ("/work", False)
    assert made["file_systems"] == [{"directory": "/data", "efs": "fs-0a1b2c3d"}]
    assert "to fill in" not in done.stderr


def test_nodes_with_lustre_need_no_image_of_one_s_own(tmp_path: Path):
    """Its client comes from AWS's packages, at the boot or into what is baked."""
    done = imported(tmp_path, ("/fsx", LUSTRE))

    file = good(done)
    assert (file.image_id, file.images is not None) == (None, True)
    assert "AWS's packages must know the image's kernel" in done.stderr


def test_images_are_baked_where_nodes_would_install_at_each_boot(tmp_path: Path):
    own = "Image: {Os: ubuntu2404, CustomAmi: ami-0a1b2c3d}"
    file = changed(tmp_path, "Image: {Os: ubuntu2404}", own)

    assert "images" not in written(CliRunner().invoke(app, ["import", "pcluster", str(file)]))
    assert written(imported(tmp_path))["images"] == {}


def test_nothing_is_baked_where_each_pool_has_its_image(tmp_path: Path):
    """A queue of no pool has none."""
    none = """SlurmQueues:
    - Name: none
      ComputeResources: [{Name: a, InstanceType: c5.large, MaxCount: 0}]
      Networking: {SubnetIds: [subnet-0a1b2c3d]}"""
    file = changed(tmp_path, "SlurmQueues:", none)
    text = file.read_text().replace(
        "CapacityType:", "Image: {CustomAmi: ami-1}\n      CapacityType:"
    )
    file.write_text(text.replace("ami-1", "ami-0a1b2c3d"))

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert good(done).images is None


ANSWERS = {
    asking.of_subnets(["subnet-1"], "VpcId"): {
        "Subnets": [{"SubnetId": "subnet-1", "VpcId": "vpc-1"}]
    },
    asking.of_subnets(["subnet-1"], "AvailabilityZone"): {
        "Subnets": [{"SubnetId": "subnet-1", "AvailabilityZone": "us-east-1a"}]
    },
    asking.of_reservation("cr-1"): {},
    asking.mount_name("fs-1"): {
        "FileSystems": [{"LustreConfiguration": {"MountName": "fsx"}}],
    },
    asking.mount_name("fc-1"): {"FileCaches": [{"LustreConfiguration": {"MountName": "fsx"}}]},
    asking.group_of_lustre("fs-1"): {"FileSystems": [{"NetworkInterfaceIds": ["eni-1", "eni-2"]}]},
    asking.group_of_lustre("fc-1"): {"FileCaches": [{"NetworkInterfaceIds": ["eni-1"]}]},
    asking.group_of_efs("fs-1"): {"MountTargets": [{"MountTargetId": "fsmt-1"}]},
    asking.path_of_zfs("fsvol-1")[0]: {
        "Volumes": [{"FileSystemId": "fs-1", "OpenZFSConfiguration": {"VolumePath": "/fsx"}}]
    },
    asking.path_of_ontap("fsvol-1")[0]: {
        "Volumes": [
            {"OntapConfiguration": {"StorageVirtualMachineId": "svm-1", "JunctionPath": "/vol1"}}
        ]
    },
    asking.path_of_ontap("fsvol-1")[1]: {
        "StorageVirtualMachines": [
            {"StorageVirtualMachineId": "svm-1", "Endpoints": {"Nfs": {"DNSName": "svm-1.fs-1"}}}
        ]
    },
    asking.made_by_stack("AWS::EFS::FileSystem"): {
        "StackResourceSummaries": [
            {"ResourceType": "AWS::EFS::FileSystem", "PhysicalResourceId": "fs-1"}
        ]
    },
}


@pytest.mark.parametrize("command", ANSWERS)
def test_aws_knows_the_commands_that_answer_a_gap(command: str):
    """Operations and options by botocore's models; what is picked is in the answer's shape."""
    asked = re.findall(r"aws (\w+) ([a-z-]+) ((?:(?!\$\(|\)).)*)", command)
    assert asked
    for service, operation, options in asked:
        model = Session().get_service_model(service)
        names = {_dashed(each): each for each in model.operation_names}
        shape = model.operation_model(names[operation])
        assert shape.input_shape
        known = {_dashed(each) for each in shape.input_shape.members} | {"query", "output"}
        assert set(re.findall(r"--([a-z-]+)", options)) <= known

    answer = ANSWERS[command]
    for query in re.findall(r"--query ['\"](.*?)['\"](?= |`|$)", command.split(") --query")[0]):
        found = jmespath.search(query, answer)
        assert found
        assert "None" not in repr(found)


def _dashed(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


def test_a_second_one_of_a_kind_is_to_be_filled_in_with_the_command_that_tells_it(tmp_path: Path):
    """ParallelCluster makes one, but where its validators are suppressed."""
    done = imported(tmp_path, ("/one", TO_MAKE), ("/two", TO_MAKE))

    assert written(done)["file_systems"] == [{"directory": "/two", "efs": None}]
    said = asking.made_by_stack("AWS::EFS::FileSystem")
    assert f"the old cluster's, with DeletionPolicy: Retain for s1 ({said})" in done.stderr


def test_what_is_dearer_than_a_volume_is_refused_until_it_is_meant(tmp_path: Path):
    file = changed(
        tmp_path,
        "Scheduling:",
        f"SharedStorage: [{{Name: s, MountDir: /apps, {VOLUME}}}]\nScheduling:",
    )

    assert codes(CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])) == {
        "shared-volume"
    }


@pytest.mark.parametrize("what", [TO_MAKE, LUSTRE])
def test_that_what_is_made_begins_empty_is_told(tmp_path: Path, what: str):
    """And that the old one goes with the old cluster: DeletionPolicy is Delete by default."""
    done = imported(tmp_path, ("/work", what))

    assert "it begins empty: copy what is in the old one, which the old cluster deletes" in (
        told(done, "s0")
    )
