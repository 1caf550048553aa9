"""What IAM checks for S3's requests.

Source: Service Authorization Reference, "Amazon S3", and the S3 API reference's "Permissions"
of each operation.
"""

from collections.abc import Sequence

from moto.s3.models import s3_backends

from local.iam.patterns import NotModelledError
from local.iam.requests import Call, Check

OBJECT = {
    "DELETE": "s3:DeleteObject",
    "GET": "s3:GetObject",
    "HEAD": "s3:GetObject",
    "PUT": "s3:PutObject",
}
BUCKET = {"GET": "s3:ListBucket", "HEAD": "s3:ListBucket"}

# Parameters of a query string that change nothing about which action it is; others make it a
# request about a sub-resource, such as ?acl.
PLAIN = frozenset(
    {
        *("list-type", "prefix", "delimiter", "max-keys", "encoding-type", "start-after"),
        *("continuation-token", "marker", "fetch-owner", "x-id", "partNumber"),
    }
)
CONDITIONS = ("prefix", "delimiter", "max-keys")


def bucket_and_key(call: Call) -> tuple[str, str]:
    bucket, _, key = call.path.lstrip("/").partition("/")
    return bucket, key


def checks_of(call: Call) -> Sequence[Check]:
    bucket, key = bucket_and_key(call)
    unknown = {name for name in call.params if not name.startswith(("X-Amz-", "response-"))}
    action = (OBJECT if key else BUCKET).get(call.name)
    if action is None or not bucket or unknown - PLAIN:
        asked = "".join(f"?{name}" for name in sorted(unknown - PLAIN))
        raise NotModelledError(f"s3 {call.name} of {'an object' if key else 'a bucket'}{asked}")
    if key:
        return [Check(action, f"arn:aws:s3:::{bucket}/{key}")]
    context = {f"s3:{name}": call.params[name] for name in CONDITIONS if name in call.params}
    return [Check(action, f"arn:aws:s3:::{bucket}", context)]


def check_of_missing(call: Call) -> Check | None:
    """What else is needed to be told that an object is missing; None when it is there.

    S3 API reference, GetObject: without s3:ListBucket the answer is 403 in place of 404.
    """
    bucket, key = bucket_and_key(call)
    if call.name not in ("GET", "HEAD") or not key:
        return None
    known = s3_backends[call.account]["aws"].buckets.get(bucket)
    if known is None or key in known.keys:
        return None
    return Check("s3:ListBucket", f"arn:aws:s3:::{bucket}")
