"""Launch templates for what is paid for in advance."""

import json

from tests.cdk.made import dev_file, joined, synthesized

BLOCK = {
    "id": "cr-0a1b2c3d",
    "kind": "capacity-block",
    "instance_type": "g4dn.xlarge",
    "zone": "us-east-1a",
    "count": "2",
    "starts_at": "2027-01-01T00:00:00Z",
    "ends_at": "2027-01-02T00:00:00Z",
}


def test_a_block_and_placement_groups_reach_template_functions_and_rights(tmp_path):
    pools = dev_file()["pools"]
    t4 = pools["t4"] | {"capacity_types": ["capacity-block", "spot"], "placement_group": "true"}
    t4["zones"] = ["us-east-1a"]

    file = dev_file(pools={**pools, "t4": t4}, reservations=[BLOCK])
    stack = synthesized(tmp_path, file)["tidegate-dev"]

    data = dict(stack.named("NodesPoolt4cr", "AWS::EC2::LaunchTemplate")["LaunchTemplateData"])
    assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    target = data["CapacityReservationSpecification"]["CapacityReservationTarget"]
    assert target == {"CapacityReservationId": "cr-0a1b2c3d"}
    assert stack.one("AWS::EC2::PlacementGroup")["Strategy"] == "cluster"
    variables = stack.named("FunctionsPlanner", "AWS::Lambda::Function")["Environment"]
    told = json.loads(joined(variables["Variables"]["TIDEGATE_TEMPLATES"]))
    # Each template counts its own versions; a node of the block is no other than its pool's.
    assert told["t4/cr-0a1b2c3d"][1] != told["t4"][1]
    assert told["t4/cr-0a1b2c3d"][2] == told["t4"][2]
    assert "t4/us-east-1a" in joined(variables["Variables"]["TIDEGATE_PLACEMENT_GROUPS"])
    rights = json.dumps(stack.all("AWS::IAM::Role"))
    assert "placement-group/*" in rights
    # One that is shared has its owner's account in its ARN; placement groups are of ours.
    assert ":*:capacity-reservation/*" in rights
    assert ":*:placement-group/*" not in rights
    # Buying one is a person's, with `tidegate capacity`.
    assert "PurchaseCapacityBlock" not in rights
    assert '"ec2:*"' not in rights


