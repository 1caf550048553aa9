"""Image Builder's answers, in the shapes of AWS's own model: moto knows nothing of it."""

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from tidegate.adapters.image_builder import built, pipelines, start
from tidegate.core.model.errors import NotAuthorized

NAME = "tidegate-dev-x86-64"
AT = "arn:aws:imagebuilder:us-east-1:123456789012"
ARN = f"{AT}:image-pipeline/{NAME}"


@pytest.fixture
def client() -> Any:
    make: Any = boto3.client
    return make("imagebuilder", "us-east-1", aws_access_key_id="none", aws_secret_access_key="none")


def test_pipelines_are_found_by_their_names_on_every_page(client):
    asked = {"filters": [{"name": "name", "values": [NAME]}]}
    first = {"imagePipelineList": [], "nextToken": "more"}
    # Names are filtered here too: whether AWS's filter takes part of one is not said.
    both = [{"name": name, "arn": f"{AT}:image-pipeline/{name}"} for name in (NAME, f"{NAME}-2")]

    with Stubber(client) as stub:
        stub.add_response("list_image_pipelines", first, asked)
        stub.add_response(
            "list_image_pipelines", {"imagePipelineList": both}, {**asked, "nextToken": "more"}
        )

        assert pipelines(client, (NAME,)) == {NAME: ARN}


def test_a_build_that_was_started_is_known_by_its_version(client):
    with Stubber(client) as stub:
        told = {"imageBuildVersionArn": f"{AT}:image/{NAME}/1.0.77/3"}
        stub.add_response("start_image_pipeline_execution", told)

        assert start(client, ARN) == "1.0.77/3"


def test_images_are_told_newest_first_with_why_one_failed(client):
    rows = [
        {
            "version": "1.0.77/1",
            "dateCreated": "2026-11-01T03:00:00Z",
            "state": {"status": "AVAILABLE"},
            "outputResources": {"amis": [{"region": "us-east-1", "image": "ami-0a1b2c3d"}]},
        },
        {
            "version": "1.0.77/2",
            "dateCreated": "2026-11-08T03:00:00Z",
            "state": {"status": "FAILED", "reason": "the image lacks mount.efs"},
        },
    ]
    with Stubber(client) as stub:
        stub.add_response(
            "list_image_pipeline_images", {"imageSummaryList": rows}, {"imagePipelineArn": ARN}
        )
        newest, older = built(client, NAME, ARN)

    assert (newest.state, newest.image_id, newest.reason) == (
        *("FAILED", "", "the image lacks mount.efs"),
    )
    assert (older.state, older.image_id, older.pipeline) == ("AVAILABLE", "ami-0a1b2c3d", NAME)


def test_who_may_not_ask_is_told_so(client):
    with Stubber(client) as stub:
        stub.add_client_error("list_image_pipelines", "AccessDeniedException", "no", 403)

        with pytest.raises(NotAuthorized):
            pipelines(client, (NAME,))
