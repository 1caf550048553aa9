"""The server of `tidegate mcp`, by the protocol's own SDK, which loads only when it is asked for:
it is an extra of the package, and reads the environment as it loads.
"""

from collections.abc import Callable
from functools import wraps
from importlib.metadata import version
from typing import TYPE_CHECKING

import typer

from tidegate.core.model.errors import TidegateError

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from tidegate.cli.mcp_tools import Tools

ABOUT = (
    "Answers about one Slurm cluster on AWS, {name}. Nothing here changes anything: what to do"
    " stands in the answers as commands for people. Times are epoch seconds, money is USD."
)


def server(tools: "Tools") -> "MCPServer":
    """Errors: ModuleNotFoundError, the SDK is absent or older than version 2."""
    from mcp.server.mcpserver import MCPServer
    from mcp_types import ToolAnnotations

    made = MCPServer(
        "tidegate",
        version=version("tidegate"),
        instructions=ABOUT.format(name=tools.cluster.stem),
        log_level="WARNING",
    )
    reads = ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    for tool in tools.every:
        # The text alone: the same as data beside it would be read, and paid for, twice.
        made.add_tool(_told(tool), annotations=reads, structured_output=False)
    return made


def _told(tool: Callable[..., str]) -> Callable[..., str]:
    """Trouble outside and values that cannot be meant are sentences for who asked."""
    from mcp.server.mcpserver.exceptions import ToolError

    @wraps(tool)
    def asked(*args: str, **kwargs: str) -> str:
        try:
            return tool(*args, **kwargs)
        except TidegateError as trouble:
            raise ToolError(str(trouble)) from trouble
        except typer.BadParameter as wrong:
            raise ToolError(wrong.message) from wrong

    return asked
