"""Data sets that jobs name in their comments: which nodes are told of, and what users hear."""

from dataclasses import replace

import pytest

from tests.core.reading import launches
from tests.make import cluster, job, snapshot
from tidegate.core.demand.data_sets import DataSets, data_sets, tag_of
from tidegate.core.explain.answer import answer
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import DATA_TAG, TAG_VALUE_MAX, Template
from tidegate.core.model.slurm import Job
from tidegate.core.planner import plan
from tidegate.service.requests import Placement, fleet_request

ALLOWED = ("sets", "others/open")
IMAGENET = "tidegate:data=s3://sets/imagenet"


def of(allowed: tuple[str, ...] = ALLOWED) -> Cluster:
    return replace(cluster(), prefetch=allowed)


def asked(comment: str, allowed: tuple[str, ...] = ALLOWED) -> DataSets:
    return data_sets(job(1, comment=comment), allowed)


def test_nodes_are_told_of_all_data_sets_of_the_jobs_they_are_bought_for() -> None:
    jobs = [
        job(1, comment=IMAGENET),
        job(2, comment=f"{IMAGENET}/ tidegate:data=s3://others/open/c4,tidegate:ckpt=USR1@60"),
        job(3, comment="tidegate:data=s3://secrets/a"),
    ]

    made = launches(plan(snapshot(jobs, of=of())))

    told = " ".join(each.data for each in made).split()
    assert set(told) == {"s3://sets/imagenet", "s3://others/open/c4"}


def test_the_tag_says_it_and_is_not_there_where_nothing_is_asked() -> None:
    def tags(jobs: list[Job]) -> dict[str, str]:
        launch = launches(plan(snapshot(jobs, of=of())))[0]
        zones = {each.zone: "subnet-1" for each in launch.offerings}
        placement = Placement({launch.pool: Template("lt-1", "3")}, zones)
        return dict(fleet_request(launch, "test", placement).tags)

    assert tags([job(1, comment=IMAGENET)])[DATA_TAG] == "s3://sets/imagenet"
    assert DATA_TAG not in tags([job(1)])


def test_a_comment_buys_neither_more_nor_otherwise() -> None:
    with_data = launches(plan(snapshot([job(1, comment=IMAGENET)], of=of())))
    without = launches(plan(snapshot([job(1)], of=of())))

    assert [replace(each, data="") for each in with_data] == without


def test_without_prefetch_nothing_is_told() -> None:
    assert launches(plan(snapshot([job(1, comment=IMAGENET)])))[0].data == ""


def test_a_tag_holds_as_many_as_fit_in_the_jobs_order() -> None:
    long = "s3://sets/" + "x" * 100
    jobs = [
        job(3, comment="tidegate:data=s3://sets/last"),
        job(1, comment=f"tidegate:data={long}1"),
        job(2, comment=f"tidegate:data={long}2 tidegate:data={long}3"),
    ]

    tag = tag_of(("1", "2", "3"), jobs, ALLOWED)

    assert tag.split() == [f"{long}1", f"{long}2", "s3://sets/last"]
    assert len(tag) <= TAG_VALUE_MAX
    exactly = "s3://sets/" + "x" * (TAG_VALUE_MAX // 2 - 10)
    assert tag_of(("1",), [job(1, comment=f"tidegate:data={exactly}")], ALLOWED) == exactly


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("s3://secrets/x", "it is not among sets, others/open (prefetch.buckets in the cluster"),
        ("s3://others", "it is not among"),
        ("s3://others/opened", "it is not among"),
        ("s3://setsandmore/x", "it is not among"),
        ("s3://sets/../secrets", "it is no s3://bucket/prefix"),
        ("s3://sets/./a", "it is no s3://bucket/prefix"),
        ("s3://sets//a", "it is no s3://bucket/prefix"),
        ("s3://sets/a+b", "it is no s3://bucket/prefix"),
        ("s3://sets/$(id)", "it is no s3://bucket/prefix"),
        ("s3://sets/ü", "it is no s3://bucket/prefix"),
        ("s3://sets/" + "x" * 236, "it is no s3://bucket/prefix"),
        ("sets/x", "it is no s3://bucket/prefix"),
        ("", "it is no s3://bucket/prefix"),
    ],
)
def test_what_is_not_loaded_is_told_with_its_reason(place: str, why: str) -> None:
    found = asked(f"tidegate:data={place}")

    assert found.places == ()
    assert len(found.problems) == 1
    assert "is not loaded to its nodes' own disks, and the job runs without: " in found.problems[0]
    assert why in found.problems[0]


def test_the_longest_name_is_taken() -> None:
    longest = "s3://sets/" + "x" * 235

    assert asked(f"tidegate:data={longest}").places == (longest,)


def test_one_that_is_not_allowed_keeps_no_other_away() -> None:
    found = asked(f"tidegate:data=s3://secrets/x {IMAGENET}")

    assert found.places == ("s3://sets/imagenet",)
    assert len(found.problems) == 1


def test_a_job_names_a_few() -> None:
    found = asked(" ".join(f"tidegate:data=s3://sets/{number}" for number in range(9)))

    assert len(found.places) == 8
    assert found.problems[0].endswith("a job may name 8 of them")


def test_a_cluster_without_prefetch_says_so() -> None:
    found = asked(IMAGENET, ())

    assert found.problems[0].endswith(
        "it cannot be: there is none (prefetch.buckets in the cluster file)"
    )


def test_why_says_what_is_loaded_and_what_is_not() -> None:
    comment = f"{IMAGENET} tidegate:data=s3://secrets/x"
    found = answer("1", snapshot([job(1, comment=comment)], of=of()), None)

    assert "its nodes load s3://sets/imagenet beside their boot, or when it starts" in found.needs
    assert any(each.startswith("s3://secrets/x is not loaded") for each in found.needs)
