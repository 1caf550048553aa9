"""A function's process sees what the deployed function would, and nothing of this one."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.router.deployed import FunctionSettings
from local.router.process import FunctionFailed, FunctionProcess
from tests.local.stack import HANDLERS

SETTINGS = FunctionSettings(
    name="planner",
    arn="arn:aws:lambda:us-east-1:123456789012:function:planner",
    handler="handlers.note",
    role_arn="",
    timeout_s=5,
    memory_mib=256,
    environment=(("NOTE", "here"),),
    code_sha256="",
    log_group="/planner",
    dead_letter_arn="",
)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "handlers.py").write_text(HANDLERS)
    return tmp_path


@pytest.fixture
def process(code: Path) -> Iterator[FunctionProcess]:
    running = FunctionProcess(SETTINGS, code, {"AWS_REGION": "us-east-1"})
    yield running
    running.kill()


def invoke(process: FunctionProcess, event: Any, offset_s: float = 0) -> tuple[Any, list[str]]:
    answer, lines = process.invoke(event, request_id="r", offset_s=offset_s)
    return answer, list(lines)


def test_the_environment_is_the_deployed_one(process: FunctionProcess, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THIS_PROCESS", "1")

    _, (line,) = invoke(process, {})

    # LC_CTYPE is Python's own doing where no locale is set.
    assert set(json.loads(line)["environment"]) - {"LC_CTYPE"} == {
        *("AWS_REGION", "NOTE", "PYTHONPATH")
    }


def test_the_clock_is_the_routers(process: FunctionProcess):
    _, (now,) = invoke(process, {})
    _, (later,) = invoke(process, {}, offset_s=86400)

    assert json.loads(later)["time"] - json.loads(now)["time"] == pytest.approx(86400, abs=5)


def test_the_remaining_time_is_the_timeouts(process: FunctionProcess):
    _, (line,) = invoke(process, {})

    assert 4000 < json.loads(line)["remaining_ms"] <= 5000


def test_the_code_beside_the_runtime_is_not_in_the_way(code: Path):
    """`local/` has modules of its own, of names such as `dns`."""
    (code / "handlers.py").write_text(
        "import sys\ndef note(event, context):\n    return [p for p in sys.path if 'local' in p]\n"
    )
    process = FunctionProcess(SETTINGS, code, {})

    answer, _ = invoke(process, {})
    process.kill()

    assert not [path for path in answer if Path(path).name == "local"]


def test_what_is_printed_without_a_newline_is_not_lost(code: Path):
    (code / "handlers.py").write_text(
        "import sys\n"
        "def note(event, context):\n"
        "    print('out', end='')\n"
        "    print('err', file=sys.stderr)\n"
        "    return 1\n"
    )
    process = FunctionProcess(SETTINGS, code, {})

    answer, lines = invoke(process, {})
    process.kill()

    assert answer == 1
    assert sorted("".join(lines)) == sorted("outerr")


def test_an_error_of_the_handler_leaves_the_process_warm(process: FunctionProcess):
    with pytest.raises(FunctionFailed, match="RuntimeError: asked to") as failed:
        invoke(process, {"detail": {"do": "raise"}})

    assert any("Traceback" in line for line in failed.value.args[1])
    assert process.is_alive
    assert invoke(process, {})[0] == {"batchItemFailures": []}


def test_an_answer_that_is_no_json_is_an_error(code: Path):
    (code / "handlers.py").write_text("def note(event, context):\n    return {1, 2}\n")
    process = FunctionProcess(SETTINGS, code, {})

    with pytest.raises(FunctionFailed, match="not JSON serializable"):
        invoke(process, {})
    process.kill()


def test_over_its_time_the_process_is_gone_with_its_children(code: Path):
    (code / "handlers.py").write_text(
        "import subprocess, time\n"
        "def note(event, context):\n"
        "    print(subprocess.Popen(['sleep', '60']).pid)\n"
        "    time.sleep(60)\n"
    )
    process = FunctionProcess(replace(SETTINGS, timeout_s=2), code, {"PATH": "/usr/bin:/bin"})

    began_s = time.monotonic()
    with pytest.raises(FunctionFailed, match="timed out after 2 s") as failed:
        invoke(process, {})

    child = Path(f"/proc/{failed.value.args[1][0]}/stat")
    assert not process.is_alive
    while child.exists() and child.read_text().split()[2] != "Z":
        assert time.monotonic() - began_s < 30


def test_a_process_that_cannot_load_says_why(code: Path):
    (code / "handlers.py").write_text("import absent_module\n")
    process = FunctionProcess(SETTINGS, code, {})

    with pytest.raises(FunctionFailed, match="No module named 'absent_module'"):
        invoke(process, {})
    assert not process.is_alive


def test_the_next_process_of_a_package_finds_nothing_of_the_one_before(code: Path):
    (code / "handlers.py").write_text(
        "import os\n"
        "seen = []\n"
        "def note(event, context):\n"
        "    seen.append(os.getpid())\n"
        "    os.environ['LEFT'] = 'behind'\n"
        "    os.chdir('/')\n"
        "    return [len(seen), sorted(os.environ)]\n"
    )
    answers = []
    for name in ("FIRST", "SECOND"):
        process = FunctionProcess(SETTINGS, code, {name: "1"})
        answers.append(invoke(process, {})[0])
        process.kill()

    assert answers == [
        [1, ["FIRST", "LEFT", "NOTE", "PYTHONPATH"]],
        [1, ["LEFT", "NOTE", "PYTHONPATH", "SECOND"]],
    ]


def test_a_package_is_imported_once_but_its_handlers_by_each_process(code: Path):
    for folder, module in (("lambdas", "planner"), ("tidegate", "core")):
        (code / folder).mkdir()
        (code / folder / "__init__.py").touch()
        (code / folder / f"{module}.py").write_text("import os\nHERE = os.getpid()\n")
    with (code / "lambdas" / "planner.py").open("a") as handler:
        handler.write(
            "from tidegate import core\n"
            "def handle(event, context):\n"
            "    return [HERE == os.getpid(), core.HERE == os.getppid()]\n"
        )
    process = FunctionProcess(replace(SETTINGS, handler="lambdas.planner.handle"), code, {})

    answer, _ = invoke(process, {})
    process.kill()

    assert answer == [True, True]


def test_a_process_that_ends_is_told_with_its_code(code: Path):
    (code / "handlers.py").write_text("import os\ndef note(event, context):\n    os._exit(3)\n")
    process = FunctionProcess(SETTINGS, code, {})

    with pytest.raises(FunctionFailed, match="the process ended with 3"):
        invoke(process, {})
    assert not process.is_alive
