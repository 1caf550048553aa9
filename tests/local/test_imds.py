"""The stand-in for the metadata service answers what cloud-init's Ec2 source asks of EC2's."""

import pytest

from local.imds import Identity, Imds

MAC = "02:00:00:00:00:01"


@pytest.fixture
def imds() -> Imds:
    made = Imds()
    tags = {"tidegate:pool": "gpu", "tidegate:launch": "x-1"}
    made.register(
        Identity(
            "i-0fa0", "g5.xlarge", "us-east-1a", "spot", "10.77.1.1", tags, "#!/bin/sh", mac=MAC
        )
    )
    return made


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("meta-data/tags/", "instance/"),
        ("meta-data/tags/instance", "tidegate:launch\ntidegate:pool"),
        ("meta-data/placement/", "availability-zone\nregion"),
        ("meta-data/network/interfaces/macs/", f"{MAC}/"),
        ("meta-data/iam/", "security-credentials/"),
    ],
)
def test_a_folder_lists_its_names(imds, folder, names):
    assert imds.answer("10.77.1.1", folder) == names


def test_everything_that_a_folder_lists_is_there(imds):
    def walk(folder: str) -> list[str]:
        names = imds.answer("10.77.1.1", folder)
        assert names is not None
        paths = [folder + name for name in names.splitlines()]
        return [leaf for each in paths for leaf in (walk(each) if each[-1] == "/" else [each])]

    leaves = walk("meta-data/")

    assert "meta-data/instance-id" in leaves
    assert all(imds.answer("10.77.1.1", leaf) for leaf in leaves)


def test_user_data_is_there_for_who_has_some_alone(imds):
    imds.register(Identity("i-0fa1", "g5.xlarge", "us-east-1a", "spot", "10.77.1.2"))

    assert imds.answer("10.77.1.1", "user-data") == "#!/bin/sh"
    assert imds.answer("10.77.1.2", "user-data") is None


def test_what_is_not_there_is_neither_a_folder(imds):
    assert imds.answer("10.77.1.1", "meta-data/plac") is None
    assert imds.answer("10.77.1.1", "meta-data/spot/instance-action") is None
    assert imds.answer("10.77.9.9", "meta-data/") is None
