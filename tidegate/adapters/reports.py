"""Reports in the cluster's bucket: what the head handed in, and the pages that were made of it.

accounting/CLUSTER/PERIOD.gz    who ran, as `sacct` says it
reports/CLUSTER/PERIOD.html     the page, which is written once
reports/CLUSTER/PERIOD.told     people have been told of it
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_object_there, tolerating
from tidegate.adapters.slurm_accounting import accounted_in
from tidegate.core.model.frozen import frozen
from tidegate.core.offers.allocation import Accounted

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PAGE, TOLD = ".html", ".told"

# Where people look at S3 outside of the partition aws.
CONSOLES = (("cn-", "console.amazonaws.cn"), ("us-gov-", "console.amazonaws-us-gov.com"))


@frozen
class S3Reports:
    """One cluster's. Errors of all: Throttled, NotAuthorized."""

    s3: "S3Client"
    bucket: str
    cluster: str
    region: str = ""

    def hand_in(self, period: str, runs: bytes) -> None:
        """Store who ran in it, instead of what was handed in before."""
        with aws_call():
            self.s3.put_object(Bucket=self.bucket, Key=f"{self._runs}{period}.gz", Body=runs)

    def handed_in(self) -> Mapping[str, float]:
        return {name.removesuffix(".gz"): at_s for name, at_s in self._listed(self._runs)}

    def pages(self) -> Mapping[str, bool]:
        names = {name for name, _ in self._listed(self._pages)}
        made = (name.removesuffix(PAGE) for name in names if name.endswith(PAGE))
        return {period: f"{period}{TOLD}" in names for period in made}

    def accounted(self, period: str, until_s: float) -> Accounted:
        with aws_call():
            answer = self.s3.get_object(Bucket=self.bucket, Key=f"{self._runs}{period}.gz")
            data = answer["Body"].read()
        return accounted_in(data, until_s)

    def put(self, period: str, page: str) -> bool:
        with aws_call():
            answer = tolerating(
                lambda: self.s3.put_object(
                    Bucket=self.bucket,
                    Key=self._page(period),
                    Body=page.encode(),
                    ContentType="text/html; charset=utf-8",
                    IfNoneMatch="*",
                ),
                is_object_there,
            )
        return not isinstance(answer, ClientError)

    def note_told(self, period: str) -> None:
        with aws_call():
            self.s3.put_object(Bucket=self.bucket, Key=f"{self._pages}{period}{TOLD}", Body=b"")

    def where(self, period: str) -> str:
        """For the AWS CLI, and the console's address. Both ask for the rights of who looks: an
        address that is signed would be worth as much to everybody it is passed on to, and would
        end with the session of the role that signed it.
        """
        key = self._page(period)
        hosts = (host for prefix, host in CONSOLES if self.region.startswith(prefix))
        host = next(hosts, f"{self.region}.console.aws.amazon.com")
        asked = f"region={self.region}&prefix={quote(key, safe='')}"
        page = f"https://{host}/s3/object/{self.bucket}?{asked}"
        return f"aws s3 cp s3://{self.bucket}/{key} . , or {page}"

    @property
    def _runs(self) -> str:
        return f"accounting/{self.cluster}/"

    @property
    def _pages(self) -> str:
        return f"reports/{self.cluster}/"

    def _page(self, period: str) -> str:
        return f"{self._pages}{period}{PAGE}"

    def _listed(self, prefix: str) -> Iterator[tuple[str, float]]:
        """Names below it and when they were written."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        with aws_call():
            for page in pages:
                for each in page.get("Contents", ()):
                    yield each["Key"].removeprefix(prefix), each["LastModified"].timestamp()
