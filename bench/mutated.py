"""Runs tests with one module of the product changed: `python -m bench.mutated NAME TEXT TEST...`.

The module NAME is imported from the file TEXT; nothing in the repository is touched, so any
number of these run side by side.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import pytest


class _Loader(SourceFileLoader):
    text = ""

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = compile(self.text, self.path, "exec")
        return code


class _Finder(MetaPathFinder):
    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        loader = _Loader(fullname, spec.origin)
        loader.text = self.text
        spec.loader = loader
        return spec


def main() -> int:
    name, text, *tests = sys.argv[1:]
    sys.meta_path.insert(0, _Finder(name, Path(text).read_text()))
    return pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests])


if __name__ == "__main__":
    sys.exit(main())
