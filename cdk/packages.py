"""The code that a deployment brings: the functions' and the agent's."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cdk.agent_package import agent_package, own_agent_package
from cdk.packaging import own_code_package, package


@dataclass(frozen=True, slots=True, kw_only=True)
class Packages:
    """`functions`: a zip file for Lambda. `agent`: a .tgz for the head."""

    functions: Path
    agent: Path

    @classmethod
    def build(cls, root: Path) -> Self:
        """As for AWS. Errors: BadConfig, when uv is missing or fails."""
        return cls(functions=package(root), agent=agent_package(root))

    @classmethod
    def own_code(cls, root: Path) -> Self:
        """Without other people's packages: for tests, and for machines that have them."""
        return cls(functions=own_code_package(root), agent=own_agent_package(root))
