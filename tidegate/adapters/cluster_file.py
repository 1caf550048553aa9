"""The cluster file as it was deployed, in S3."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_object_not_found, message_of, tolerating
from tidegate.core.model.errors import BadConfig

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def read_cluster_file(s3: "S3Client", bucket: str, key: str) -> str:
    """The text of the file. Errors: BadConfig (none there), Throttled, NotAuthorized."""
    name = f"s3://{bucket}/{key}"
    with aws_call():
        answer = tolerating(lambda: s3.get_object(Bucket=bucket, Key=key), is_object_not_found)
        if isinstance(answer, ClientError):
            raise BadConfig(f"{name}: cannot be read: {message_of(answer)}")
        data = answer["Body"].read()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadConfig(f"{name}: is no UTF-8 text: {error}") from error
