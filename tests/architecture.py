"""The rules of docs and style that a machine can check; each yields what breaks it.

A rule takes the repository's folder, so that `test_architecture.py` can also show it a folder
with a deliberate mistake.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PRODUCT = ("tidegate", "lambdas", "cdk", "userdata", "local")

BELOW_WIRING = ("tidegate.adapters", "tidegate.wire", "tidegate.service", "tidegate.ports")
CORE = "tidegate.core"
ENTRY = ("tidegate.wiring", *BELOW_WIRING, CORE)

# Who may import what of ours; everybody may import themselves.
ARROWS: dict[str, tuple[str, ...]] = {
    "tidegate.core": (),
    "tidegate.ports": (CORE,),
    "tidegate.service": ("tidegate.ports", CORE),
    "tidegate.wire": ("tidegate.ports", CORE),
    "tidegate.adapters": ("tidegate.wire", "tidegate.ports", CORE),
    "tidegate.wiring": (*BELOW_WIRING, CORE),
    "tidegate.agent": ENTRY,
    # `image plan` bakes what a boot would do.
    "tidegate.cli": (*ENTRY, "tidegate.sim", "userdata"),
    # The simulator runs the real agent, under the real calendar.
    "tidegate.sim": (
        "tidegate.agent",
        "tidegate.service",
        "tidegate.wire.calendar",
        "tidegate.wire.finite",
        "tidegate.ports",
        CORE,
    ),
    "lambdas": ENTRY,
    # More than the cluster file: see docs/decisions.md.
    "cdk": ("tidegate.wire", CORE, "userdata"),
    "userdata": (),
    "local": ("tidegate", "lambdas", "cdk", "userdata"),
    "bench": PRODUCT,
}

# The rooms of `core`, from the ground up: each imports from itself and from those below it.
# `planner` is one file above the passes, and what explains stands above the planner.
ROOMS = (
    *("model", "demand", "offers", "interruption", "fleet", "buy", "passes", "planner"),
    "explain",
)

# All of the standard library that `core` needs: none of it can look at the world.
PURE = frozenset(
    {
        *("abc", "bisect", "collections", "copy", "dataclasses", "datetime", "decimal", "enum"),
        *("fractions", "functools", "hashlib", "heapq", "html", "itertools", "json", "math"),
        *("operator", "re", "statistics", "string", "textwrap", "types", "typing"),
    }
)
# Where messages, files and records of others are read.
READERS = ("wire", "adapters", "agent", "cli", "sim/replay", "sim/advise")
IMPURE_CALLS = frozenset({"now", "utcnow", "today", "open", "print", "input"})
# As methods these are the names of our own; without `pathlib` nothing else has them.
BUILTINS = frozenset({"open", "print", "input"})

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
# What a pass reads and writes stands in its signature. No object is given to all of them.
MAX_PASS_PARAMETERS = 6

type Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_files(root: Path, *folders: str) -> Iterator[Path]:
    for folder in folders or (*PRODUCT, "tests", "bench"):
        yield from sorted((root / folder).rglob("*.py"))


def import_directions(root: Path) -> Iterator[str]:
    """Imports follow the arrows of the architecture; tests may import everything, nobody them."""
    for file in python_files(root, *PRODUCT, "bench"):
        importer = _module(root, file)
        part = _part(importer)
        for line, imported in _imports(root, file):
            if not _is_under(imported, (*PRODUCT, "bench", "tests")):
                continue
            if not _is_under(imported, (part, *ARROWS.get(part, ()))):
                yield f"{importer}:{line} imports {imported}; {part} may not"


def rooms_of_core(root: Path) -> Iterator[str]:
    """Every module of `core` stands in a room, and knows only rooms below its own."""
    for file in python_files(root, "tidegate/core"):
        importer = _module(root, file)
        room = _room(importer)
        if room and room not in ROOMS:
            yield f"{importer} stands in no room of {', '.join(ROOMS)}"
        for line, imported in _imports(root, file):
            other = _room(imported)
            if {room, other} <= {*ROOMS} and ROOMS.index(other) > ROOMS.index(room):
                yield f"{importer}:{line} imports {imported}; {room} stands below {other}"


def _room(module: str) -> str:
    """`fleet` for `tidegate.core.fleet.judge`; "" for what is not below `tidegate.core`."""
    return module.removeprefix(f"{CORE}.").split(".")[0] if module.startswith(f"{CORE}.") else ""


def one_class_for_a_word(root: Path) -> Iterator[str]:
    """No two public classes of `core` share a name: a word means one thing there."""
    homes: dict[str, str] = {}
    for file in python_files(root, "tidegate/core"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                home = homes.setdefault(node.name, _module(root, file))
                if home != _module(root, file):
                    yield f"{_module(root, file)}:{node.lineno} {node.name} is one of {home} too"


def purity_of_core(root: Path) -> Iterator[str]:
    """`core` takes from the standard library only what cannot look at the world."""
    for file in python_files(root, "tidegate/core"):
        for line, imported in _imports(root, file):
            top = imported.split(".")[0]
            if top not in PURE and top not in PRODUCT:
                yield f"{_module(root, file)}:{line} imports {imported}, which is not pure"
        for node in _walk(file):
            if not isinstance(node, ast.Call) or _called(node) not in IMPURE_CALLS:
                continue
            if isinstance(node.func, ast.Name) or _called(node) not in BUILTINS:
                yield f"{_module(root, file)}:{node.lineno} calls {_called(node)}()"


def aws_only_in_adapters(root: Path) -> Iterator[str]:
    """Only adapters talk to AWS, and the local cloud that stands in for it."""
    for file in python_files(root, *PRODUCT):
        module = _module(root, file)
        if _is_under(module, ("tidegate.adapters", "local")):
            continue
        for line, imported in _imports(root, file):
            if _is_under(imported, ("boto3", "botocore")):
                yield f"{module}:{line} imports {imported}"


def clients_in_one_file(root: Path) -> Iterator[str]:
    """The product's sessions and clients are boto3's, made in `adapters/clients.py`."""
    for file in python_files(root, "tidegate", "lambdas", "cdk"):
        module = _module(root, file)
        for line, imported in _imports(root, file):
            if _is_under(imported, ("botocore.session",)):
                yield f"{module}:{line} imports {imported}; boto3 makes our sessions"
            if _is_under(imported, ("boto3",)) and module != "tidegate.adapters.clients":
                yield f"{module}:{line} imports {imported}; use adapters.clients.client"


def error_codes_in_one_file(root: Path) -> Iterator[str]:
    """AWS error codes are read from a response in `adapters/aws_errors.py` and nowhere else."""
    for file in python_files(root, *PRODUCT):
        module = _module(root, file)
        if _is_under(module, ("tidegate.adapters.aws_errors", "local")):
            continue
        for node in _walk(file, ".response"):
            match node:
                case ast.Subscript(
                    value=ast.Attribute(attr="response"), slice=ast.Constant(value="Error")
                ):
                    yield f"{module}:{node.lineno} reads an AWS error code"


def finite_numbers(root: Path) -> Iterator[str]:
    """What comes from outside is read by `wire/finite.py`, which knows no NaN and no infinity."""
    for file in python_files(root, *(f"tidegate/{each}" for each in READERS)):
        module = _module(root, file)
        for node in _walk(file) if module != "tidegate.wire.finite" else ():
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="json"), attr="loads")):
                    yield f"{module}:{node.lineno} calls json.loads(); use parse_json()"
                case ast.ClassDef() if any(_is_named(base, "BaseModel") for base in node.bases):
                    if not any(_is_named(each, "FINITE") for each in ast.walk(node)):
                        yield f"{module}:{node.lineno} {node.name} does not take FINITE"


def _is_named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def sizes(root: Path) -> Iterator[str]:
    """No file over 400 lines, no function over 60."""
    for file in python_files(root):
        lines = len(file.read_text().splitlines())
        if lines > MAX_FILE_LINES:
            yield f"{file.relative_to(root)} has {lines} lines, at most {MAX_FILE_LINES}"
        for function in _functions(file):
            lines = (function.end_lineno or function.lineno) - function.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                place = f"{file.relative_to(root)}:{function.lineno} {function.name}"
                yield f"{place} has {lines} lines, at most {MAX_FUNCTION_LINES}"


def parameters_of_passes(root: Path) -> Iterator[str]:
    """A pass names the few things that it needs, and uses each of them."""
    for file in python_files(root, "tidegate/core/passes"):
        for function in _functions(file):
            arguments = (*function.args.args, *function.args.kwonlyargs)
            names = [each.arg for each in arguments if each.arg != "self"]
            place = f"{file.relative_to(root)}:{function.lineno} {function.name}"
            if len(names) > MAX_PASS_PARAMETERS:
                yield f"{place} has {len(names)} parameters, at most {MAX_PASS_PARAMETERS}"
            used = {each.id for each in ast.walk(function) if isinstance(each, ast.Name)}
            for name in names:
                if name not in used:
                    yield f"{place} does not use {name}"


def annotations(root: Path) -> Iterator[str]:
    """Every function of the product says what it takes and gives."""
    for file in python_files(root, *PRODUCT):
        for function in _functions(file):
            arguments = [
                *function.args.posonlyargs,
                *function.args.args,
                *function.args.kwonlyargs,
                *filter(None, (function.args.vararg, function.args.kwarg)),
            ]
            bare = [each.arg for each in arguments if each.annotation is None]
            missing = [name for name in bare if name not in ("self", "cls")]
            missing += [] if function.returns else ["return"]
            if missing:
                place = f"{file.relative_to(root)}:{function.lineno} {function.name}"
                yield f"{place} lacks annotations: {', '.join(missing)}"


def no_patching(root: Path) -> Iterator[str]:
    """Tests replace our parts by arguments, never by patching modules."""
    for file in python_files(root, "tests"):
        place = file.relative_to(root)
        for line, imported in _imports(root, file):
            if _is_under(imported, ("unittest.mock", "mock", "pytest_mock")):
                yield f"{place}:{line} imports {imported}"
        ours = _names_of_ours(file)
        for node in _walk(file, "monkeypatch"):
            if isinstance(node, ast.Call) and _patches_ours(node, ours):
                yield f"{place}:{node.lineno} patches our own code"


def _patches_ours(call: ast.Call, ours: set[str]) -> bool:
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="monkeypatch"), attr="setattr" | "delattr")
        ):
            target = call.args[0] if call.args else None
        case _:
            return False
    if isinstance(target, ast.Constant):
        return _is_under(str(target.value), PRODUCT)
    while isinstance(target, ast.Attribute):
        target = target.value
    return isinstance(target, ast.Name) and target.id in ours


def _names_of_ours(file: Path) -> set[str]:
    """The names that a file's imports bind to something of ours."""
    names: set[str] = set()
    for node in _walk(file, "monkeypatch"):
        if isinstance(node, ast.ImportFrom) and _is_under(node.module or "", PRODUCT):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            ours = [alias for alias in node.names if _is_under(alias.name, PRODUCT)]
            names |= {alias.asname or alias.name.split(".")[0] for alias in ours}
    return names


