"""The component that bakes an image: what Image Builder takes, and the boot's own stages in it."""

import re
import subprocess
from dataclasses import replace
from typing import Any

import pytest
import yaml

from local.boot.bundles import graph_of
from tests.userdata.awstoe import faults_of
from userdata.image import (
    ARCHIVE_AT,
    BUNDLE,
    MAX_COMPONENT_BYTES,
    MAX_INLINE_BYTES,
    ImageValues,
    image_component,
    text_of,
)
from userdata.render import baked_stages, node_bundle

VALUES = ImageValues("dev", "/aws/service/x", driver_branch="580", programs=("enroot",))


def steps(values: ImageValues, phase: str) -> dict[str, dict[str, Any]]:
    phases: Any = image_component(values)["phases"]
    (found,) = [each["steps"] for each in phases if each["name"] == phase]
    return {each["name"]: each for each in found}


def baked(values: ImageValues) -> tuple[bytes, str]:
    """What the component unpacks, and what it tells the stages."""
    build = steps(values, "build")
    text = "\n".join(
        each for name in ("archive", "unpack") for each in build[name]["inputs"]["commands"]
    )
    (written,) = re.findall(rf"(echo '\S+' \| python3 .* \| xz -d) >{ARCHIVE_AT}$", text, re.M)
    done = subprocess.run(["bash", "-ec", written], capture_output=True, check=True)
    return done.stdout, text


def test_the_component_is_what_image_builder_takes():
    document = image_component(VALUES)

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


def test_the_component_leaves_room_for_what_comes_next():
    """Whoever comes below this has packed something large, or has to find what can go."""
    room = MAX_COMPONENT_BYTES - len(text_of(image_component(VALUES)).encode())

    assert room >= 3072, f"{room} bytes are left of {MAX_COMPONENT_BYTES}"


def test_its_stages_are_the_boot_s_own_in_their_order():
    tar, told = baked(VALUES)

    assert tar == node_bundle().tar
    assert list(graph_of(node_bundle(), "image")) == [
        *("quiesce", "early", "packages", "driver", "pyxis", "dcgm")
    ]
    assert "\nDRIVER_BRANCH=580\n" in told
    assert list(steps(VALUES, "build")) == [
        *(
            "archive",
            "unpack",
            "quiesce",
            "early",
            "packages",
            "driver",
            "pyxis",
            "dcgm",
            "tidy",
        )
    ]


def test_each_stage_of_it_is_told_whether_it_has_anything_to_do():
    """The runner takes a setting that nobody tells for a mistake, and ends."""
    _, told = baked(VALUES)

    settings = {each.only_with for each in baked_stages()} - {"-"}
    assert settings == {"DRIVER_BRANCH", "DCGM", "CONTAINERS"}
    for name in settings:
        assert re.search(rf"^{name}=", told, re.MULTILINE)


def test_what_no_stage_brings_is_asked_for_in_the_end():
    commands = steps(replace(VALUES, files=("/usr/lib/x.so",)), "test")["complete"]["inputs"]

    text = "\n".join(commands["commands"])
    assert "'enroot'; do command -v" in text
    assert "for each in '/usr/lib/x.so'; do compgen -G" in text
    assert "'nvidia-smi'" in text
    assert "'nvidia-smi'" not in str(steps(replace(VALUES, driver_branch=""), "test"))


@pytest.mark.parametrize("value", ["a b", "a;b", "$(id)", "a\nb", "a'b"])
def test_no_value_adds_a_command(value):
    with pytest.raises(ValueError, match="image"):
        replace(VALUES, programs=(value,))


def test_nothing_of_it_is_taken_for_a_reference_of_image_builder_s():
    assert list(faults_of(image_component(VALUES))) == []
    assert list(faults_of(image_component(VALUES, in_s3=True))) == []


def test_a_document_that_a_request_does_not_take_is_refused_as_it_is_sent():
    """As YAML, which is longer than JSON."""
    names = tuple(f"program-{number:04d}-{'x' * 40}" for number in range(101))
    long = replace(VALUES, programs=names)

    with pytest.raises(ValueError, match=r"\d+ bytes; Image Builder takes 16000"):
        image_component(long, in_s3=True)

    sent = text_of(image_component(replace(long, programs=names[:97]), in_s3=True))
    assert len(sent.encode()) <= MAX_INLINE_BYTES


def test_a_document_whose_stages_lie_in_s3_fits_into_a_request():
    document = image_component(VALUES, in_s3=True)

    assert len(text_of(document)) < MAX_INLINE_BYTES / 2
    assert document["parameters"] == [
        {BUNDLE: {"type": "string", "description": "s3://BUCKET/KEY"}}
    ]
    text = text_of(document)
    assert yaml.safe_load(text) == document
    assert "&id" not in text
    # What comes from there must be what this version has.
    assert node_bundle().sha256 in text


DOCUMENT = image_component(VALUES, in_s3=True)
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("document: unknown step", {**DOCUMENT, "step": 1}),
    (
        "phases ['build', 'deploy']",
        {**DOCUMENT, "phases": [{"name": "build", "steps": []}, {"name": "deploy", "steps": []}]},
    ),
    (
        "build/a: action Bash",
        {**DOCUMENT, "phases": [{"name": "build", "steps": [{"name": "a", "action": "Bash"}]}]},
    ),
    ("build/archive: source {{ Bundle }}", {**DOCUMENT, "parameters": []}),
]


@pytest.mark.parametrize(("said", "document"), WRONG, ids=[said for said, _ in WRONG])
def test_a_document_that_image_builder_would_refuse_is_seen(said, document):
    assert said in list(faults_of(document))


def test_its_commands_are_clean_shell(tmp_path):
    """Each step is one script; the archive in it is long, and says nothing to shellcheck."""
    files = []
    for phase in ("build", "validate", "test"):
        for name, step in steps(VALUES, phase).items():
            text = "\n".join(["#!/bin/bash", *step["inputs"]["commands"]])
            files.append(tmp_path / f"{phase}-{name}.sh")
            files[-1].write_text(re.sub(r"echo \S{1000,} \|", "echo x |", text))

    done = subprocess.run(
        ["shellcheck", *map(str, files)], capture_output=True, text=True, check=False
    )

    assert done.stdout == ""


def test_a_machine_of_the_image_has_nothing_left_to_do():
    """A stage that had to do something there would do so at each boot."""
    (holds,) = (each for each in steps(VALUES, "test").values() if each["name"] == "holds")
    text = "\n".join(holds["inputs"]["commands"])

    assert "for each in quiesce early packages driver pyxis dcgm; do\n" in text
    assert "boot.sh stage $each\n" in text
    assert "how.$each) == skip" in text
    assert "nvidia-smi -L" in text


def test_its_unit_stays_when_systemd_starts_for_the_first_time():
    """`preset-all` disables on Amazon Linux what no file of presets enables."""
    tidy = "\n".join(steps(VALUES, "build")["tidy"]["inputs"]["commands"])

    assert "enable tidegate-early.service" in tidy
    assert "boot.sh stage early" in str(steps(VALUES, "build")["early"])
