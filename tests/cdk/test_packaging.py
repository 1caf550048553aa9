"""The package that Lambda runs. It is built here as for a deployment."""

import ast
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from cdk.packaging import SERVICES, own_code_package, package
from tests.cdk.made import ROOT, dev_file

AARCH64 = 183  # EM_AARCH64 of elf(5)
LAMBDA_UNZIPPED_BYTES = 250 * 1024 * 1024
SITE_PACKAGES = sysconfig.get_path("purelib")
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"  # a fresh machine's, which has no uv


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


def test_a_second_build_elsewhere_gives_the_same_bytes(built: Path, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", SYSTEM_PATH)
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
    before = own_code_package(ROOT)
    root = sources(tmp_path / "changed")
    add_to(root / "tidegate" / "cli" / "main.py", "x = 1\n")
    same = own_code_package(root)
    add_to(root / "tidegate" / "wiring" / "planner.py", "x = 1\n")

    after = own_code_package(root)

    assert same.read_bytes() == before.read_bytes()
    assert after.read_bytes() != before.read_bytes()


def add_to(file: Path, text: str) -> None:
    file.write_text(file.read_text() + text)


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


def test_every_service_that_the_functions_call_has_its_model(unpacked: Path):
    """botocore and boto3 are plain Python, so that the package's own can be asked."""
    code = (
        "import boto3, botocore, sys\n"
        "for each in (boto3, botocore):\n"
        "    assert each.__file__.startswith(sys.argv[1]), each.__file__\n"
        "for name in sys.argv[2:]:\n"
        "    boto3.client(name, region_name='us-east-1')\n"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-c", code, str(unpacked), *called_services(unpacked)],
        capture_output=True,
        text=True,
        check=False,
        env={**kept, "PYTHONPATH": str(unpacked)},
    )

    assert done.returncode == 0, done.stderr


def called_services(unpacked: Path) -> set[str]:
    """The services whose clients the functions are wired with."""
    wired = (path.read_text() for path in unpacked.glob("tidegate/wiring/*.py"))
    called = {name for text in wired for name in re.findall(r'\bclients\("([\w-]+)"\)', text)}
    assert called == set(SERVICES)
    return called


def test_handlers_have_all_they_import(unpacked: Path):
    """Imported with this computer's packages, since the package's are for another processor."""
    code = (
        "import sys\n"
        "import lambdas.planner, lambdas.interruption, lambdas.schedule, lambdas.reconcile\n"
        "print(*(getattr(each, '__file__', None) or '' for each in sys.modules.values()))\n"
    )
    files = said_by(unpacked, code).split()

    ours = [file for file in files if "/tidegate/" in file or "/lambdas/" in file]
    assert len(ours) > 50
    theirs = [file.removeprefix(SITE_PACKAGES) for file in files if file.startswith(SITE_PACKAGES)]
    powertools = [file[1:] for file in theirs if file.startswith("/aws_lambda_powertools/")]
    assert [file for file in powertools if not (unpacked / file).exists()] == []
    names = {file.split("/")[1].split(".")[0] for file in theirs}
    needed = {name for name in names if not name.startswith("_")}
    assert powertools
    assert "aws_lambda_powertools" in needed
    # botocore takes certifi's certificates where they are, and else its own.
    assert {name for name in needed - {"certifi"} if not is_in(unpacked, name)} == set()


def test_functions_have_the_tables_that_they_read(unpacked: Path):
    """Also those that few cluster files need: what a GPU is cut into."""
    file = dev_file()
    file["pools"]["a10g"] |= {
        "instance_types": ["p4d.24xlarge"],
        "gpu": {"mig": "1g.5gb"},
        "limits": {"gpus": "56"},
    }
    text = json.dumps({**file, "limits": {"gpus": "128", "nodes": "16", "usd_per_hour": "99"}})
    code = (
        "import sys\n"
        "from tidegate.wire.config import parse_deployed\n"
        "pools = parse_deployed(sys.argv[1], 'dev').cluster.pools\n"
        "print(*{each.gpus for pool in pools for each in pool.instance_types})\n"
    )

    assert "56" in said_by(unpacked, code, text).split()


def said_by(unpacked: Path, code: str, *arguments: str) -> str:
    """What Python prints that has of our code what is in the package, and no more."""
    own = unpacked.parent / f"{unpacked.name}-own"
    if not own.exists():
        for name in ("lambdas", "tidegate"):
            shutil.copytree(unpacked / name, own / name)
    done = subprocess.run(
        # -S: without the link to this checkout.
        [sys.executable, "-S", "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=own,
        env={"PYTHONPATH": f"{own}:{SITE_PACKAGES}", "PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr
    assert str(ROOT / "tidegate") not in done.stdout
    return done.stdout


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


def test_without_uv_the_way_out_is_named(tmp_path):
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    code = "from pathlib import Path\nfrom cdk.packaging import package\npackage(Path.cwd())"
    done = subprocess.run(
        [python, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=sources(tmp_path / "bare"),
        env={"PYTHONPATH": f"{ROOT}:{SITE_PACKAGES}", "PATH": str(tmp_path)},
    )

    assert re.search(r"BadConfig: uv is needed .* `make setup`", done.stderr), done.stderr


def test_functions_carry_the_modules_that_they_can_import_and_no_others(unpacked: Path):
    found = [*unpacked.glob("lambdas/*.py"), *unpacked.rglob("tidegate/**/*.py")]
    carried = {str(path.relative_to(unpacked)) for path in found}
    left, reached = {*ROOT.glob("lambdas/*.py")}, set[Path]()
    while left:
        reached |= left
        names = {each.replace(".", "/") for path in left for each in imported(path)}
        files = {ROOT / f"{name}{end}" for name in names for end in (".py", "/__init__.py")}
        left = {path for path in files if path.exists()} - reached

    packages = {str(path.relative_to(ROOT)) for path in ROOT.rglob("tidegate/**/__init__.py")}
    expected = {str(path.relative_to(ROOT)) for path in reached}
    assert carried - packages == expected - packages
    assert {str(Path(each).parent / "__init__.py") for each in carried} <= carried


def imported(path: Path) -> set[str]:
    """Modules of ours that this one imports, at its start or later."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return {each for each in names if each.startswith("tidegate.")}
