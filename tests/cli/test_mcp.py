"""`tidegate mcp`, driven by the SDK's own client over real standard input and output."""

import asyncio
import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import Town
from tests.cli.test_cost_by import bought_node, line
from tests.make import job
from tidegate.cli import mcp_tools
from tidegate.cli.mcp_server import server
from tidegate.cli.mcp_tools import Tools
from tidegate.core.model.errors import Permanent

# Where it is used: each process of a test run would import it for half a second, to collect this.
if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult

ROOT = Path(__file__).parents[2]
READERS = {"why", "status", "nodes", "events", "cost"}


def text(result: "CallToolResult") -> str:
    from mcp_types import TextContent

    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def deploy_planner(town: Town) -> None:
    """The planner's function, whose environment says where all else is."""
    role = town.cloud.client("iam").create_role(
        RoleName=f"{town.names.cluster}-planner", AssumeRolePolicyDocument="{}"
    )["Role"]["Arn"]
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as code:
        code.writestr("planner.py", "")
    town.cloud.client("lambda").create_function(
        FunctionName=f"tidegate-{town.names.cluster}-planner",
        Runtime="python3.13",
        Role=role,
        Handler="planner.handler",
        Code={"ZipFile": archive.getvalue()},
        Environment={"Variables": town.variables},
    )


def talk[Answer](town: Town, ask: "Callable[[Client], Awaitable[Answer]]") -> Answer:
    """Start the command as a program does, and ask it."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tidegate.cli.main", "mcp", "--cluster", str(town.file)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        | town.cloud.environment,
        cwd=ROOT,
    )

    # Of a test's own the program cannot write into; mcp takes what is there at its first import.
    errors = sys.__stderr__
    assert errors

    async def session() -> Answer:
        async with Client(stdio_client(started, errors)) as client:
            return await ask(client)

    return asyncio.run(session())


def test_a_program_hears_what_the_commands_say(counted: Town, tmp_path: Path) -> None:
    deploy_planner(counted)
    node = bought_node(counted)
    counted.report([job(1, account="vision"), job(2, gpus=64)])
    counted.look()
    (tmp_path / "runs").write_text(line(node.instance_id, node.launched_at_s - 5))

    async def ask(client: "Client") -> "tuple[Any, dict[str, CallToolResult]]":
        asked: dict[str, dict[str, Any]] = {
            "why": {"job_id": "2"},
            "status": {},
            "nodes": {"pool": "t4"},
            "events": {"job": "1"},
            "cost": {"by": "user"},
        }
        # All at once, as a program may.
        answers = await asyncio.gather(*(client.call_tool(*each) for each in asked.items()))
        return await client.list_tools(), dict(zip(asked, answers, strict=True))

    tools, answers = talk(counted, ask)

    assert {each.name for each in tools.tools} == READERS
    assert not any(each.is_error for each in answers.values()), answers
    read = {name: json.loads(text(each)) for name, each in answers.items()}
    why = counted.ask_json("why", "2")
    assert read["why"].keys() == why.keys()
    assert read["why"]["headline"] == why["headline"]
    assert read["status"].keys() == counted.ask_json("status").keys()
    assert read["status"]["waiting"] == 1
    assert [each["name"] for each in read["nodes"]] == [node.instance_id]
    assert read["events"] == counted.ask_json("events", "--job", "1") != []
    assert read["cost"]["rows"][0]["name"] == "ada"


def ask_here(town: Town, name: str, **arguments: str) -> "CallToolResult":
    """The same server without a process of its own."""
    from mcp import Client

    made = server(Tools(town.file, town.client))

    async def session() -> "CallToolResult":
        async with Client(made) as client:
            return await client.call_tool(name, arguments)

    return asyncio.run(session())


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("events", {"since": "soon"}, "takes 90s, 15m, 2h or 7d, not 'soon'"),
        ("nodes", {"pool": "h100"}, "the cluster file has no pool h100"),
        ("cost", {"by": "mood"}, "it is one of job, user"),
        ("cost", {}, "add accounting: true to slurm"),
        ("why", {}, "job_id"),
    ],
)
def test_what_cannot_be_answered_is_a_sentence(
    town: Town, name: str, arguments: dict[str, str], says: str
) -> None:
    answer = ask_here(town, name, **arguments)

    assert answer.is_error
    assert says in text(answer)


def test_a_program_may_ask_for_an_array_as_squeue_shows_it(town: Town) -> None:
    town.report([job("2_1", array_job_id="2")])
    town.look()

    answer = ask_here(town, "why", job_id="2_[1-4%2]")

    assert json.loads(text(answer))["headline"].startswith("job 2 starts soon")


def test_a_cluster_that_is_not_deployed_is_an_answer_and_no_end(town: Town) -> None:
    town.client = town.cloud.client  # type: ignore[method-assign]

    answer = ask_here(town, "status")

    assert answer.is_error
    assert "is the cluster deployed?" in text(answer)


def test_every_tool_says_that_it_reads_and_what_it_takes(town: Town) -> None:
    from mcp import Client

    async def tools() -> Any:
        async with Client(server(Tools(town.file, town.client))) as client:
            return (await client.list_tools()).tools

    for each in asyncio.run(tools()):
        assert each.annotations.read_only_hint, each.name
        assert each.description
        for parameter in each.input_schema["properties"].values():
            assert parameter["description"], each.name


def test_the_tools_write_nothing(town: Town) -> None:
    """Every call that they make begins with a word of AWS's for reading."""
    town.report([job(1), job(2, gpus=64)])
    town.look()
    before = town.cloud.aws_calls()

    for name, arguments in (("why", {"job_id": "2"}), ("status", {}), ("nodes", {})):
        assert not ask_here(town, name, **arguments).is_error

    made = town.cloud.aws_calls() - before
    assert made
    words = ("Get", "List", "Describe", "Query", "BatchGet")
    assert [each for each in made if not each.split(":")[-1].startswith(words)] == []


def test_an_answer_that_nobody_can_read_says_what_to_ask() -> None:
    with pytest.raises(Permanent, match="ask for a shorter time"):
        mcp_tools._bounded("x" * (mcp_tools.ANSWER_MAX + 1))


def test_without_the_package_the_command_says_how_to_get_it(town: Town, tmp_path: Path) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text("raise ModuleNotFoundError(name='mcp')")

    done = subprocess.run(
        [sys.executable, "-m", "tidegate.cli.main", "mcp", "--cluster", str(town.file)],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "uv sync --extra mcp" in done.stderr
    assert done.stdout == ""
