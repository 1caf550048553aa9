"""GRES of nodes as 22.05 and 24.11 print them, of GPUs that jobs share."""

import pytest

from tidegate.adapters.slurm_gres import devices, node_gres
from tidegate.core.model.devices import Devices


def test_of_several_types_each_is_told_with_what_is_in_use() -> None:
    has = node_gres("gpu:a100_3g.20gb:2,gpu:a100_1g.5gb:3(S:0-1)")
    used = node_gres("gpu:a100_3g.20gb:2(IDX:0-1),gpu:a100_1g.5gb:1(IDX:2),shard:0")

    assert (has.count, used.count) == (5, 3)
    assert devices(has, used) == (Devices("a100_3g.20gb", 2, 2), Devices("a100_1g.5gb", 3, 1))


def test_of_one_type_nothing_is_told_twice() -> None:
    assert devices(node_gres("gpu:l4:4"), node_gres("gpu:l4:1(IDX:0)")) == ()


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("gpu:l4:0(IDX:N/A),shard:l4:0(IDX:N/A)", (0, ())),
        ("gpu:l4:1(IDX:0),shard:l4:1(IDX:1)", (1, ())),
        ("gpu:l4:0(IDX:N/A),shard:l4:5(IDX:0,2-5)", (5, ())),
        ("gpu:l4:0(IDX:N/A),shard:l4:0(0/4,0/4)", (0, ())),
        ("gpu:l4:0(IDX:N/A),shard:l4:5(3/4,2/4)", (2, (3, 2))),
        ("gpu:l4:1(IDX:0),shard:l4:2(0/4,2/4)", (1, (2,))),
        ("gpu:l4:1(IDX:1),shard:l4:3(3/4,-/4)", (1, (3,))),
        ("shard:l4:2(0/16,12/16)", (1, (12,))),
        ("gpu:l4:0(IDX:N/A),mps:l4:2(IDX:0-1)", (2, ())),
        ("gpu:l4:1(IDX:2),mps:l4:150(90/100,60/100,-/100)", (2, (90, 60))),
    ],
)
def test_gpus_of_which_shards_are_in_use_are_counted(
    text: str, shared: tuple[int, tuple[int, ...]]
) -> None:
    """In the words of 22.05, 24.11 and 26.05; the last two tell what each has in use."""
    assert (node_gres(text).shared, node_gres(text).used) == shared


def test_shards_are_no_gpus() -> None:
    found = node_gres("gpu:l4:2,shard:l4:8")

    assert (found.gres, found.gpu_type, found.count, found.shards) == ("gpu", "l4", 2, 8)
    assert found.shared_gres == "shard"


def test_what_slurm_counts_of_mps_is_known_from_shards() -> None:
    found = node_gres("gpu:l4:2,mps:l4:200")

    assert (found.count, found.shards, found.shared_gres) == (2, 200, "mps")
