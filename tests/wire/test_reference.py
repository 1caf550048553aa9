"""The reference of the cluster file: made from the model, whole, and as it stands in docs."""

import re
from pathlib import Path

from typer.testing import CliRunner

from tidegate.cli.main import app
from tidegate.wire.models import ClusterModel
from tidegate.wire.pool_models import PoolModel
from tidegate.wire.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "cluster-file.md"


def test_the_page_is_what_the_command_prints() -> None:
    made = CliRunner().invoke(app, ["schema", "cluster", "--markdown"]).output

    assert PAGE.read_text() == made, "tidegate schema cluster --markdown > docs/cluster-file.md"


def test_every_key_has_its_row_with_values_and_default() -> None:
    page = reference(ClusterModel, "The cluster file", "")

    for model in (ClusterModel, PoolModel):
        for name in model.model_fields:
            assert f"\n| `{name}` | " in page
    assert "| `name` | name of the cluster, like dev | text | **required** |" in page
    assert (
        "| `metrics` | full: all figures, paid by the metric, and a dashboard | `minimal`, `full`"
        in page
    )
    assert "| `usd_per_day` | USD per day | number above 0 |  |" in page
    assert "the name becomes a Slurm feature | name: see Pool |" in page


def test_every_section_that_is_referred_to_is_there() -> None:
    page = reference(ClusterModel, "The cluster file", "")
    named = set(re.findall(r"see ([A-Z]\w*)", page))

    titles = {line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")}
    assert named == titles
