"""The plans for clusters/*.yaml as they are kept: `python -m tests.wire.golden_plans` writes them.

Each is made from the snapshot beside it, in words as `tidegate plan` prints them.
"""

from pathlib import Path

from typer.testing import CliRunner

from tidegate.cli.main import app

ROOT = Path(__file__).parents[2]
PLANS = ROOT / "tests" / "golden" / "plans"
NAMES = sorted(path.name.removesuffix(".snapshot.json") for path in PLANS.glob("*.snapshot.json"))


def planned(name: str) -> str:
    """What `tidegate plan` prints for the snapshot of this name, `CLUSTER-situation`."""
    cluster = ROOT / "clusters" / f"{name.partition('-')[0]}.yaml"
    snapshot = PLANS / f"{name}.snapshot.json"
    result = CliRunner().invoke(
        app, ["plan", "--cluster", str(cluster), "--snapshot", str(snapshot)]
    )
    assert result.exit_code == 0, result.output
    return result.output


if __name__ == "__main__":
    for each in NAMES:
        (PLANS / f"{each}.txt").write_text(planned(each), encoding="utf-8")
