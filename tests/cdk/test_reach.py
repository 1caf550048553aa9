"""Who must reach whom: head, nodes, files and AWS, through the groups that are deployed."""

from collections.abc import Iterator

import pytest

from tests.cdk.groups import ALL, EVERYWHERE, Groups, Rule, groups_of
from tests.cdk.made import Stack
from tests.cdk.variants import VARIANTS, cluster_stack, stacks_of

# Logical ids begin with these.
NODES, HEAD, FILES = "<NetworkNodeGroup", "<NetworkHeadGroup", "<NetworkFileGroup"
ENDPOINTS, LUSTRE, LOGIN = "<NetworkEndpointGroup", "<LustreGroup", "<NetworkLogin"
CONNECT = "<NetworkConnectGroup"
INTERNET = EVERYWHERE

# From, to, protocol, a port of it: what a boot and a job take. AWS's APIs, packages and nodes'
# boot bundles are HTTPS; slurmctld listens on 6817, slurmd on 6818, srun and steps on any; MPI,
# NCCL and EFA's own traffic take anything.
NEEDED = (
    (NODES, INTERNET, "tcp", 443),
    (NODES, INTERNET, "tcp", 80),
    (HEAD, INTERNET, "tcp", 443),
    (NODES, HEAD, "tcp", 6817),
    (NODES, HEAD, "tcp", 49152),
    (HEAD, NODES, "tcp", 6818),
    (HEAD, NODES, "tcp", 49152),
    (NODES, NODES, "tcp", 22222),
    (HEAD, FILES, "tcp", 2049),
    (NODES, FILES, "tcp", 2049),
    (HEAD, ENDPOINTS, "tcp", 443),
    (NODES, ENDPOINTS, "tcp", 443),
    *((LOGIN, one, "tcp", 443) for one in (INTERNET, ENDPOINTS)),
    (LOGIN, HEAD, "tcp", 6817),
    (LOGIN, HEAD, "tcp", 6819),
    (LOGIN, NODES, "tcp", 6818),
    *((one, LOGIN, "tcp", 49152) for one in (HEAD, NODES)),
    (LOGIN, FILES, "tcp", 2049),
    # A notebook on a node and its hub (docs/jupyterhub.md).
    (NODES, LOGIN, "tcp", 8081),
    (LOGIN, NODES, "tcp", 52331),
    *((CONNECT, one, "tcp", 22) for one in (HEAD, LOGIN)),
    *(
        (one, LUSTRE, "tcp", port)
        for one in (HEAD, NODES, LOGIN, LUSTRE)
        for port in (988, 1018, 1023)
    ),
    *((LUSTRE, one, "tcp", port) for one in (HEAD, NODES, LOGIN) for port in (988, 1018, 1023)),
)
NOBODY = ("tcp", 22), ("tcp", 6817), ("udp", 53), (ALL, 0)


@pytest.fixture(scope="module", params=sorted(VARIANTS))
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stack:
    return cluster_stack(stacks_of(tmp_path_factory, request.param))


def test_whoever_must_reach_somebody_does(made: Stack):
    groups = groups_of(made)

    missing = [
        (source, target, protocol, port, side)
        for source, target, protocol, port in NEEDED
        for side in _closed(groups, source, target, protocol, port)
    ]

    assert missing == []


def test_nodes_talk_by_rules_that_name_their_own_group(made: Stack):
    """EFA's own traffic has no addresses: a rule for all addresses does not let it through."""
    groups = groups_of(made)
    (node,) = [each for each in groups.known if each.startswith(NODES)]

    assert Rule(node, node, ALL) in groups.inbound
    assert Rule(node, node, ALL) in groups.outbound


def test_nobody_comes_in_from_outside_but_by_ssh_from_of_login_nodes(made: Stack):
    groups = groups_of(made)

    assert not [
        each
        for each in groups.inbound
        if each.peer not in groups.known and "/" in each.peer and not _is_ssh_from(each)
    ]
    assert not [
        (group, *asked)
        for group in groups.known
        for asked in NOBODY
        if groups.lets_in(group, INTERNET, *asked)
    ]


def _is_ssh_from(rule: Rule) -> bool:
    """The one of the cluster file that has such a range (`tests.cdk.variants`)."""
    is_ssh = (rule.protocol, rule.first_port, rule.last_port) == ("tcp", 22, 22)
    return rule.group.startswith(LOGIN) and rule.peer == "203.0.113.0/24" and is_ssh


def test_an_instance_connect_endpoint_leads_to_ssh_of_head_and_login_nodes_alone(made: Stack):
    groups = groups_of(made)
    others = {each for each in groups.known if not each.startswith((HEAD, LOGIN))}

    for connect in (each for each in groups.known if each.startswith(CONNECT)):
        assert not [each for each in groups.inbound if each.group == connect]
        for peer in (INTERNET, *others):
            assert not [one for one in NOBODY if groups.lets_out(connect, peer, *one)]
        for peer in groups.known - others:
            assert not groups.lets_out(connect, peer, "tcp", 6817)
        for group in others:
            assert not groups.lets_in(group, connect, "tcp", 22)


def test_each_group_is_one_of_those_above(made: Stack):
    for group in groups_of(made).known:
        assert group.startswith((NODES, HEAD, FILES, ENDPOINTS, LUSTRE, LOGIN, CONNECT)), group


def test_the_head_boots_when_its_ways_are_open(made: Stack):
    """Its first boot mounts the shared files: a rule that comes later would fail it."""
    rules = {
        logical_id
        for logical_id, each in made.resources("AWS::EC2::SecurityGroupIngress")
        if "FromHead" in logical_id and logical_id.startswith(("NetworkFiles", "NetworkEndpoints"))
    }

    for _, head in made.resources("AWS::EC2::Instance"):
        assert rules <= set(head["DependsOn"])


def _closed(groups: Groups, source: str, target: str, protocol: str, port: int) -> Iterator[str]:
    """The side that does not let it through; groups that are not ours are not asked."""
    sources = [each for each in groups.known if each.startswith(source)]
    targets = [each for each in groups.known if each.startswith(target)] or (
        [INTERNET] if target == INTERNET else []
    )
    for one in sources:
        for other in targets:
            if not groups.lets_out(one, other, protocol, port):
                yield "out"
            if other != INTERNET and not groups.lets_in(other, one, protocol, port):
                yield "in"
