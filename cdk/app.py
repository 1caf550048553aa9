"""From cluster files to a cloud assembly."""

from pathlib import Path

from aws_cdk import App

from cdk.cluster import Source
from cdk.clusters import cluster_paths, load_clusters
from cdk.packages import Packages
from cdk.stack import ClusterStack, DataStack, ImagesStack
from tidegate.core.model.errors import BadConfig

# `-c package=source`: functions and agent without third-party packages, for tests of the template.
SOURCE_ONLY = "source"


def synthesize(root: Path, *, account: str | None, app: App | None = None) -> App:
    """Synthesize the stacks of each cluster file. Errors: BadConfig, and then nothing is written.

    `app`: with its context and output folder; None: those that the CDK's CLI asks for.
    """
    app = app or App()
    load_stacks(root, account=account, app=app)
    app.synth()
    return app


def load_stacks(root: Path, *, account: str | None, app: App) -> None:
    """The stacks of all cluster files that the app's context names. Errors: BadConfig."""
    context = app.node.try_get_context
    paths = cluster_paths(root, cluster=context("cluster"), pattern=context("clusters"))
    files = load_clusters(paths)
    packages = (
        Packages.own_code(root) if context("package") == SOURCE_ONLY else Packages.build(root)
    )
    for path, file in files.items():
        try:
            source = Source(file, path.read_text())
            data = DataStack(app, source=source, account=account).data
            stack = ClusterStack(app, source=source, data=data, packages=packages, account=account)
            if file.images:
                # The cluster looks up there which image was baked last.
                stack.add_stack_dependency(ImagesStack(app, source=source, account=account))
        except ValueError as error:
            raise BadConfig(f"{path}: {error}") from error
