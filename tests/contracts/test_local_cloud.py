"""What the local cloud must do for the rest to mean anything, and moto alone does not."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from local.cloud import LocalCloud
from local.cloud_resources import CloudNames
from tests.contracts.test_compute_contract import T4_A, T4_B, MotoEc2, offerings, refused
from tests.contracts.test_ledger_contract import launch
from tests.make import NOW_S
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.core.model.ec2 import Market, Offering, RefusalKind
from tidegate.sim.clock import SimClock


def all_at_once[T](calls: Sequence[Callable[[], T]]) -> list[T]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def test_planners_that_commit_at_the_same_moment_have_one_winner(
    cloud: LocalCloud, names: CloudNames
) -> None:
    client, clock = cloud.client("dynamodb"), SimClock(NOW_S)
    planners = [DynamoLedger(client, names.table, clock) for _ in range(8)]

    for number in range(10):
        epoch = planners[0].view().epoch
        record = launch(f"l-{number}")
        won = all_at_once([partial(planner.commit, epoch, [record]) for planner in planners])

        assert sum(won) == 1


def test_one_request_sent_eight_times_at_once_buys_once(
    cloud: LocalCloud, names: CloudNames
) -> None:
    ec2 = MotoEc2(cloud, names)
    request = ec2.request(T4_A, count=2)

    results = all_at_once([lambda: ec2.compute.create_fleet(request)] * 8)

    assert len({one.instance_id for result in results for one in result.instances}) == 2
    assert len(ec2.compute.instances()) == 2


def test_a_dry_offering_gives_nothing_until_it_is_dry_no_more(
    cloud: LocalCloud, names: CloudNames
) -> None:
    ec2 = MotoEc2(cloud, names)
    cloud.capacity.dry.add(T4_A)

    assert offerings(ec2.compute.create_fleet(ec2.request(T4_A, T4_B, token="1"))) == [T4_B]

    cloud.capacity.dry.clear()
    assert offerings(ec2.compute.create_fleet(ec2.request(T4_A, T4_B, token="2"))) == [T4_A]


def test_an_instance_type_that_does_not_exist_is_refused(
    cloud: LocalCloud, names: CloudNames
) -> None:
    ec2 = MotoEc2(cloud, names)
    unknown = Offering("zz9.large", "us-east-1a", Market.ON_DEMAND)

    result = ec2.compute.create_fleet(ec2.request(unknown))

    assert result.instances == ()
    assert refused(result) == {unknown}
    assert result.refusals[0].kind is RefusalKind.OTHER


def test_a_zone_that_never_had_a_type_is_passed_over(cloud: LocalCloud, names: CloudNames) -> None:
    """No alarm: a pool names types and zones, and not each pair of them exists."""
    zone = "us-east-1f"
    made = cloud.client("ec2").create_subnet(
        VpcId=names.vpc_id, CidrBlock="172.31.240.0/24", AvailabilityZone=zone
    )
    subnets = {**names.subnets, zone: made["Subnet"]["SubnetId"]}
    ec2 = MotoEc2(cloud, replace(names, subnets=subnets))
    never = Offering("g5g.xlarge", zone, Market.ON_DEMAND)

    result = ec2.compute.create_fleet(ec2.request(never, T4_A))

    assert offerings(result) == [T4_A]
    assert [(each.offering, each.kind) for each in result.refusals] == [
        (never, RefusalKind.CAPACITY)
    ]


def test_calls_are_counted_by_name(cloud: LocalCloud, names: CloudNames) -> None:
    before = cloud.aws_calls()

    MotoEc2(cloud, names).compute.instances()
    cloud.client("s3").put_object(Bucket=names.bucket, Key="digest/x", Body=b"")
    cloud.client("events").put_events(
        Entries=[
            {"EventBusName": names.event_bus, "Source": "s", "DetailType": "d", "Detail": "{}"}
        ]
    )

    made = cloud.aws_calls() - before
    assert {name: made[name] for name in ("ec2:DescribeInstances", "s3:PutObject")} == {
        "ec2:DescribeInstances": 1,
        "s3:PutObject": 1,
    }
    assert made["events:PutEvents"] == 1
