"""The cluster file in S3."""

import pytest

from local.cloud import LocalCloud
from local.cloud_resources import CloudNames
from tidegate.adapters.cluster_file import read_cluster_file
from tidegate.core.model.errors import BadConfig


def test_the_text_is_read_as_it_was_deployed(cloud: LocalCloud, names: CloudNames) -> None:
    s3 = cloud.client("s3")
    s3.put_object(Bucket=names.bucket, Key="cluster.yaml", Body="name: demo # ü\n".encode())

    assert read_cluster_file(s3, names.bucket, "cluster.yaml") == "name: demo # ü\n"


def test_a_missing_file_and_one_that_is_no_text_are_named(
    cloud: LocalCloud, names: CloudNames
) -> None:
    s3 = cloud.client("s3")
    s3.put_object(Bucket=names.bucket, Key="bytes", Body=b"\xff\xfe")

    with pytest.raises(BadConfig, match=f"s3://{names.bucket}/none: cannot be read"):
        read_cluster_file(s3, names.bucket, "none")
    with pytest.raises(BadConfig, match=f"s3://{names.bucket}/bytes: is no UTF-8 text"):
        read_cluster_file(s3, names.bucket, "bytes")
