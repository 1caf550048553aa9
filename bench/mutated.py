"""Runs tests or `tidegate` with modules of the product changed.

They are imported from the texts that are given instead of their files. Nothing in the repository
is touched, so any number of these run side by side.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, ModuleType

import pytest

ROOT = Path(__file__).parents[1]


def run_tests(
    texts: Mapping[str, str], *tests: str, time_out_s: float
) -> subprocess.CompletedProcess[str]:
    """Whatever the tests say, until the first that fails. Errors: TimeoutExpired."""
    return _run(texts, "pytest", *tests, time_out_s=time_out_s)


def run_tidegate(
    texts: Mapping[str, str], *words: str, time_out_s: float
) -> subprocess.CompletedProcess[str]:
    """What the command `tidegate` says. Errors: TimeoutExpired."""
    return _run(texts, "tidegate", *words, time_out_s=time_out_s)


def _run(
    texts: Mapping[str, str], program: str, *words: str, time_out_s: float
) -> subprocess.CompletedProcess[str]:
    """`texts`: module -> what it holds instead."""
    with TemporaryDirectory() as folder:
        Path(folder, "texts.json").write_text(json.dumps(dict(texts)))
        return subprocess.run(
            [sys.executable, "-m", "bench.mutated", folder, program, *words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=time_out_s,
            check=False,
        )


class _Loader(SourceFileLoader):
    text = ""

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = compile(self.text, self.path, "exec")
        return code


class _Finder(MetaPathFinder):
    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.texts:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        loader = _Loader(fullname, spec.origin)
        loader.text = self.texts[fullname]
        spec.loader = loader
        return spec


def main() -> int:
    folder, program, *words = sys.argv[1:]
    sys.meta_path.insert(0, _Finder(json.loads(Path(folder, "texts.json").read_text())))
    if program == "pytest":
        bare = ("-x", "-q", "--no-header", "-p", "no:cacheprovider")
        return pytest.main([*bare, "--basetemp", f"{folder}/pytest", *words])
    from tidegate.cli.main import app  # now: the modules that it imports may be changed ones

    sys.argv = ["tidegate", *words]
    app()
    return 0


if __name__ == "__main__":
    sys.exit(main())
