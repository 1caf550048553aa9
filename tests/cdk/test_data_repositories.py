"""Buckets behind folders of FSx for Lustre: what is made, what a change of them does."""

from typing import Any

import pytest

from tests.cdk.made import Stack, dev_file, joined, synthesized

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
