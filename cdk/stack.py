"""The stacks of one cluster: what it keeps, what can be made again at any time, and its images."""

from aws_cdk import Environment, Stack
from constructs import Construct

from cdk.baking import TidegateImages
from cdk.cluster import Source, TidegateAutoscaler, TidegateCluster, TidegateData
from cdk.packages import Packages

# Constructs called so leave no trace in the names of the resources below them.
HIDDEN = "Default"


class DataStack(Stack):
    """What a cluster keeps. It is protected, and nothing in it goes when it is deleted."""

    def __init__(self, scope: Construct, *, source: Source, account: str | None) -> None:
        cluster = source.file.cluster.name
        super().__init__(
            scope,
            f"tidegate-{cluster}-data",
            env=Environment(account=account, region=source.file.region),
            description=f"Tidegate: what the Slurm cluster {cluster} keeps",
            termination_protection=True,
            tags=dict(source.file.tags),
        )
        self.data = TidegateData(self, HIDDEN, source=source)


class ClusterStack(Stack):
    """Everything else that one cluster owns.

    Errors: ValueError, when the cluster has more pools than user data or a function's
    environment can hold.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        source: Source,
        data: TidegateData,
        packages: Packages,
        account: str | None,
    ) -> None:
        file = source.file
        super().__init__(
            scope,
            f"tidegate-{file.cluster.name}",
            env=Environment(account=account, region=file.region),
            description=f"Tidegate: the Slurm cluster {file.cluster.name}",
            tags=dict(file.tags),
        )
        whole = TidegateAutoscaler if file.existing.head else TidegateCluster
        whole(self, HIDDEN, source=source, data=data, packages=packages)


class ImagesStack(Stack):
    """What bakes images for the nodes, and says which one was baked last."""

    def __init__(self, scope: Construct, *, source: Source, account: str | None) -> None:
        cluster = source.file.cluster.name
        super().__init__(
            scope,
            f"tidegate-{cluster}-images",
            env=Environment(account=account, region=source.file.region),
            description=f"Tidegate: images for the nodes of the Slurm cluster {cluster}",
            # No tags of the stack: CloudFormation would hand them on to the parameters, which must
            # not change. The resources have them.
        )
        TidegateImages(self, HIDDEN, file=source.file)
