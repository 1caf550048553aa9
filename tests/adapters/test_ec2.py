"""The EC2 adapter where moto cannot follow: whole-call refusals, bare errors, many pages."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from tidegate.adapters.ec2 import FILTER_CHUNK, TERMINATE_CHUNK, Ec2Compute, fleet_arguments
from tidegate.core.model.ec2 import (
    FleetRequest,
    FleetResult,
    Market,
    Offering,
    Override,
    RefusalKind,
)
from tidegate.core.model.errors import NotAuthorized, RequestMismatch, Throttled
from tidegate.sim.clock import START_S, SimClock

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

A = Override("g4dn.xlarge", "us-east-1a", "subnet-a", 0)
B = Override("g4dn.xlarge", "us-east-1b", "subnet-b", 1)
OFFERING_A = Offering("g4dn.xlarge", "us-east-1a", Market.SPOT)
OFFERING_B = Offering("g4dn.xlarge", "us-east-1b", Market.SPOT)


@pytest.fixture
def client() -> "EC2Client":
    return boto3.Session("none", "none", region_name="us-east-1").client("ec2")


@pytest.fixture
def stub(client: "EC2Client") -> Iterator[Stubber]:
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.fixture
def compute(client: "EC2Client", stub: Stubber) -> Ec2Compute:
    return Ec2Compute(client, "demo", SimClock())


def request(*, market: Market = Market.SPOT, count: int = 2, min_count: int = 0) -> FleetRequest:
    return FleetRequest(
        client_token="demo-l-1",
        launch_template_id="lt-1",
        launch_template_version="7",
        market=market,
        count=count,
        min_count=min_count,
        overrides=(A, B),
        tags=(("tidegate:launch", "l-1"), ("tidegate:pool", "t4")),
    )


def described(instance_id: str, **more: Any) -> dict[str, Any]:
    tags = {"tidegate:cluster": "demo", "tidegate:launch": "l-1", "tidegate:pool": "t4"}
    return {
        "InstanceId": instance_id,
        "InstanceType": "g4dn.xlarge",
        "Placement": {"AvailabilityZone": "us-east-1a"},
        "State": {"Name": "running"},
        "LaunchTime": datetime(2026, 1, 6, tzinfo=UTC),
        "Tags": [{"Key": key, "Value": value} for key, value in (tags | more).items()],
    }


def test_a_single_node_asks_for_no_minimum() -> None:
    asked = fleet_arguments(request(count=1, min_count=1), "demo")

    assert asked["SpotOptions"] == {"AllocationStrategy": "capacity-optimized-prioritized"}
    assert asked["Type"] == "instant"


@pytest.mark.parametrize("group", ["", "group-a"])
def test_an_instance_tells_its_placement_group(
    compute: Ec2Compute, stub: Stubber, group: str
) -> None:
    shown = described("i-1")
    # EC2 shows an empty name where there is no group.
    shown["Placement"] |= {"GroupName": group}
    stub.add_response("describe_instances", {"Reservations": [{"Instances": [shown]}]})

    (found,) = compute.instances()

    assert found.placement_group == group


def test_the_members_of_a_gang_share_the_placement_group_of_their_zone() -> None:
    grouped = replace(request(), overrides=(replace(A, placement_group="group-a"), B))

    [config] = fleet_arguments(grouped, "demo")["LaunchTemplateConfigs"]

    assert [each.get("Placement") for each in config["Overrides"]] == [
        {"GroupName": "group-a"},
        None,
    ]


@pytest.mark.parametrize(
    ("code", "says"),
    [("DryRunOperation", ""), ("UnauthorizedOperation", "UnauthorizedOperation: no")],
)
def test_a_dry_run_is_answered_by_an_error_in_any_case(
    compute: Ec2Compute, stub: Stubber, code: str, says: str
) -> None:
    stub.add_client_error("create_fleet", code, "no")

    assert compute.dry_run(request()) == says


def test_a_template_with_interfaces_of_its_own_cannot_be_asked_without_a_fleet(
    compute: Ec2Compute, stub: Stubber
) -> None:
    words = "Network interfaces and an instance-level subnet ID may not be specified together"
    stub.add_client_error("run_instances", "InvalidParameterCombination", words)
    stub.add_client_error("run_instances", "UnauthorizedOperation", "no iam:PassRole")

    assert compute.dry_run_instance(request()) is None
    assert compute.dry_run_instance(request()) == "UnauthorizedOperation: no iam:PassRole"


def test_a_gang_asks_for_its_minimum_in_one_zone() -> None:
    asked = fleet_arguments(request(market=Market.ON_DEMAND, count=4, min_count=4), "demo")

    assert asked["OnDemandOptions"] == {
        "AllocationStrategy": "prioritized",
        "MinTargetCapacity": 4,
        "SingleAvailabilityZone": True,
    }
    assert asked["TargetCapacitySpecification"] == {
        "TotalTargetCapacity": 4,
        "DefaultTargetCapacityType": "on-demand",
    }


def test_instances_and_fleet_carry_the_cluster_even_when_the_request_forgot_it() -> None:
    asked = fleet_arguments(request(), "demo")

    for specification in asked["TagSpecifications"]:
        assert {"Key": "tidegate:cluster", "Value": "demo"} in specification["Tags"]


def test_the_same_request_always_makes_the_same_call() -> None:
    assert fleet_arguments(request(), "demo") == fleet_arguments(request(), "demo")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("UnfulfillableCapacity", RefusalKind.CAPACITY),
        ("InsufficientInstanceCapacity", RefusalKind.CAPACITY),
        ("MaxSpotInstanceCountExceeded", RefusalKind.QUOTA),
    ],
)
def test_a_whole_call_that_finds_nothing_refuses_every_offering(
    compute: Ec2Compute, stub: Stubber, code: str, kind: RefusalKind
) -> None:
    stub.add_client_error("create_fleet", code, "words")

    result = compute.create_fleet(request())

    assert result.instances == ()
    assert [(one.offering, one.kind, one.code) for one in result.refusals] == [
        (OFFERING_A, kind, code),
        (OFFERING_B, kind, code),
    ]


def test_an_error_without_an_override_is_about_all_of_them(
    compute: Ec2Compute, stub: Stubber
) -> None:
    error = {"ErrorCode": "UnfulfillableCapacity", "ErrorMessage": "words"}
    stub.add_response("create_fleet", {"Errors": [error], "Instances": []})

    result = compute.create_fleet(request())

    assert {one.offering for one in result.refusals} == {OFFERING_A, OFFERING_B}


@pytest.mark.parametrize("codes", [("Throttling", "Unsupported"), ("Unsupported", "Throttling")])
def test_a_word_about_the_offering_counts_before_one_about_how_we_ask(
    compute: Ec2Compute, stub: Stubber, codes: tuple[str, str]
) -> None:
    errors = [{"ErrorCode": code, "ErrorMessage": "words"} for code in codes]
    stub.add_response("create_fleet", {"Errors": errors})

    result = compute.create_fleet(request())

    assert {(one.code, one.kind) for one in result.refusals} == {
        ("Unsupported", RefusalKind.CAPACITY)
    }


def test_an_override_that_failed_twice_is_refused_once(compute: Ec2Compute, stub: Stubber) -> None:
    overrides = {"InstanceType": "g4dn.xlarge", "SubnetId": "subnet-b"}
    error = {
        "LaunchTemplateAndOverrides": {"Overrides": overrides},
        "ErrorCode": "InsufficientInstanceCapacity",
        "ErrorMessage": "words",
    }
    stub.add_response("create_fleet", {"Errors": [error, error]})

    result = compute.create_fleet(request())

    assert [one.offering for one in result.refusals] == [OFFERING_B]


def test_a_full_subnet_is_named_where_ec2_says_it_of_one_override_and_of_the_call(
    compute: Ec2Compute, stub: Stubber
) -> None:
    code = "InsufficientFreeAddressesInSubnet"
    overrides = {"InstanceType": "g4dn.xlarge", "SubnetId": "subnet-b"}
    full = {"LaunchTemplateAndOverrides": {"Overrides": overrides}, "ErrorCode": code}
    short = {**full, "ErrorCode": "InsufficientInstanceCapacity"}
    stub.add_response("create_fleet", {"Errors": [full]})
    stub.add_response("create_fleet", {"Errors": [short]})
    stub.add_client_error("create_fleet", code)

    of_one, of_none, of_all = (compute.create_fleet(request()).refusals for _ in range(3))

    assert [(each.offering, each.subnet) for each in of_one] == [(OFFERING_B, "subnet-b")]
    assert [each.subnet for each in of_none] == [""]
    assert [each.subnet for each in of_all] == ["subnet-a", "subnet-b"]


def test_the_zone_of_an_instance_is_that_of_its_subnet(compute: Ec2Compute, stub: Stubber) -> None:
    entry = {
        "LaunchTemplateAndOverrides": {
            "Overrides": {"InstanceType": "g4dn.xlarge", "SubnetId": "subnet-b"}
        },
        "Lifecycle": "spot",
        "InstanceIds": ["i-1", "i-2"],
        "InstanceType": "g4dn.xlarge",
    }
    stub.add_response("create_fleet", {"Instances": [entry]})

    result = compute.create_fleet(request())

    assert [(one.instance_id, one.offering) for one in result.instances] == [
        ("i-1", OFFERING_B),
        ("i-2", OFFERING_B),
    ]
    assert result.instances[0].launched_at_s == START_S


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("RequestLimitExceeded", Throttled),
        ("UnauthorizedOperation", NotAuthorized),
        ("IdempotentParameterMismatch", RequestMismatch),
    ],
)
def test_trouble_with_the_call_itself_is_raised(
    compute: Ec2Compute, stub: Stubber, code: str, expected: type[Exception]
) -> None:
    stub.add_client_error("create_fleet", code)

    with pytest.raises(expected):
        compute.create_fleet(request())


def test_a_token_of_instances_that_have_ended_refuses_no_offering(
    compute: Ec2Compute, stub: Stubber
) -> None:
    code = "IdempotentInstanceTerminated"
    stub.add_client_error("create_fleet", code)
    stub.add_response("create_fleet", {"Errors": [{"ErrorCode": code}]})

    for _ in range(2):
        assert compute.create_fleet(request()) == FleetResult((), ())


def test_many_launches_are_looked_for_in_whatever_state_a_filter_full_at_a_time(
    compute: Ec2Compute, stub: Stubber
) -> None:
    """Source of 200: "List and filter using the CLI and API", EC2 user guide."""
    names = [f"l-{number:03}" for number in range(FILTER_CHUNK + 1)]
    found = described("i-1") | {"State": {"Name": "terminated"}}
    for chunk, shown in ((names[:-1], [found]), (names[-1:], [])):
        filters = [
            {"Name": "tag:tidegate:cluster", "Values": ["demo"]},
            {"Name": "tag:tidegate:launch", "Values": chunk},
        ]
        asked = {"Filters": filters, "MaxResults": 1000}
        stub.add_response("describe_instances", {"Reservations": [{"Instances": shown}]}, asked)

    (ended,) = compute.launched_by(names)

    assert (ended.instance_id, ended.launch_id, ended.is_alive) == ("i-1", "l-1", False)


def test_every_page_of_instances_is_read(compute: Ec2Compute, stub: Stubber) -> None:
    for name, following in (("i-1", "more"), ("i-2", None)):
        page: dict[str, Any] = {"Reservations": [{"Instances": [described(name)]}]}
        stub.add_response(
            "describe_instances", page | ({"NextToken": following} if following else {})
        )

    assert [one.instance_id for one in compute.instances()] == ["i-1", "i-2"]


def test_head_and_login_nodes_are_not_ours_to_manage(compute: Ec2Compute, stub: Stubber) -> None:
    others = [described(f"i-{role}", **{"tidegate:role": role}) for role in ("head", "login")]
    stub.add_response(
        "describe_instances", {"Reservations": [{"Instances": [*others, described("i-1")]}]}
    )

    assert [one.instance_id for one in compute.instances()] == ["i-1"]


def test_an_instance_that_somebody_else_tagged_has_no_launch(
    compute: Ec2Compute, stub: Stubber
) -> None:
    bare = described("i-1") | {"Tags": [{"Key": "tidegate:cluster", "Value": "demo"}]}
    stub.add_response("describe_instances", {"Reservations": [{"Instances": [bare]}]})

    (found,) = compute.instances()

    assert (found.launch_id, found.pool) == ("", "")


def test_many_instances_are_ended_in_chunks(compute: Ec2Compute, stub: Stubber) -> None:
    names = [f"i-{number}" for number in range(TERMINATE_CHUNK + 1)]
    stub.add_response("terminate_instances", {}, {"InstanceIds": names[:TERMINATE_CHUNK]})
    stub.add_response("terminate_instances", {}, {"InstanceIds": names[TERMINATE_CHUNK:]})

    compute.terminate(names)


def test_an_instance_that_a_person_has_protected_keeps_no_other_one(
    compute: Ec2Compute, stub: Stubber, caplog: pytest.LogCaptureFixture
) -> None:
    """Source: EC2 API reference, TerminateInstances: of one zone it ends none of them then."""

    def refused(*names: str) -> None:
        stub.add_client_error(
            "terminate_instances",
            "OperationNotPermitted",
            "The instance 'i-3' may not be terminated.",
            expected_params={"InstanceIds": list(names)},
        )

    def ended(*names: str) -> None:
        stub.add_response("terminate_instances", {}, {"InstanceIds": list(names)})

    refused("i-1", "i-2", "i-3", "i-4")
    ended("i-1", "i-2")
    refused("i-3", "i-4")
    refused("i-3")
    ended("i-4")

    compute.terminate(["i-1", "i-2", "i-3", "i-4"])

    stub.assert_no_pending_responses()
    assert "i-3 is not ended: The instance 'i-3' may not be terminated." in caplog.text


def test_a_denied_end_is_raised_and_not_halved(compute: Ec2Compute, stub: Stubber) -> None:
    stub.add_client_error(
        "terminate_instances", "UnauthorizedOperation", expected_params={"InstanceIds": ANY}
    )

    with pytest.raises(NotAuthorized):
        compute.terminate(["i-1", "i-2"])
