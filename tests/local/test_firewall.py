"""What a world's firewall makes of groups; tests/stack/test_firewall.py has machines behind it."""

import pytest

from local.cloud import LocalCloud
from local.firewall import Group, Member, Outside, Rule, groups_in_cloud, ruleset

OUTSIDE = Outside("10.77.255.254", 5000)
MEMBERS = (
    Member(address="10.77.1.1", private_address="10.0.1.4", groups=frozenset({"sg-a"})),
    Member(address="10.77.1.2", private_address="10.0.2.4", groups=frozenset({"sg-a"})),
)


def lines(*inbound: Rule, outbound: tuple[Rule, ...] = ()) -> list[str]:
    group = Group(id="sg-a", inbound=inbound, outbound=outbound)
    return ruleset([group], MEMBERS, OUTSIDE).splitlines()


def test_a_range_of_addresses_means_the_machines_that_have_one_of_it_in_ec2():
    rule = Rule(protocol="tcp", peer="10.0.1.0/24", ports=(22, 22))

    peers = "ip saddr { 10.0.1.0/24, 10.77.1.1 }"
    assert f"ip daddr @sg_a {peers} tcp dport 22-22 return" in lines(rule)


def test_a_group_that_is_not_here_lets_nobody_in():
    found = lines(Rule(protocol="-1", peer="sg-elsewhere"))

    assert "set sg_elsewhere { type ipv4_addr" in found
    assert not any("sg_elsewhere" in line and "elements" in line for line in found)


@pytest.mark.parametrize(
    ("ports", "is_let"),
    [((443, 443), True), ((0, 65535), True), (None, True), ((80, 80), False)],
)
def test_https_to_everywhere_leads_to_aws(ports, is_let):
    found = lines(outbound=(Rule(protocol="tcp", peer="0.0.0.0/0", ports=ports),))

    to_aws = "ip saddr @sg_a ip daddr 10.77.255.254 tcp dport 5000 return"
    assert (to_aws in found) == is_let


def test_members_of_a_default_group_let_each_other_in(cloud: LocalCloud):
    ids = {
        each["GroupId"]
        for each in cloud.client("ec2").describe_security_groups()["SecurityGroups"]
        if each["GroupName"] == "default"
    }
    within = {each.id for each in groups_in_cloud() if lets_its_own_in(each)}

    assert within == ids != set()


def lets_its_own_in(group: Group) -> bool:
    return Rule(protocol="-1", peer=group.id) in group.inbound
