"""The templates of a cluster's two stacks, as `cdk synth` wrote them."""

from pathlib import Path
from typing import Any

from tidegate.core.model.errors import BadConfig
from tidegate.wire.finite import parse_json


def read_templates(assembly: Path, cluster: str) -> dict[str, dict[str, Any]]:
    """Stack name -> template. Errors: BadConfig, when one is not there."""
    names = (f"tidegate-{cluster}-data", f"tidegate-{cluster}")
    paths = {name: assembly / f"{name}.template.json" for name in names}
    missing = [str(path) for path in paths.values() if not path.exists()]
    if missing:
        raise BadConfig(f"{', '.join(missing)}: not there, run `npx cdk synth --quiet` first")
    return {name: parse_json(path.read_text()) for name, path in paths.items()}
