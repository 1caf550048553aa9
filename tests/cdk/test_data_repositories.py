"""Buckets behind folders of FSx for Lustre: what is made, what a change of them does."""

from typing import Any

import pytest

from tests.cdk.made import Stack, dev_file, joined, synthesized
from tidegate.cli.diff import Change, Effect, changes
from tidegate.cli.impossible import Code, Refusal, refusals

KIND = "AWS::FSx::DataRepositoryAssociation"
SETS = {"path": "/sets", "s3": "data-sets/imagenet", "auto_import": ["NEW", "CHANGED", "DELETED"]}
RESULTS = {
    "path": "/results/runs",
    "s3": "our-results",
    "import_on_create": "false",
    "imported_file_chunk_mib": "4096",
    "auto_export": ["NEW", "CHANGED"],
}


def cluster(folder: Any, *repositories: dict[str, Any], gib: str = "1200") -> Stack:
    lustre = {"storage_gib": gib, "data_repositories": list(repositories)}
    return synthesized(folder, dev_file(lustre=lustre))["tidegate-dev"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    return cluster(tmp_path_factory.mktemp("linked"), SETS, RESULTS)


def by_path(stack: Stack) -> dict[str, dict[str, Any]]:
    return {each["Properties"]["FileSystemPath"]: each for _, each in stack.resources(KIND)}


def test_each_is_linked_to_its_folder(made: Stack):
    found = by_path(made)

    ((files, _),) = made.resources("AWS::FSx::FileSystem")
    sets, results = found["/sets"]["Properties"], found["/results/runs"]["Properties"]
    assert found.keys() == {"/sets", "/results/runs"}
    assert {joined(each["FileSystemId"]) for each in (sets, results)} == {f"<{files}>"}
    assert sets["DataRepositoryPath"] == "s3://data-sets/imagenet/"
    assert results["DataRepositoryPath"] == "s3://our-results/"
    assert (sets["BatchImportMetaDataOnCreate"], sets["ImportedFileChunkSize"]) == (True, 1024)
    assert results["BatchImportMetaDataOnCreate"] is False
    assert results["ImportedFileChunkSize"] == 4096


def test_what_is_off_is_said(made: Stack):
    """CloudFormation's provider turns a policy off by an empty one: without S3 it asks for nothing,
    and the bucket would go on being written to.
    """
    found = {path: each["Properties"]["S3"] for path, each in by_path(made).items()}

    assert found["/sets"] == {
        "AutoImportPolicy": {"Events": ["NEW", "CHANGED", "DELETED"]},
        "AutoExportPolicy": {"Events": []},
    }
    assert found["/results/runs"] == {
        "AutoImportPolicy": {"Events": []},
        "AutoExportPolicy": {"Events": ["NEW", "CHANGED"]},
    }


def test_fsx_is_asked_for_one_after_the_other(made: Stack):
    (first, _), (_, second) = sorted(made.resources(KIND), key=lambda each: "Depends" in str(each))

    assert first in second["DependsOn"]


def test_they_go_and_the_files_stay(made: Stack):
    """The provider deletes an association with DeleteDataInFileSystem false."""
    assert not any("DeletionPolicy" in each for each in by_path(made).values())
    ((_, files),) = made.resources("AWS::FSx::FileSystem")
    assert files["DeletionPolicy"] == "RetainExceptOnCreate"


def told(before: Stack, after: Stack) -> list[Change]:
    return [each for each in changes(before.template, after.template) if each.kind == KIND]


def refused(before: Stack, after: Stack) -> list[Refusal]:
    old, new = ({"tidegate-dev": each.template} for each in (before, after))
    return refusals(old, new, "dev", lambda: True)


def test_one_that_goes_is_told_with_what_is_lost(made: Stack, tmp_path):
    after = cluster(tmp_path, SETS)

    (gone,) = told(made, after)

    assert (gone.effect, gone.is_grave) == (Effect.REMOVED, True)
    assert "the files stay, but the bucket gets nothing of them any more" in gone.sentence
    assert refused(made, after) == []


@pytest.mark.parametrize(
    "change",
    [
        {"s3": "data-sets/other"},
        {"import_on_create": "false"},
        {"path": "/sets/imagenet"},
        {"path": "/other", "s3": "data-sets/imagenet/train"},
    ],
    ids=str,
)
def test_another_link_of_the_same_place_is_refused_with_the_way_there(
    made: Stack, tmp_path, change: dict[str, str]
):
    """CloudFormation makes the new one before the old one goes, and FSx refuses it."""
    after = cluster(tmp_path / "after", {**SETS, **change}, RESULTS)

    (link,) = refused(made, after)

    assert (link.code, link.kind) == (Code.LINKED_ALREADY, KIND)
    assert "deploy twice: first without this entry" in link.way
    # The way: the old one is gone then.
    without = cluster(tmp_path / "without", RESULTS)
    assert refused(made, without) == []
    assert refused(without, after) == []


def test_a_ninth_for_the_time_of_a_deployment_is_refused(tmp_path):
    eight = [{"path": f"/{each}", "s3": f"sets/{each}"} for each in "abcdefgh"]
    before = cluster(tmp_path / "before", *eight)
    other = {"path": "/i", "s3": "sets/i"}

    (link,) = refused(before, cluster(tmp_path / "other", *eight[:-1], other))

    assert link.code == Code.LINKED_ALREADY
    assert refused(before, cluster(tmp_path / "less", *eight[:-1])) == []


def test_events_change_in_place(made: Stack, tmp_path):
    after = cluster(tmp_path, {**SETS, "auto_import": []}, {**RESULTS, "auto_export": ["NEW"]})

    assert [(each.effect, each.properties) for each in told(made, after)] == [
        (Effect.CHANGED, ("S3",)),
        (Effect.CHANGED, ("S3",)),
    ]
    assert refused(made, after) == []


def test_another_file_system_is_linked_anew(made: Stack, tmp_path):
    """The old one is kept without its links: what it has not exported lies there alone."""
    after = cluster(tmp_path, SETS, RESULTS, gib="2400")

    assert {each.effect for each in told(made, after)} == {Effect.REPLACED}
    assert all(each.is_grave for each in told(made, after))
    assert refused(made, after) == []
