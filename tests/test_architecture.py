"""The repository keeps its rules, and each rule catches what it is for."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import architecture

ROOT = Path(__file__).parents[1]
RULES = (
    architecture.import_directions,
    architecture.rooms_of_core,
    architecture.one_class_for_a_word,
    architecture.purity_of_core,
    architecture.aws_only_in_adapters,
    architecture.clients_in_one_file,
    architecture.error_codes_in_one_file,
    architecture.finite_numbers,
    architecture.sizes,
    architecture.parameters_of_passes,
    architecture.annotations,
    architecture.no_patching,
)
type Rule = Callable[[Path], Iterator[str]]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_repository_keeps_its_rules(rule: Rule):
    broken = list(rule(ROOT))

    assert not broken, "\n".join([rule.__doc__ or "", *broken])


LONG_FUNCTION = "def long() -> None:\n" + "    x = 1\n" * 60

MISTAKES = [
    (architecture.import_directions, "tidegate/core/a.py", "import tidegate.ports"),
    (architecture.import_directions, "tidegate/core/a.py", "from tidegate.service import control"),
    (architecture.import_directions, "tidegate/core/a.py", "from ..wire import config"),
    (architecture.import_directions, "tidegate/core/a.py", "def f():\n    import tidegate.wire"),
    (architecture.import_directions, "tidegate/ports.py", "import tidegate.adapters.ec2"),
    (architecture.import_directions, "tidegate/service/a.py", "import tidegate.adapters.ec2"),
    (architecture.import_directions, "tidegate/service/a.py", "from tidegate import wire"),
    (architecture.import_directions, "tidegate/wire/a.py", "import tidegate.service.apply"),
    (architecture.import_directions, "tidegate/adapters/a.py", "import tidegate.service.apply"),
    (architecture.import_directions, "tidegate/agent/a.py", "import tidegate.sim.world"),
    (architecture.import_directions, "tidegate/sim/a.py", "import tidegate.adapters.ec2"),
    (architecture.import_directions, "tidegate/new.py", "import tidegate.core.model.cluster"),
    (architecture.import_directions, "userdata/a.py", "import tidegate.core.model.cluster"),
    (architecture.import_directions, "cdk/a.py", "from tidegate.service import control"),
    (architecture.import_directions, "lambdas/a.py", "import local.cloud"),
    (architecture.import_directions, "local/a.py", "import tests.make"),
    (architecture.import_directions, "local/a.py", "from bench import figures"),
    (architecture.import_directions, "tidegate/sim/a.py", "import bench.small"),
    (architecture.import_directions, "bench/a.py", "from tests import make"),
    (architecture.import_directions, "bench/vm/a.py", "import tests.boot.node_world"),
    (architecture.rooms_of_core, "tidegate/core/a.py", "import dataclasses"),
    (architecture.rooms_of_core, "tidegate/core/model/a.py", "import tidegate.core.fleet.judge"),
    (architecture.rooms_of_core, "tidegate/core/passes/a.py", "from tidegate.core import planner"),
    (architecture.rooms_of_core, "tidegate/core/planner.py", "import tidegate.core.explain.why"),
    (architecture.purity_of_core, "tidegate/core/a.py", "import os.path"),
    (architecture.purity_of_core, "tidegate/core/a.py", "from random import choice"),
    (architecture.purity_of_core, "tidegate/core/a.py", "import pydantic"),
    (architecture.purity_of_core, "tidegate/core/a.py", "def f(t):\n    return t.now()"),
    (architecture.purity_of_core, "tidegate/core/a.py", "text = open('x')"),
    (architecture.aws_only_in_adapters, "tidegate/service/a.py", "import botocore"),
    (architecture.aws_only_in_adapters, "lambdas/a.py", "from botocore.config import Config"),
    (architecture.clients_in_one_file, "tidegate/adapters/a.py", "import boto3"),
    (architecture.clients_in_one_file, "tidegate/adapters/a.py", "from boto3 import client"),
    (architecture.clients_in_one_file, "tidegate/adapters/clients.py", "import botocore.session"),
    (architecture.error_codes_in_one_file, "tidegate/adapters/a.py", "e.response['Error']['Code']"),
    (architecture.finite_numbers, "tidegate/wire/a.py", "import json\nx = json.loads(text)"),
    (architecture.finite_numbers, "tidegate/cli/a.py", "class A(BaseModel):\n    x: float"),
    (architecture.sizes, "tidegate/core/a.py", "x = 1\n" * 401),
    (architecture.sizes, "tests/a.py", LONG_FUNCTION),
    (
        architecture.parameters_of_passes,
        "tidegate/core/passes/a.py",
        "def f(a, b, c, d, e, g, h): return a, b, c, d, e, g, h",
    ),
    (architecture.parameters_of_passes, "tidegate/core/passes/a.py", "def f(a, *, b): return a"),
    (architecture.annotations, "local/a.py", "def f(x: int): ..."),
    (architecture.annotations, "tidegate/a.py", "class A:\n    def f(self, *x) -> None: ..."),
    (architecture.no_patching, "tests/a.py", "from unittest import mock"),
    (architecture.no_patching, "tests/a.py", "from unittest.mock import patch"),
    (architecture.no_patching, "tests/a.py", "monkeypatch.setattr('tidegate.ports.x', 1)"),
    (
        architecture.no_patching,
        "tests/a.py",
        "from tidegate.core.model import cluster\nmonkeypatch.setattr(cluster.Pool, 'x', 1)",
    ),
]


@pytest.mark.parametrize(("rule", "file", "mistake"), MISTAKES)
def test_each_rule_catches_a_mistake(tmp_path, rule: Rule, file, mistake):
    write(tmp_path, file, mistake)

    assert len(list(rule(tmp_path))) == 1


ALLOWED = [
    (
        "tidegate/core/fleet/a.py",
        "import dataclasses\nfrom tidegate.core.model.cluster import Pool",
    ),
    ("tidegate/cli/a.py", "import os\nfrom tidegate.wire.config import load_cluster"),
    ("tidegate/adapters/clients.py", "import boto3\nfrom tidegate.ports import Clock"),
    ("tidegate/adapters/a.py", "from botocore.exceptions import ClientError"),
    ("tidegate/adapters/aws_errors.py", "e.response['Error']['Code']"),
    ("tidegate/wire/a.py", "class A(BaseModel):\n    model_config = ConfigDict(**FINITE)"),
    ("cdk/a.py", "from tidegate.wire.config import load_cluster\nimport userdata.render"),
    ("local/a.py", "import boto3\nimport tidegate.wiring"),
    ("bench/a.py", "import boto3\nimport local.cloud\nfrom tidegate.core.model import cluster"),
    ("tests/a.py", "import sys\ndef test_a(monkeypatch): monkeypatch.setattr(sys, 'argv', [])"),
]


@pytest.mark.parametrize(("file", "text"), ALLOWED)
def test_no_rule_is_against_what_is_allowed(tmp_path, file, text):
    write(tmp_path, file, text)

    assert [broken for rule in RULES for broken in rule(tmp_path)] == []


def test_a_word_of_core_that_means_two_things_is_caught(tmp_path: Path):
    write(tmp_path, "tidegate/core/fleet/a.py", "class Step: ...\nclass _Own: ...")
    write(tmp_path, "tidegate/core/model/b.py", "class Step: ...\nclass _Own: ...")

    (broken,) = architecture.one_class_for_a_word(tmp_path)

    assert broken.endswith("Step is one of tidegate.core.fleet.a too")


def test_importing_any_module_leaves_the_world_alone():
    assert import_all(ROOT, "tidegate", "userdata", "lambdas") == ""


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("import os\nx = os.environ.get('HOME')", "reads the environment"),
        ("import os\nx = os.getenv('HOME')", "reads the environment"),
        ("import os\nx = dict(os.environ)", "reads the environment"),
        (
            "import socket\nsocket.socket(type=socket.SOCK_DGRAM).sendto(b'', ('127.0.0.1', 9))",
            "socket.sendto",
        ),
        ("import subprocess\nsubprocess.run(['true'])", "subprocess.Popen"),
    ],
)
def test_a_module_that_touches_the_world_is_caught(tmp_path, text, seen):
    write(tmp_path, "tidegate/a.py", text)
    (tmp_path / "tidegate" / "__init__.py").touch()

    assert seen in import_all(tmp_path, "tidegate")


def import_all(root: Path, *packages: str) -> str:
    command = [sys.executable, str(ROOT / "tests" / "import_watch.py"), str(root), *packages]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.stdout


def write(root: Path, file: str, text: str) -> None:
    """A file and beside it the modules that it may import."""
    for name in ("core/model/cluster", "service/control", "wire/config", "wire/events"):
        other = root / "tidegate" / f"{name}.py"
        other.parent.mkdir(parents=True, exist_ok=True)
        other.touch()
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
