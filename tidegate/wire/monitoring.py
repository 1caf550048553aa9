"""What a cluster file may say about its own monitoring."""

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field

from tidegate.wire import names, places
from tidegate.wire.deployment import Nat, NetworkModel
from tidegate.wire.problems import Problem, shown
from tidegate.wire.section import Section

# The service's interface endpoint, com.amazonaws.REGION.aps-workspaces. Source: its user guide,
# "Using ... with interface VPC endpoints"; it has none for another region's workspaces.
WRITE_ENDPOINT = "aps-workspaces"
# As the console shows it, "Endpoint - remote write URL". Source: the service's user guide; the form
# of a workspace's id is botocore's (`amp`, WorkspaceId). There are none in China.
_URL = re.compile(
    r"https://aps-workspaces(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com/workspaces/"
    r"(ws-[0-9A-Za-z_.-]{1,61})/api/v1/remote_write"
)
APART = ("us-gov-", "us-iso", "eu-iso", "eusc-", "cn-")
_LIKE = "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-.../api/v1/remote_write"


def _url(value: str) -> str:
    found = _URL.fullmatch(value)
    if not found:
        raise ValueError(f"must be a workspace's remote write URL, {_LIKE}, is {shown(value)}")
    places.region(found[1])
    return value


class RemoteWriteModel(Section):
    """A workspace of Amazon Managed Service for Prometheus, which is paid by samples."""

    url: Annotated[str, AfterValidator(_url)] = Field(
        description=f"the workspace's remote write URL, {_LIKE}"
    )
    role: names.RoleArn | None = Field(
        default=None,
        description="a role that may write there and that the head assumes, for a workspace of"
        " another account; the head's own when left out",
    )

    @property
    def region(self) -> str:
        return self._parts[1]

    @property
    def workspace(self) -> str:
        """Its id."""
        return self._parts[2]

    @property
    def _parts(self) -> re.Match[str]:
        found = _URL.fullmatch(self.url)
        assert found, "checked as it was read"
        return found


class MonitoringModel(Section):
    """Prometheus on the head, with exporters on head and nodes; none when left out."""

    prometheus: bool = Field(
        default=False, description="run Prometheus on the head, with Tidegate's alerts"
    )
    retention_days: Annotated[int, Field(ge=1, le=400)] = Field(
        default=15, description="how long it keeps what it has scraped, of 4 GB at most"
    )
    remote_write: RemoteWriteModel | None = Field(
        default=None, description="where it sends all of that as well; nowhere when left out"
    )


def remote_write_problems(
    monitoring: MonitoringModel, region: str, network: NetworkModel
) -> Iterator[Problem]:
    """What cannot be sent, or would find no way out."""
    write = monitoring.remote_write
    if write is None:
        return
    place = ("monitoring", "remote_write")
    if not monitoring.prometheus:
        yield Problem(place, "needs monitoring.prometheus: true, whose metrics it sends")
    if _partition(write.region) != _partition(region):
        yield Problem((*place, "url"), f"no role of {region} is known in {write.region}")
    elif network.endpoints and not network.vpc and network.nat is Nat.NONE:
        yield from _without_nat(write, region, network)


def _without_nat(write: RemoteWriteModel, region: str, network: NetworkModel) -> Iterator[Problem]:
    if write.region != region:
        yield Problem(
            ("monitoring", "remote_write", "url"),
            f"{write.region} is not reached from {region} by endpoints: set network.nat",
        )
    wanted = {WRITE_ENDPOINT} | ({"sts"} if write.role else set())
    if missing := sorted(wanted - {*network.endpoints}):
        text = f"without NAT also {', '.join(missing)}, by which metrics are written"
        yield Problem(("network", "endpoints"), text)


def _partition(region: str) -> str:
    """A role of one partition of AWS is unknown in the others."""
    return next((each for each in APART if region.startswith(each)), "")
