"""The templates of a cluster's stacks, as `cdk synth` wrote them."""

from pathlib import Path
from typing import Any

from tidegate.core.model.errors import BadConfig
from tidegate.wire.finite import parse_json


def read_templates(
    assembly: Path, cluster: str, *, has_images: bool = False
) -> dict[str, dict[str, Any]]:
    """Stack name -> template. `has_images`: with that of what bakes them.

    Errors: BadConfig, when one is not there.
    """
    name = f"tidegate-{cluster}"
    names = (f"{name}-data", *((f"{name}-images",) if has_images else ()), name)
    paths = {each: assembly / f"{each}.template.json" for each in names}
    missing = [str(path) for path in paths.values() if not path.exists()]
    if missing:
        raise BadConfig(f"{', '.join(missing)}: not there, run `npx cdk synth --quiet` first")
    return {name: parse_json(path.read_text()) for name, path in paths.items()}
