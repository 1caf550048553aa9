"""Where machines get Slurm's packages from, where their system's own do not serve."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tidegate.wire.names import PORT
from tidegate.wire.section import Section

# The systems on which Tidegate installs packages, in the words of `software.os`.
type InstalledOs = Literal["ubuntu24.04", "ubuntu22.04", "al2023"]

# Of the Slurm that each system has itself; the others' is too old, or there is none.
OWN_SLURM = {"ubuntu24.04": "23.11"}

_HTTPS = rf"https://[A-Za-z0-9.-]+(:{PORT})?(/[A-Za-z0-9._~+-]+)*"
# A whole bucket is none: machines may list and read what the file names and no more.
_S3 = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9][A-Za-z0-9._-]*)+"

PackageUrl = Annotated[
    str,
    Field(
        pattern=rf"^({_HTTPS}|{_S3})/?$",
        json_schema_extra={
            "x-expected": "an address like https://packages.example.com/slurm or s3://bucket/slurm"
        },
    ),
]
Suite = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$",
        json_schema_extra={"x-expected": "a suite like noble"},
    ),
]
Component = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        json_schema_extra={"x-expected": "a component like main"},
    ),
]


class RepositoryModel(Section):
    """A repository of packages with Slurm, for one system."""

    url: PackageUrl = Field(
        description="of the repository: for apt the folder that has dists, for dnf the baseurl;"
        " s3://BUCKET/PREFIX is fetched with the machine's own role"
    )
    key: PackageUrl = Field(description="of the public key that signs it")
    suite: Suite | None = Field(
        default=None, description="apt's; a repository without suites (flat) when left out"
    )
    components: tuple[Component, ...] = Field(default=(), description="apt's, of the suite")

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if bool(self.suite) != bool(self.components):
            raise ValueError("suite and components: give both, or neither for a flat repository")
        return self
