"""EC2 Image Builder: starts pipelines, and says what came of them."""

from collections.abc import Iterator, Mapping
from typing import Any

from tidegate.adapters.aws_errors import aws_call
from tidegate.core.model.frozen import frozen


@frozen
class BuiltImage:
    """An image, or what is being made of one. `state`: Image Builder's word, like AVAILABLE.

    `image_id`: "" before there is one. `reason`: why it failed, or "". `created_at`: ISO 8601.
    """

    pipeline: str
    version: str
    state: str
    created_at: str
    image_id: str
    reason: str


def pipelines(client: Any, names: tuple[str, ...]) -> Mapping[str, str]:
    """Name -> ARN of those that are there. Errors: Throttled, NotAuthorized."""
    found: dict[str, str] = {}
    with aws_call():
        for page in _pages(
            client.list_image_pipelines,
            "imagePipelineList",
            filters=[{"name": "name", "values": list(names)}],
        ):
            found |= {each["name"]: each["arn"] for each in page}
    return {name: arn for name, arn in found.items() if name in names}


def start(client: Any, arn: str) -> str:
    """Begin a build now; the version of the image that comes of it. Errors: as `pipelines`."""
    with aws_call():
        answer = client.start_image_pipeline_execution(imagePipelineArn=arn)
    # arn:aws:imagebuilder:REGION:ACCOUNT:image/NAME/VERSION/BUILD
    return "/".join(answer["imageBuildVersionArn"].split("/")[-2:])


def built(client: Any, name: str, arn: str) -> list[BuiltImage]:
    """What a pipeline has made, the newest first. Errors: as `pipelines`."""
    with aws_call():
        rows = [
            each
            for page in _pages(
                client.list_image_pipeline_images, "imageSummaryList", imagePipelineArn=arn
            )
            for each in page
        ]
    found = [_read(name, each) for each in rows]
    return sorted(found, key=lambda each: each.created_at, reverse=True)


def _read(pipeline: str, row: Mapping[str, Any]) -> BuiltImage:
    state = row.get("state", {})
    amis = row.get("outputResources", {}).get("amis", ())
    return BuiltImage(
        pipeline=pipeline,
        version=row.get("version", ""),
        state=state.get("status", ""),
        created_at=row.get("dateCreated", ""),
        image_id=next((each["image"] for each in amis if each.get("image")), ""),
        reason=state.get("reason", ""),
    )


def _pages(call: Any, member: str, **asked: Any) -> Iterator[list[Mapping[str, Any]]]:
    token: dict[str, str] = {}
    while True:
        answer = call(**asked, **token)
        yield answer.get(member, [])
        if not answer.get("nextToken"):
            return
        token = {"nextToken": answer["nextToken"]}
