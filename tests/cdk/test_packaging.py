"""The package that Lambda runs. It is built here as for a deployment."""

import ast
import os
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cdk.packaging import NOT_IN_FUNCTIONS, SERVICES, own_code_package, package
from tests.cdk.made import ROOT
from tidegate.core.errors import BadConfig

AARCH64 = 183  # EM_AARCH64 of elf(5)
LAMBDA_UNZIPPED_BYTES = 250 * 1024 * 1024


@pytest.fixture(scope="session")
def built() -> Path:
    return package(ROOT)


@pytest.fixture(scope="session")
def unpacked(built, tmp_path_factory) -> Path:
    folder = Path(tmp_path_factory.mktemp("task"))
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder)
    return folder


def sources(folder: Path) -> Path:
    """A copy of what a package is made of."""
    folder.mkdir()
    for name in ("tidegate", "lambdas"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("uv.lock", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def test_libraries_are_those_of_lambda_s_arm_processors(unpacked: Path):
    libraries = [path for path in unpacked.rglob("*.so*") if path.is_file()]

    assert libraries
    machines = {struct.unpack_from("<H", path.read_bytes(), 18)[0] for path in libraries}
    assert machines == {AARCH64}


def test_bytecode_is_there_for_everything_and_python_trusts_it(unpacked: Path):
    for source in unpacked.rglob("*.py"):
        cached = source.parent / "__pycache__" / f"{source.stem}.cpython-313.pyc"
        assert cached.exists(), source
        # PEP 552: 1 is by hash, and without the next bit Python does not look at the source.
        assert struct.unpack_from("<I", cached.read_bytes(), 4)[0] == 1, source


def test_tracebacks_name_files_where_lambda_has_them(unpacked: Path):
    cached = unpacked / "tidegate" / "wiring" / "__pycache__" / "function.cpython-313.pyc"

    assert b"/var/task/tidegate/wiring/function.py" in cached.read_bytes()


def test_a_second_build_elsewhere_gives_the_same_bytes(built: Path, tmp_path):
    elsewhere = sources(tmp_path / "elsewhere")
    again = package(elsewhere)

    assert again != built
    assert again.read_bytes() == built.read_bytes()

    (elsewhere / "lambdas" / "more.py").write_text("x = 1\n")
    with zipfile.ZipFile(package(elsewhere)) as archive:
        assert {"lambdas/more.py", "lambdas/__pycache__/more.cpython-313.pyc"} <= {
            *archive.namelist()
        }


def test_lambda_s_user_may_read_every_file_and_none_tells_its_time_or_maker(built: Path):
    """Lambda's developer guide: the function runs as a user of its own, not as the zip's owner."""
    with zipfile.ZipFile(built) as archive:
        entries = archive.infolist()

    assert {(e.create_system, e.external_attr >> 16) for e in entries} == {(3, 0o100644)}
    assert {each.date_time for each in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert {each.compress_type for each in entries} == {zipfile.ZIP_DEFLATED}
    names = [each.filename for each in entries]
    assert names == sorted(set(names))


def test_a_build_without_a_change_costs_nothing(built: Path):
    written_at = built.stat().st_mtime_ns

    assert package(ROOT) == built
    assert built.stat().st_mtime_ns == written_at


def test_a_change_of_our_code_makes_another_package(tmp_path):
    root = sources(tmp_path / "changed")
    before = own_code_package(root)
    (root / "tidegate" / "wiring.py").write_text("x = 1\n")

    after = own_code_package(root)

    assert before.read_bytes() != after.read_bytes()


def test_functions_carry_what_they_need_of_ours_and_no_more(unpacked: Path):
    ours = {path.name for path in (unpacked / "tidegate").iterdir()}

    assert {"adapters", "core", "data", "service", "wire"} <= ours
    assert not {"agent", "cli", "sim"} & ours
    assert (unpacked / "tidegate" / "data" / "instance_types.csv").exists()
    assert {path.stem for path in (unpacked / "lambdas").glob("*.py")} >= {
        "planner",
        "interruption",
        "schedule",
        "reconcile",
    }


def test_every_service_that_the_adapters_call_has_its_model(unpacked: Path):
    """botocore and boto3 are plain Python, so that the package's own can be asked."""
    code = (
        "import boto3, botocore, sys\n"
        "assert botocore.__file__.startswith(sys.argv[1]), botocore.__file__\n"
        "for name in sys.argv[2:]:\n"
        "    boto3.client(name, region_name='us-east-1')\n"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-c", code, str(unpacked), *called_services()],
        capture_output=True,
        text=True,
        check=False,
        env={**kept, "PYTHONPATH": str(unpacked)},
    )

    assert done.returncode == 0, done.stderr


def called_services() -> set[str]:
    """The services whose clients those adapters have types for that the functions hold."""
    called = {
        line.split("mypy_boto3_")[1].split()[0].split(".")[0]
        for path in (ROOT / "tidegate" / "adapters").glob("*.py")
        if not str(path.relative_to(ROOT)).startswith(NOT_IN_FUNCTIONS)
        for line in path.read_text().splitlines()
        if "from mypy_boto3_" in line
    }
    assert called == set(SERVICES)
    return called


def test_handlers_have_all_they_import(unpacked: Path):
    """Imported with this computer's packages, since the package's are for another processor."""
    code = (
        "import sys\n"
        "import lambdas.planner, lambdas.interruption, lambdas.schedule, lambdas.reconcile\n"
        "files = [getattr(module, '__file__', None) or '' for module in sys.modules.values()]\n"
        "print(*{file.split('/site-packages/')[1].split('/')[0] for file in files\n"
        "    if '/site-packages/' in file})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )

    assert done.returncode == 0, done.stderr
    needed = {name.split(".")[0] for name in done.stdout.split() if not name.startswith("_")}
    assert "aws_lambda_powertools" in needed
    # botocore takes certifi's certificates where they are, and else its own.
    assert {name for name in needed - {"certifi"} if not is_in(unpacked, name)} == set()


def is_in(folder: Path, module: str) -> bool:
    return (folder / module).is_dir() or any(folder.glob(f"{module}.*"))


def test_package_holds_no_trace_of_where_it_was_made(unpacked: Path):
    names = {path.name for path in unpacked.rglob("*")}

    assert not {"INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "bin"} & names
    traces = [
        path
        for path in unpacked.rglob("*.pyc")
        if str(ROOT).encode() + b"/" in path.read_bytes() or b"making-" in path.read_bytes()
    ]
    assert traces == []


def test_package_is_small_enough_for_a_quick_start(built: Path, unpacked: Path):
    unzipped = sum(path.stat().st_size for path in unpacked.rglob("*") if path.is_file())

    assert built.stat().st_size < 15 * 1024 * 1024
    assert unzipped < 60 * 1024 * 1024 < LAMBDA_UNZIPPED_BYTES


def test_without_uv_the_way_out_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(BadConfig, match=r"uv is needed .* `make setup`"):
        package(sources(tmp_path / "bare"))


def test_no_adapter_is_carried_that_the_command_line_alone_imports(unpacked: Path):
    carried = {f"tidegate.adapters.{path.stem}" for path in unpacked.glob("tidegate/adapters/*.py")}
    left = {*ROOT.glob("lambdas/*.py"), *ROOT.glob("tidegate/agent/*.py")}
    reached = {"tidegate.adapters.__init__"}
    while left:
        found = {each for path in left for each in imported(path)} - reached
        names = [each.replace(".", "/") for each in found]
        left = {ROOT / f"{name}{end}" for name in names for end in (".py", "/__init__.py")}
        left = {path for path in left if path.exists()}
        reached |= found

    assert carried - reached == set()


def imported(path: Path) -> set[str]:
    """Modules of ours that this one imports, at its start or later."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return {each for each in names if each.startswith("tidegate.")}
