"""What a cluster file says of the images that are baked for its nodes."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from tidegate.wire import names
from tidegate.wire.section import Section, at_most

type Arch = Literal["x86_64", "arm64"]

# Nothing is compiled but on Amazon Linux, and without a GPU a build is a hundred times cheaper.
USUAL_BUILDERS: dict[Arch, str] = {"x86_64": "m6i.large", "arm64": "m6g.large"}

ComponentArn = Annotated[
    str,
    Field(
        # Source: Image Builder's API reference, ComponentConfiguration, `componentArn`.
        pattern=r"^arn:aws[a-z-]*:imagebuilder:[a-z0-9-]+:(\d{12}|aws[a-z-]*|third-party):component"
        r"/[a-z0-9_-]+/([0-9]+|x)\.([0-9]+|x)\.([0-9]+|x)(/[0-9]+)?$",
        json_schema_extra={
            "x-expected": "the ARN of a component like"
            " arn:aws:imagebuilder:us-east-1:123456789012:component/lustre/1.x.x"
        },
    ),
]


class ImagesModel(Section):
    """Images that hold what nodes would install at their boot. None when left out."""

    rebuild_days: Annotated[int, Field(ge=0, le=365)] = Field(
        default=7,
        description="how often it is looked whether the image that ours is made from has changed,"
        " and a new one baked if so; 0: only when you say so",
    )
    # The one that nodes are made from, and the one to go back to.
    keep: Annotated[int, Field(ge=2, le=100)] = Field(
        default=3, description="how many images are kept; older ones go, with their snapshots"
    )
    instance_types: dict[Arch, names.InstanceTypeName] = Field(
        default_factory=dict,
        description="on what they are baked and tested; m6i.large for x86_64 and m6g.large for"
        " arm64 when left out: a driver is tried only on a type with a GPU",
    )
    components: Annotated[
        tuple[ComponentArn, ...], at_most(19), AfterValidator(names.no_repeats)
    ] = Field(
        default=(),
        description="more components of EC2 Image Builder, run before Tidegate's own: what no stage"
        " of a boot brings",
    )

    # Of some 2 GiB that are needed where a sick node is reset or rebooted, not replaced.
    dcgm_tests: bool = Field(
        default=False,
        description="whether images of nodes with GPUs hold DCGM's tests (dcgmi diag), by which the"
        " memory of a GPU is tested after a reset or a reboot: some 2 GiB more in each image, 0.10"
        " USD a month for its snapshot; no boot takes longer",
    )

    def builder(self, arch: str) -> str:
        """The instance type on which images of an architecture are baked."""
        usual = {**USUAL_BUILDERS, **self.instance_types}
        return next(found for name, found in usual.items() if name == arch)
