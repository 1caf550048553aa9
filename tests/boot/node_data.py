"""A node of AWS's image, which has mounted the disks already, for root alone; it loads a data set
of S3 there with the real AWS CLI.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from local.boot.cloud import Cloud
from local.boot.machines import LOCAL_NODE

CLI = Path(sys.executable).parent / "aws"
LOADS: dict[str, Any] = {
    "files": {
        "/opt/dlami/nvme/.keep": "x",
        "/usr/bin/mountpoint": (Path(__file__).parent / "stubs/mountpoint-dlami").read_text(),
        "/usr/bin/aws": f'#!/bin/sh\nexec {CLI} "$@"\n',
    },
    "values": replace(LOCAL_NODE, prefetch=("sets",)),
    "stores": 1,
    "tags": {"tidegate:data": "s3://secrets/x s3://sets/imagenet"},
}


def publish_data_set(cloud: Cloud) -> None:
    """In a private bucket."""
    s3 = cloud.client("s3")
    s3.create_bucket(Bucket="sets")
    s3.put_object(Bucket="sets", Key="imagenet/a.tar", Body=b"one")
