"""Boot bundles and the cluster file in S3: an asset each, so that the same one is uploaded once."""

import hashlib
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from aws_cdk import aws_iam as iam
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from cdk import statements
from userdata.render import Bundle, BundleAt

# Nothing else in the assets' bucket is called so.
SUFFIX = ".tgz"


def cluster_suffix(cluster: str) -> str:
    """How the files of one cluster end in the assets' bucket; they begin with their hash."""
    return f".tidegate-{cluster}"


def read_cluster_files(scope: Construct, bucket_name: str, cluster: str) -> iam.PolicyStatement:
    """Any file of this cluster: while a deployment is on its way, its roles are changed before the
    functions that have the file's new name, and a function may start with the one before.
    """
    arn = statements.s3_arn(scope, f"{bucket_name}/*{cluster_suffix(cluster)}")
    return statements.statement("ClusterFile", ["s3:GetObject"], [arn])


def store(scope: Construct, id: str, bundle: Bundle) -> BundleAt:
    """Put the bundle beside the stack's other assets."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"bundle{SUFFIX}"
        file.write_bytes(bundle.archive)
        return replace(store_file(scope, id, file), sha256=bundle.sha256)


def store_file(scope: Construct, id: str, file: Path) -> BundleAt:
    """Put an archive there that machines know by its hash. Its name ends like a bundle's."""
    assert file.suffix == SUFFIX, file
    asset = Asset(scope, id, path=str(file))
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    return BundleAt(asset.s3_bucket_name, asset.s3_object_key, sha256)


def read_bundles(scope: Construct, bucket_name: str) -> iam.PolicyStatement:
    """Any bundle: a node that boots while a deployment is on its way fetches the one before.

    There are no secrets in them, and a machine takes only the one whose hash it knows.
    """
    return statements.statement(
        "Bundles", ["s3:GetObject"], [statements.s3_arn(scope, f"{bucket_name}/*{SUFFIX}")]
    )
