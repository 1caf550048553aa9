"""Data repositories of Lustre, beside what `cluster_file_faults.yaml` has."""

from pathlib import Path

from tests.wire.cluster_files import good, load, problems
from tidegate.wire.data_repositories import FileEvent

WRONG = [
    {"path": "data", "s3": "sets/a"},
    {"path": "/b", "s3": "s3://sets/b", "imported_file_chunk_mib": 512_001},
    {"path": "/c", "s3": "sets/c", "auto_import": ["NEW", "NEW"], "auto_export": "NEW"},
    {"path": "/d", "s3": "sets/d"},
    {"path": "/d/e", "s3": "sets/d/e", "import_on_create": "always"},
    {"path": "/d/f", "s3": "sets"},
]


def test_all_that_is_wrong_is_told_at_once_with_its_place(tmp_path: Path) -> None:
    said = problems(tmp_path, good({"lustre": {"storage_gib": 1200, "data_repositories": WRONG}}))

    places = [each.split(" ")[0].removeprefix("lustre.data_repositories") for each in said]
    assert sorted(places) == [
        *("[0].path", "[1].imported_file_chunk_mib", "[1].s3", "[2].auto_export"),
        *("[2].auto_import", "[4].import_on_create", "[5].path", "[5].s3"),
    ]


def test_nothing_is_written_to_a_bucket_that_nobody_said(tmp_path: Path) -> None:
    link = {"path": "/data", "s3": "sets/imagenet"}
    said = {"lustre": {"storage_gib": 1200, "data_repositories": [link]}}

    lustre = load(tmp_path, good(said)).lustre

    assert lustre
    (found,) = lustre.data_repositories
    assert (found.auto_import, found.auto_export) == ((), ())
    assert (found.import_on_create, found.imported_file_chunk_mib) == (True, 1024)


def test_events_are_fsx_s_words(tmp_path: Path) -> None:
    link = {"path": "/", "s3": "sets", "auto_export": ["NEW", "CHANGED", "DELETED"]}
    said = {"lustre": {"storage_gib": 2400, "kind": "persistent", "data_repositories": [link]}}

    lustre = load(tmp_path, good(said)).lustre

    assert lustre
    assert lustre.data_repositories[0].auto_export == tuple(FileEvent)
