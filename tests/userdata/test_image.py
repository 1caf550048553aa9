"""The component that bakes an image: what Image Builder takes, and the boot's own stages in it."""

import base64
import io
import re
import tarfile
from dataclasses import replace
from typing import Any

import pytest
import yaml

from userdata.bundle import HERE
from userdata.image import MAX_COMPONENT_BYTES, ImageValues, image_component

VALUES = ImageValues("dev", "/aws/service/x", driver_branch="580", programs=("enroot",))


def steps(values: ImageValues, phase: str) -> dict[str, dict[str, Any]]:
    phases: Any = image_component(values)["phases"]
    (found,) = [each["steps"] for each in phases if each["name"] == phase]
    return {each["name"]: each for each in found}


def baked(values: ImageValues) -> dict[str, str]:
    """The files of the bundle that the component unpacks."""
    text = "\n".join(steps(values, "build")["unpack"]["inputs"]["commands"])
    (packed,) = re.findall(r"echo (\S+) \| base64 -d", text)
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed))) as archive:
        members = [each for each in archive.getmembers() if each.isfile()]
        files = {each.name: archive.extractfile(each) for each in members}
        return {name: file.read().decode() for name, file in files.items() if file}


def test_the_component_is_what_image_builder_takes():
    document = image_component(VALUES)

    assert len(yaml.safe_dump(document)) < MAX_COMPONENT_BYTES
    assert set(document) == {"name", "description", "schemaVersion", "phases"}
    assert document["schemaVersion"] == "1.0"
    phases: Any = document["phases"]
    assert [each["name"] for each in phases] == ["build", "validate", "test"]
    for phase in phases:
        names = [each["name"] for each in phase["steps"]]
        assert len(names) == len(set(names))
        for step in phase["steps"]:
            assert set(step) == {"name", "action", "timeoutSeconds", "onFailure", "inputs"}
            assert (step["action"], step["onFailure"]) == ("ExecuteBash", "Abort")
            assert step["timeoutSeconds"] > 0
            assert all(isinstance(each, str) for each in step["inputs"]["commands"])


def test_its_stages_are_the_boot_s_own_in_their_order():
    files = baked(VALUES)

    assert [line.split()[0] for line in files["graph"].splitlines()] == [
        "quiesce",
        "packages",
        "driver",
    ]
    assert files["stages/packages.sh"] == (HERE / "both/packages.sh").read_text()
    assert "DRIVER_BRANCH=580" in files["settings"]
    assert list(steps(VALUES, "build")) == ["unpack", "quiesce", "packages", "driver", "tidy"]


def test_what_no_stage_brings_is_asked_for_in_the_end():
    commands = steps(replace(VALUES, files=("/usr/lib/x.so",)), "test")["complete"]["inputs"]

    text = "\n".join(commands["commands"])
    assert "command -v enroot" in text
    assert "compgen -G '/usr/lib/x.so'" in text
    assert "command -v nvidia-smi" in text
    assert "nvidia-smi" not in str(steps(replace(VALUES, driver_branch=""), "test"))


@pytest.mark.parametrize("value", ["a b", "a;b", "$(id)", "a\nb", "a'b"])
def test_no_value_adds_a_command(value):
    with pytest.raises(ValueError, match="image"):
        replace(VALUES, programs=(value,))
