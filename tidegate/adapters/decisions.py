"""What looks decided, in S3 beside the digest: the newest verdicts, and a log of what was done.

An object per look that did something; their names begin with its time, so that those since a
moment are one listing. The bucket's life cycle ends them.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_object_not_found, tolerating
from tidegate.core.explain.history import LookEvent
from tidegate.core.explain.verdicts import Verdicts
from tidegate.core.model.frozen import frozen
from tidegate.wire.decisions import decode_verdicts, encode_verdicts
from tidegate.wire.history import decode_events, encode_events

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# Half of botocore's connections; an object takes about 20 ms.
READERS = 5


@frozen
class S3Decisions:
    """One cluster's decisions; written by its planner, read by people with their own rights."""

    s3: "S3Client"
    bucket: str
    cluster: str

    @property
    def _latest(self) -> str:
        return f"decisions/{self.cluster}/latest.json.gz"

    @property
    def _log(self) -> str:
        return f"decisions/{self.cluster}/log/"

    def keep(self, verdicts: Verdicts) -> None:
        with aws_call():
            self.s3.put_object(Bucket=self.bucket, Key=self._latest, Body=encode_verdicts(verdicts))

    def append(self, events: Sequence[LookEvent]) -> None:
        # What became of mails is of the same look, and comes after what it did.
        last = events[-1]
        key = f"{self._log}{_iso(last.at_s)}-{last.look_id}-{last.kind}.json.gz"
        with aws_call():
            self.s3.put_object(Bucket=self.bucket, Key=key, Body=encode_events(events))

    def newest(self) -> Verdicts | None:
        """None: no look has known the queue yet. Errors: Throttled, NotAuthorized, BadEvent."""
        with aws_call():
            answer = tolerating(
                lambda: self.s3.get_object(Bucket=self.bucket, Key=self._latest),
                is_object_not_found,
            )
            if isinstance(answer, ClientError):
                return None
            return decode_verdicts(answer["Body"].read())

    def since(self, at_s: float, *, most: int) -> tuple[tuple[LookEvent, ...], ...]:
        """The events of the newest `most` looks since then that did something, oldest first.

        Errors: Throttled, NotAuthorized, BadEvent.
        """
        keys = list(self._keys(at_s))[-most:]
        with ThreadPoolExecutor(READERS) as readers:
            return tuple(readers.map(self._events, keys))

    def _keys(self, at_s: float) -> Iterator[str]:
        pages = self.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=self._log, StartAfter=f"{self._log}{_iso(at_s)}"
        )
        with aws_call():
            for page in pages:
                yield from (each["Key"] for each in page.get("Contents", ()))

    def _events(self, key: str) -> tuple[LookEvent, ...]:
        with aws_call():
            data = self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return decode_events(data)


def _iso(at_s: float) -> str:
    """Sorts by time; nothing in it has to be quoted in an S3 key."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H-%M-%S.%fZ")
