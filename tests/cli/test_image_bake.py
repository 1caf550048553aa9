"""`tidegate image bake` and `list`, against Image Builder's own model."""

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from botocore.stub import Stubber
from typer.testing import CliRunner, Result

from tests.wire.cluster_files import good
from tidegate.cli.main import app

NAME = "tidegate-demo-x86-64"
AT = "arn:aws:imagebuilder:us-east-1:123456789012"
FOUND = {"imagePipelineList": [{"name": NAME, "arn": f"{AT}:image-pipeline/{NAME}"}]}


@pytest.fixture
def builder() -> Any:
    make: Any = boto3.client
    return make("imagebuilder", "us-east-1", aws_access_key_id="none", aws_secret_access_key="none")


def ask(folder: Path, builder: Any, *words: str, images: object = None) -> Result:
    file = folder / "demo.yaml"
    change: dict[str, object] = {} if images is None else {"images": images}
    file.write_text(yaml.safe_dump(good(change)))
    return CliRunner().invoke(
        app, ["image", *words, "--cluster", str(file)], obj=lambda service: builder
    )


def test_every_pipeline_of_the_cluster_is_started(tmp_path, builder):
    with Stubber(builder) as stub:
        stub.add_response("list_image_pipelines", FOUND)
        started = {"imageBuildVersionArn": f"{AT}:image/{NAME}/1.0.77/1"}
        stub.add_response("start_image_pipeline_execution", started)

        done = ask(tmp_path, builder, "bake", images={})

    assert done.exit_code == 0
    first, then = done.output.splitlines()
    assert first == f"{NAME}: bakes 1.0.77/1"
    assert "a deployment then takes it" in then


def test_what_failed_is_listed_with_its_reason(tmp_path, builder):
    row = {
        "version": "1.0.77/2",
        "dateCreated": "2026-11-08T03:00:00Z",
        "state": {"status": "FAILED", "reason": "the image lacks mount.efs"},
    }
    with Stubber(builder) as stub:
        for _ in range(2):
            stub.add_response("list_image_pipelines", FOUND)
            stub.add_response("list_image_pipeline_images", {"imageSummaryList": [row]})

        text = ask(tmp_path, builder, "list", images={}).output
        data = ask(tmp_path, builder, "list", "-o", "json", images={}).output

    assert "FAILED" in text
    assert "the image lacks mount.efs" in text
    assert json.loads(data)[0]["version"] == "1.0.77/2"


def test_a_file_without_images_is_told_what_to_say(tmp_path, builder):
    done = ask(tmp_path, builder, "bake")

    assert done.exit_code == 1
    assert "say `images: {}` in it, and deploy it" in done.output


def test_a_stack_that_is_not_deployed_is_named(tmp_path, builder):
    with Stubber(builder) as stub:
        stub.add_response("list_image_pipelines", {"imagePipelineList": []})

        done = ask(tmp_path, builder, "bake", images={})

    assert done.exit_code == 1
    assert "npx cdk deploy tidegate-demo-images" in done.output