def _walk(file: Path, word: str = "") -> Iterator[ast.AST]:
    """All that stands in a file; nothing of one that does not even hold this word."""
    text = file.read_text()
    return ast.walk(ast.parse(text, str(file))) if word in text else iter(())


def _functions(file: Path) -> Iterator[Function]:
    for node in _walk(file):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _called(call: ast.Call) -> str:
    """`now` for `datetime.now()`, `print` for `print()`."""
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _imports(root: Path, file: Path) -> tuple[tuple[int, str], ...]:
    """Line and full name of everything that a file imports, wherever it stands in it."""
    package = _module(root, file).split(".")
    package = package if file.name == "__init__.py" else package[:-1]
    return _imports_of(file.read_text(), ".".join(package))


# Half of the rules ask for those of all files.
@cache
def _imports_of(text: str, package: str) -> tuple[tuple[int, str], ...]:
    return tuple(_found_imports(text, [each for each in package.split(".") if each]))


def _found_imports(text: str, package: list[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                yield node.lineno, f"{source}.{alias.name}"


def imported_modules(root: Path, *folders: str) -> set[str]:
    """Full names of all that the files of these folders import."""
    files = python_files(root, *folders)
    return {imported for file in files for _, imported in _imports(root, file)}


def _module(root: Path, file: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _part(module: str) -> str:
    return next((part for part in ARROWS if _is_under(module, (part,))), module)


def _is_under(module: str, parents: tuple[str, ...]) -> bool:
    return any(module == parent or module.startswith(f"{parent}.") for parent in parents)
