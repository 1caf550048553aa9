"""Which launches EC2 is asked for at once."""

from collections.abc import Sequence

from tests.make import A10G, NOW_S, T4, T4_BIG, cluster, offering, placement
from tidegate.core.buy.waves import waves
from tidegate.core.model.ec2 import InstanceType, Market
from tidegate.core.model.ledger import Launch, LaunchRecord
from tidegate.service.requests import fleet_request


def record(
    name: str,
    *types: InstanceType,
    market: Market = Market.ON_DEMAND,
    gang: str = "",
    starts: str = "",
) -> LaunchRecord:
    offerings = tuple(offering(each, market) for each in types)
    launch = Launch(name, "t4", offerings, 1, 1, (), 1.0, gang, "", starts=starts)
    return LaunchRecord(launch, NOW_S, fleet_request(launch, "test", placement(cluster())))


def names(made: Sequence[Sequence[LaunchRecord]]) -> list[list[str]]:
    return [[each.launch.launch_id for each in wave] for wave in made]


def test_launches_that_want_different_things_first_are_asked_for_at_once() -> None:
    made = waves([record("a", T4, A10G), record("b", A10G, T4), record("c", T4_BIG)])

    assert names(made) == [["a", "b", "c"]]


def test_of_those_that_want_the_same_the_first_is_asked_for_before_the_rest() -> None:
    made = waves([record("a", T4), record("b", A10G), record("c", T4), record("d", T4, A10G)])

    assert names(made) == [["a", "b"], ["c", "d"]]


def test_what_is_paid_for_in_advance_is_asked_for_before_what_could_take_its_place() -> None:
    made = waves([record("a", T4), record("b", T4, market=Market.RESERVED)])

    assert names(made) == [["b"], ["a"]]


def test_what_is_in_doubt_is_asked_for_before_anything_new() -> None:
    made = waves([record("a", T4)], in_doubt=[record("z", A10G)])

    assert names(made) == [["z"], ["a"]]


def test_of_no_launches_there_is_no_wave() -> None:
    assert waves([]) == ()


def test_the_parts_of_a_gang_are_asked_for_one_by_one_beside_those_of_others() -> None:
    made = waves(
        [
            record("a", T4, gang="7"),
            record("b", A10G, gang="7"),
            record("c", T4_BIG, gang="8"),
            record("d", A10G, T4, gang="9"),
        ]
    )

    assert names(made) == [["a", "c", "d"], ["b"]]


def test_the_part_that_ec2_refused_most_often_comes_first() -> None:
    parts = [record("a", T4, gang="7"), record("b", A10G, gang="7"), record("c", T4_BIG, gang="7")]
    on_demand = Market.ON_DEMAND

    made = waves(parts, (), {offering(A10G, on_demand): 2, offering(T4_BIG, on_demand): 1})

    assert names(made) == [["b"], ["c"], ["a"]]


def test_a_part_with_an_alternative_that_was_never_refused_is_not_scarce() -> None:
    parts = [record("a", A10G, T4, gang="7"), record("b", T4_BIG, gang="7")]

    made = waves(parts, (), {offering(A10G, Market.ON_DEMAND): 5})

    assert names(made) == [["b"], ["a"]]


def test_the_part_that_is_paid_for_in_advance_is_asked_for_first() -> None:
    parts = [record("a", T4, gang="7"), record("b", T4, A10G, market=Market.RESERVED, gang="7")]

    assert names(waves(parts)) == [["b"], ["a"]]


def test_the_starts_of_a_gang_are_asked_for_at_once_when_the_first_is_answered() -> None:
    started = [record(f"s-{n}", T4, gang="7", starts=f"i-{n}") for n in range(4)]

    made = waves([*started, record("a", A10G, gang="8")])

    assert names(made) == [["s-0", "a"], ["s-1", "s-2", "s-3"]]


def test_the_starts_of_one_kind_of_a_gang_come_before_those_of_another() -> None:
    kinds = [
        record(f"{of.gpu_type}-{n}", of, gang="7", starts=f"i-{n}{of.gpu_type}")
        for of in (T4, A10G)
        for n in range(2)
    ]

    made = waves(kinds, (), {offering(A10G, Market.ON_DEMAND): 1})

    assert names(made) == [["a10g-0"], ["a10g-1"], ["t4-0", "t4-1"]]
