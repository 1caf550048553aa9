"""What a function loads when it starts cold; how long that takes, `bench.cold_start` says."""

import json
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from cdk.packaging import SERVICES, own_code_package

ROOT = Path(__file__).parents[2]
FUNCTIONS = ("planner", "interruption", "schedule", "reconcile")

# Each of them is in the functions' package for a reason; yaml, holidays and the like load later
# or never. s3transfer's constants are boto3's own first import.
LIBRARIES = {
    *("aws_lambda_powertools", "jmespath"),
    *("boto3", "s3transfer", "botocore", "certifi", "dateutil", "six", "urllib3"),
    *("pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"),
    "cronsim",
}

# What boto3 adds to clients and resources when they are made, which nothing of ours calls.
ADDED_BY_BOTO3 = ("boto3.s3", "boto3.dynamodb", "boto3.ec2", "s3transfer.subscribers")

# How nodes are chosen, which only the planner does.
PLANNING = (
    "buy.blueprint",
    "buy.launches",
    "passes.retire",
    "passes.gangs",
    "offers.limits",
    "buy.bins",
    "planner",
    "offers.offers",
)

START = """\
import gc, importlib, json, sys
texts = []
def hook(event, arguments):
    if event == "compile" and b"__create_fn__" in bytes(str(arguments[0]), "utf-8"):
        texts.append(arguments[0])
sys.addaudithook(hook)
importlib.import_module(sys.argv[1])
modules = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
compiled = len(texts)
from tidegate.adapters.clients import client
made = [client(each, "us-east-1").meta.service_model.service_name for each in sys.argv[2:]]
print(json.dumps([modules, compiled, gc.get_threshold()[0], made, [*sys.modules]]))
"""


@dataclass(frozen=True)
class Started:
    """What one process did. `modules`: by name their file; `compiled`: methods of dataclasses.

    `clients`: whose it made then; `after_clients`: the names of the modules that it had in the end.
    """

    modules: dict[str, str | None]
    compiled: int
    gc_threshold: int
    clients: list[str]
    after_clients: list[str]

    @property
    def libraries(self) -> set[str]:
        files = [file.split("/site-packages/") for file in self.modules.values() if file]
        found = {file[1].split("/")[0].removesuffix(".py") for file in files if len(file) > 1}
        return {name for name in found if not name.startswith("_")}


@cache
def started(name: str) -> Started:
    return Started(*json.loads(run(ROOT, START, f"lambdas.{name}", *SERVICES)))


def run(folder: Path, code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    return done.stdout


@pytest.fixture(scope="module")
def packaged(tmp_path_factory) -> Path:
    """Our own code as Lambda gets it; third-party packages are this environment's."""
    folder = Path(tmp_path_factory.mktemp("task"))
    with zipfile.ZipFile(own_code_package(ROOT)) as archive:
        archive.extractall(folder)
    return folder


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_loads_these_libraries_and_no_others(name):
    assert started(name).libraries <= LIBRARIES


@pytest.mark.parametrize("name", FUNCTIONS)
def test_neither_a_start_nor_a_client_loads_what_boto3_would_add(name):
    found = started(name)

    assert found.clients == [*SERVICES]
    assert not {*ADDED_BY_BOTO3} & {*found.after_clients}


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "planner"])
def test_only_the_planner_loads_how_nodes_are_chosen(name):
    planning = {f"tidegate.core.{each}" for each in PLANNING}

    assert planning <= started("planner").modules.keys()
    assert not planning & started(name).modules.keys()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_packaged_function_compiles_no_method_of_a_dataclass(packaged, name):
    assert started(name).compiled > 50  # so the hook sees them
    assert Started(*json.loads(run(packaged, START, f"lambdas.{name}"))).compiled == 0


def test_a_dataclass_that_the_package_does_not_know_is_made_as_ever(packaged):
    code = (
        "import lambdas.planner\n"
        "from dataclasses import dataclass\n"
        "@dataclass(frozen=True)\n"
        "class New:\n"
        "    never_seen_before: int = 7\n"
        "print(New(), New() == New(7), New() == New(8))\n"
    )

    assert run(packaged, code).split() == ["New(never_seen_before=7)", "True", "False"]


def test_methods_are_of_one_version_of_python_and_say_so(packaged):
    """Another one finds no file of its tag, and compiles as ever."""
    found = [path.name for path in (packaged / "lambdas").glob("*.marshal")]

    assert found == ["dataclasses.cpython-313.marshal"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_cyclic_collector_stays_out_of_a_plan(name):
    assert started(name).gc_threshold >= 200_000
