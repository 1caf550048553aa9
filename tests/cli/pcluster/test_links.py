"""`tidegate import pcluster`: S3 behind Lustre."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from tests.cli.pcluster.imported import FILES, PLACES, accepted, codes, good, run, written
from tidegate.cli.main import app
from tidegate.wire.data_repositories import FileEvent


def of(tmp_path: Path, *options: str, **settings: Any) -> Result:
    """An import of `linked.yaml` with other settings of its Lustre; None: not said."""
    text = yaml.safe_load((FILES / "linked.yaml").read_text())
    lustre = text["SharedStorage"][0]["FsxLustreSettings"]
    lustre |= settings
    text["SharedStorage"][0]["FsxLustreSettings"] = {k: v for k, v in lustre.items() if v}
    file = tmp_path / "old.yaml"
    file.write_text(yaml.safe_dump(text))
    return CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES, *options])


def associated(**said: Any) -> dict[str, Any]:
    none = dict.fromkeys(
        ("ImportPath", "ExportPath", "ImportedFileChunkSize", "AutoImportPolicy"), None
    )
    link = {"Name": "a", "FileSystemPath": "/a", "DataRepositoryPath": "s3://sets/a"} | said
    return {**none, "DataRepositoryAssociations": [link]}


def test_an_association_comes_along_with_all_that_it_says():
    (link,) = written(accepted("full.yaml", *PLACES))["lustre"]["data_repositories"]

    assert link == {
        "path": "/sets",
        "s3": "data-sets/imagenet",
        "import_on_create": True,
        "imported_file_chunk_mib": 2048,
        "auto_import": ["NEW", "CHANGED", "DELETED"],
        "auto_export": ["NEW"],
    }


def test_parallelcluster_imports_nothing_where_it_is_not_told(tmp_path: Path):
    done = of(tmp_path, **associated())

    (link,) = written(done)["lustre"]["data_repositories"]
    assert link == {"path": "/a", "s3": "sets/a", "import_on_create": False}


def test_import_path_is_a_folder_of_the_same_name(tmp_path: Path):
    """The file system's root is the bucket's, and what lies below the prefix is listed at once."""
    done = of(tmp_path, ExportPath="s3://data-sets/")

    assert written(done)["lustre"]["data_repositories"] == [
        {
            "path": "/corpora/web",
            "s3": "data-sets/corpora/web",
            "import_on_create": True,
            "imported_file_chunk_mib": 512,
            "auto_import": ["NEW", "CHANGED"],
        }
    ]
    assert "lustre-repository" not in done.stderr


@pytest.mark.parametrize(
    ("policy", "events"),
    [(None, ()), ("NONE", ()), ("NEW", ("NEW",)), ("NEW_CHANGED_DELETED", tuple(FileEvent))],
)
def test_a_bucket_without_a_prefix_is_the_whole_file_system(tmp_path: Path, policy, events):
    where = {"ImportPath": "s3://sets", "ExportPath": "s3://sets", "AutoImportPolicy": policy}

    lustre = good(of(tmp_path, **where)).lustre

    assert lustre
    (link,) = lustre.data_repositories
    assert (link.path, link.s3, link.auto_import) == ("/", "sets", events)


def test_an_export_to_another_prefix_must_be_accepted(tmp_path: Path):
    refused = run("linked.yaml", *PLACES)

    assert codes(refused) == {"lustre-repository"}
    assert "FsxLustreSettings.ExportPath: export tasks write over the objects that were" in (
        refused.stderr
    )
    done = of(tmp_path, ExportPath=None)
    assert done.exit_code == 3
    assert "lost: SharedStorage[fast].FsxLustreSettings.ImportPath: export tasks" in done.stderr


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"FileSystemPath": "/a b"}, "path: must be a folder of the file system like /data"),
        ({"DataRepositoryPath": "s3://Sets/a"}, "s3: must be bucket or bucket/prefix"),
        ({"AutoExportPolicy": ["MOVED"]}, "auto_export[0]: must be NEW or CHANGED or DELETED"),
        ({"ImportedFileChunkSize": 600_000}, "imported_file_chunk_mib: must be 1-512000"),
    ],
)
def test_what_cannot_be_linked_is_named_with_the_reason(tmp_path: Path, said, why):
    refused = of(tmp_path, **associated(**said))

    assert codes(refused) == {"lustre-repository"}
    assert f"DataRepositoryAssociations[a]: is not linked: {why}" in refused.stderr
    assert (
        "data_repositories"
        not in written(of(tmp_path, "--accept=lustre-repository", **associated(**said)))["lustre"]
    )


def test_one_that_is_there_keeps_its_own_links(tmp_path: Path):
    text = associated(FileSystemPath="/a") | {"FileSystemId": "fs-0123456789abcdef1"}

    refused = of(tmp_path, **text)

    assert codes(refused) == {"lustre-repository"}
    assert "keeps the links to S3 that it has" in refused.stderr
