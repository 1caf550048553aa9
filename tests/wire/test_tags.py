"""Tags of a site's own: what AWS would refuse at a deployment, or at the first launch."""

from pathlib import Path

import pytest

from tests.wire.cluster_files import good, load, problems


def test_tags_are_kept_as_they_are_written(tmp_path: Path) -> None:
    tags = {"cost-center": "ML 42/a", "Owner": "", "team:name": "vision"}

    assert dict(load(tmp_path, good({"tags": tags})).tags) == tags


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ({"aws:team": "x"}, "AWS keeps keys that begin with aws: for itself"),
        ({"AWS:team": "x"}, "AWS keeps keys"),
        ({"tidegate:cluster": "x"}, "Tidegate sets Name and what begins with tidegate: itself"),
        ({"Name": "x"}, "Tidegate sets Name"),
        ({"cost center": "x"}, "no blank, no /"),
        ({"a/b": "x"}, "no blank, no /"),
        ({"_index": "x"}, "nodes read their tags in their metadata"),
        ({"": "x"}, "at most 128"),
        ({"k" * 129: "x"}, "at most 128"),
        ({"team": "x" * 257}, "at most 256"),
        ({"team": "a,b"}, "letters, digits, blanks and _.:/=+-@"),
        ({"team": "x", "Team": "y"}, "roles take keys that differ by more than case"),
        ({f"k{n}": "x" for n in range(39)}, "has 39 tags; a resource bears 50"),
    ],
)
def test_a_tag_that_aws_would_refuse_is_refused(
    tmp_path: Path, tags: dict[str, str], said: str
) -> None:
    told = problems(tmp_path, good({"tags": tags}))

    assert any(said in line for line in told), told
