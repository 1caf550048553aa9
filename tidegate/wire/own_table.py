"""Our own tables in YAML, which lie in `tidegate/data`."""

from importlib.resources import files
from typing import Any


def own_table(name: str) -> Any:
    """What the file of that name holds.

    By libyaml where PyYAML has it, in a fifth of the time: nobody needs its words for a fault.
    """
    import yaml  # functions start without it

    text = (files("tidegate") / "data" / name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
