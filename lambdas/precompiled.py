"""The methods of dataclasses, compiled once for the package and not at each cold start.

Python's `dataclasses` writes the methods of a class as text and compiles that with `exec`, for
each class and in each process: a quarter of a cold start here. The package holds what comes
of these texts, as it holds the bytecode of modules. A text that it does not know is compiled as
ever, so that nothing but the time can differ.
"""

import dataclasses
import marshal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import CodeType

# Bytecode is of one version of Python, whose tag its file carries like those in __pycache__.
FILE = f"dataclasses.{sys.implementation.cache_tag}.marshal"

# The last version that does not depend on how often a value is referred to: the same classes
# give the same bytes.
MARSHAL_VERSION = 2


def reuse() -> None:
    """Take compiled methods from the package, where it has them."""
    try:
        known: dict[str, bytes] = marshal.loads(Path(__file__).with_name(FILE).read_bytes())
    except FileNotFoundError:
        return
    _instead_of_exec(lambda text: marshal.loads(known[text]) if text in known else text)


def store() -> None:
    """Import every function of this package and write the compiled methods beside them."""
    folder = Path(__file__).parent
    known: dict[str, bytes] = {}

    def compiled(text: str) -> CodeType:
        code = compile(text, "<string>", "exec", dont_inherit=True)
        known[text] = marshal.dumps(code, MARSHAL_VERSION)
        return code

    _instead_of_exec(compiled)
    for module in sorted(folder.glob("*.py")):
        import_module(f"{__package__}.{module.stem}")
    (folder / FILE).write_bytes(marshal.dumps(dict(sorted(known.items())), MARSHAL_VERSION))


def _instead_of_exec(find: Callable[[str], str | CodeType]) -> None:
    """Only for the module `dataclasses`: its own names go before the built-in ones."""

    def run(text: str, *scopes: dict[str, object]) -> None:
        exec(find(text), *scopes)

    vars(dataclasses)["exec"] = run