def test_what_is_asked_of_a_reservation_ec2_cannot_sell_on_demand(tmp_path):
    pools = dev_file()["pools"]
    t4 = pools["t4"] | {"capacity_types": ["reserved", "spot"], "zones": ["us-east-1a"]}
    held = {key: value for key, value in BLOCK.items() if key != "ends_at"}

    file = dev_file(pools={**pools, "t4": t4}, reservations=[held | {"kind": "reserved"}])
    stack = synthesized(tmp_path, file)["tidegate-dev"]

    data = dict(stack.named("NodesReservedt4", "AWS::EC2::LaunchTemplate")["LaunchTemplateData"])
    only = {"CapacityReservationPreference": "capacity-reservations-only"}
    assert data.pop("CapacityReservationSpecification") == only
    assert data == stack.named("NodesPoolt4", "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
    variables = stack.named("FunctionsPlanner", "AWS::Lambda::Function")["Environment"]
    told = json.loads(joined(variables["Variables"]["TIDEGATE_TEMPLATES"]))
    assert told["t4/reserved"][2] == told["t4"][2]


def test_a_targeted_reservation_is_named_by_a_template_that_sells_no_block(tmp_path):
    pools = dev_file()["pools"]
    t4 = pools["t4"] | {"capacity_types": ["reserved", "spot"], "zones": ["us-east-1a"]}
    held = {key: value for key, value in BLOCK.items() if key != "ends_at"}
    targeted = held | {"kind": "reserved", "targeted": "true"}

    file = dev_file(pools={**pools, "t4": t4}, reservations=[targeted])
    stack = synthesized(tmp_path, file)["tidegate-dev"]

    data = dict(stack.named("NodesPoolt4cr", "AWS::EC2::LaunchTemplate")["LaunchTemplateData"])
    only = {"CapacityReservationTarget": {"CapacityReservationId": "cr-0a1b2c3d"}}
    assert data["CapacityReservationSpecification"] == only
    assert "InstanceMarketOptions" not in data


def test_what_an_owner_lends_is_named_by_a_template_that_says_its_market(tmp_path):
    kind = "interruptible-capacity-reservation"
    pools = dev_file()["pools"]
    t4 = pools["t4"] | {"capacity_types": [kind, "spot"], "zones": ["us-east-1a"]}
    lent = {key: value for key, value in BLOCK.items() if key != "ends_at"} | {"kind": kind}

    file = dev_file(pools={**pools, "t4": t4}, reservations=[lent])
    stack = synthesized(tmp_path, file)["tidegate-dev"]

    data = dict(stack.named("NodesPoolt4cr", "AWS::EC2::LaunchTemplate")["LaunchTemplateData"])
    only = {"CapacityReservationTarget": {"CapacityReservationId": "cr-0a1b2c3d"}}
    assert data["CapacityReservationSpecification"] == only
    assert data["InstanceMarketOptions"] == {"MarketType": kind}
    assert ":*:capacity-reservation/*" in json.dumps(stack.all("AWS::IAM::Role"))


GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/gpus"
# Source: Resource Groups API reference, ListGroupResources, "Minimum permissions".
LISTING = (
    *("resource-groups:ListGroupResources", "tag:GetResources"),
    *("cloudformation:DescribeStacks", "cloudformation:ListStackResources"),
)


def test_what_is_asked_of_a_group_ec2_cannot_sell_on_demand(tmp_path):
    pools = dev_file()["pools"]
    t4 = pools["t4"] | {"capacity_types": ["reserved", "spot"]}

    file = dev_file(pools={**pools, "t4": t4}, reservation_groups=[GROUP])
    stack = synthesized(tmp_path, file)["tidegate-dev"]

    data = stack.named("NodesReservedt4groupgpus", "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
    assert data["CapacityReservationSpecification"] == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationResourceGroupArn": GROUP},
    }
    variables = stack.named("FunctionsPlanner", "AWS::Lambda::Function")["Environment"]
    told = json.loads(joined(variables["Variables"]["TIDEGATE_TEMPLATES"]))
    assert told["t4/group-gpus"][2] == told["t4"][2]
    by_function = {
        name: json.dumps(stack.named(f"Functions{name}Role", "AWS::IAM::Role"))
        for name in ("Planner", "Reconcile", "Schedule")
    }
    rights = {
        name: [
            right for right in (*LISTING, "DescribeCapacityReservations", GROUP) if right in said
        ]
        for name, said in by_function.items()
    }
    assert rights == {
        "Planner": [GROUP],
        "Reconcile": [*LISTING, "DescribeCapacityReservations", GROUP],
        "Schedule": [],
    }
    assert "ExtensionHistory" not in by_function["Reconcile"], "there is no block"


def test_reconcile_may_read_what_became_of_a_reservation_by_id(tmp_path):
    pools = dev_file()["pools"]
    t4 = pools["t4"] | {"capacity_types": ["reserved", "spot"], "zones": ["us-east-1a"]}
    open_one = BLOCK | {"kind": "reserved"}

    file = dev_file(pools={**pools, "t4": t4}, reservations=[open_one])
    stack = synthesized(tmp_path, file)["tidegate-dev"]

    rights = json.dumps(stack.named("FunctionsReconcile", "AWS::IAM::Role"))
    assert "ec2:DescribeCapacityReservations" in rights
    assert "ExtensionHistory" not in rights, "it is no block"


def test_reconcile_may_ask_for_the_state_of_ultraservers_where_there_are_some(tmp_path):
    pools = dev_file()["pools"]
    ultra = pools["t4"] | {"capacity_types": ["capacity-block"], "zones": ["us-east-1a"]}
    ultra["instance_types"] = ["p6e-gb200.36xlarge"]
    held = BLOCK | {"instance_type": "p6e-gb200.36xlarge", "count": "18"}
    partitions = {"t4": {"pools": ["t4"], "default": True}, "a10g": {"pools": ["a10g"]}}
    changes = {"limits": None, "prices_usd_per_hour": None, "partitions": partitions}

    file = dev_file(pools={**pools, "t4": ultra}, reservations=[held], **changes)
    stack = synthesized(tmp_path, file)["tidegate-dev"]

    rights = json.dumps(stack.named("FunctionsReconcile", "AWS::IAM::Role"))
    assert "ec2:DescribeCapacityBlockStatus" in rights
    data = stack.named("NodesPoolt4cr", "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
    assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
