"""A platform team's own CDK app with two clusters on one network of theirs.

The first is described here, in Python; the second is a file, and only its autoscaler is
deployed: head, file system and Munge key were there before.
"""

from pathlib import Path

from aws_cdk import App, Environment, Stack, Tags
from constructs import Construct

from cdk.cluster import Source, TidegateAutoscaler, TidegateCluster, TidegateData
from cdk.packages import Packages
from tidegate.wire.deployment import HeadModel, NetworkModel
from tidegate.wire.models import ClusterModel
from tidegate.wire.partition_model import PartitionModel
from tidegate.wire.pool_models import LimitsModel, PoolModel

HERE = Path(__file__).parent
OUR_NETWORK = NetworkModel(
    vpc="vpc-0a1b2c3d4e5f60000",
    subnets={
        "eu-west-1a": "subnet-0a1b2c3d4e5f60001",
        "eu-west-1b": "subnet-0a1b2c3d4e5f60002",
    },
)


def training() -> ClusterModel:
    """As a cluster file says it; every property is typed and checked."""
    return ClusterModel(
        name="training",
        region="eu-west-1",
        network=OUR_NETWORK,
        head=HeadModel(instance_type="m7i.large", zone="eu-west-1a"),
        permissions_boundary="arn:aws:iam::123456789012:policy/platform-bound",
        limits=LimitsModel(gpus=32, usd_per_hour=150),
        partitions={"gpu": PartitionModel(pools=("a10g",))},
        pools={
            "a10g": PoolModel.model_validate(
                {
                    "instance_types": ["g5.xlarge", "g5.12xlarge"],
                    "zones": ["eu-west-1a", "eu-west-1b"],
                    "capacity_types": ["spot", "on-demand"],
                }
            )
        },
        prices_usd_per_hour={
            "g5.xlarge": {"on-demand": 1.12, "spot": 0.5},
            "g5.12xlarge": {"on-demand": 6.3, "spot": 2.9},
        },
    )


class Platform(Stack):
    """Whatever a platform has beside it."""

    def __init__(self, scope: Construct, id: str, *, is_kept: bool = False) -> None:
        environment = Environment(account="123456789012", region="eu-west-1")
        super().__init__(scope, id, env=environment, termination_protection=is_kept)
        Tags.of(self).add("team", "platform")


def build(app: App, packages: Packages) -> None:
    """`packages`: the code of functions and agent."""
    source = Source.of(training())
    data = TidegateData(Platform(app, "TrainingData", is_kept=True), "Data", source=source)
    whole = TidegateCluster(
        Platform(app, "Training"), "Cluster", source=source, data=data, packages=packages
    )
    # What the construct made can be used: here somebody may subscribe to its alarms.
    assert whole.alarms.topic.topic_arn

    source = Source.read(HERE / "old-cluster.yaml")
    data = TidegateData(Platform(app, "OldData", is_kept=True), "Data", source=source)
    TidegateAutoscaler(
        Platform(app, "Old"), "Autoscaler", source=source, data=data, packages=packages
    )


def main() -> None:
    app = App()
    build(app, Packages.build(HERE.parents[1]))
    app.synth()


if __name__ == "__main__":
    main()
