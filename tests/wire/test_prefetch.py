"""The section `prefetch` of the cluster file."""

from pathlib import Path

import pytest

from tests.make import job
from tests.wire.cluster_files import good, load, problems
from tidegate.core.demand.data_sets import data_sets


def test_nodes_may_read_what_the_file_names(tmp_path: Path) -> None:
    given = ["data-sets/imagenet/", "all.of-it", "a-b/c.d/_=@-x"]
    found = load(tmp_path, good({"prefetch": {"buckets": given}})).cluster.prefetch

    assert found == ("data-sets/imagenet", "all.of-it", "a-b/c.d/_=@-x")
    # What the file allows a comment can ask for.
    for place in found:
        asked = data_sets(job(1, comment=f"tidegate:data=s3://{place}"), found)
        assert asked.places == (f"s3://{place}",)


def test_nobody_loads_anything_unasked(tmp_path: Path) -> None:
    assert load(tmp_path, good()).cluster.prefetch == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["Data"], "bucket or bucket/prefix, like data-sets/imagenet"),
        (["s3://data"], "bucket or bucket/prefix, like data-sets/imagenet"),
        (["data/../other"], "bucket or bucket/prefix, like data-sets/imagenet"),
        (["data/a b"], "bucket or bucket/prefix, like data-sets/imagenet"),
        (["data/*"], "bucket or bucket/prefix, like data-sets/imagenet"),
        (["data//x"], "bucket or bucket/prefix, like data-sets/imagenet"),
        (["data/" + "x" * 240], "prefetch.buckets"),
        (["data", "data"], "data"),
        ([f"data{number}" for number in range(21)], "at most 20 entries, has 21"),
        ([], "prefetch.buckets"),
    ],
)
def test_what_no_comment_could_name_is_refused(tmp_path: Path, given: list[str], said: str) -> None:
    told = problems(tmp_path, good({"prefetch": {"buckets": given}}))

    assert any(said in line for line in told), told


def test_a_pool_without_disks_of_its_own_is_told(tmp_path: Path) -> None:
    file: dict[str, object] = {"prefetch": {"buckets": ["data"]}}
    said = "has a disk of its own, so prefetch does nothing for it"

    assert not any(said in each for each in load(tmp_path, good(file)).notes)
    file |= {"pools.t4.instance_types": ["p3.2xlarge"], "prices_usd_per_hour": {}}
    assert any(said in each for each in load(tmp_path, good(file)).notes)
