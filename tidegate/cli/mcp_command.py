"""`tidegate mcp`: answers of one cluster for programs that speak the Model Context Protocol."""

import typer

from tidegate.cli.options import ClusterOption

EXAMPLES = (
    "Examples: tidegate mcp --cluster clusters/dev.yaml; as what starts it writes it:"
    ' {"command": "tidegate", "args": ["mcp", "--cluster", "/path/dev.yaml"]}'
)

ABSENT = (
    "tidegate mcp needs the package mcp, version 2 or newer, which is not installed here: install"
    " tidegate[mcp] instead of tidegate, in the repository `uv sync --extra mcp`"
)


def mcp(context: typer.Context, cluster: ClusterOption) -> None:
    """Serve these answers to programs, over MCP.

    why, status, nodes, events and cost, on standard input and output; nothing that changes
    anything. It ends with its input.

    Exit code 1: the cluster file is wrong, or the package `mcp` is absent.
    """
    from tidegate.cli.live import told
    from tidegate.cli.mcp_tools import Tools
    from tidegate.wire.config import load_cluster

    with told():
        load_cluster(cluster)
    try:
        from tidegate.cli.mcp_server import server

        made = server(Tools(cluster, context.obj))
    except ModuleNotFoundError as absent:
        if (absent.name or "").split(".")[0] != "mcp":
            raise
        typer.echo(ABSENT, err=True)
        raise typer.Exit(code=1) from absent
    made.run("stdio")
