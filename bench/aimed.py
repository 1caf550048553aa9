"""Changes aimed at one place: in which function, what stands there, and what comes instead.

    never("core.offers.spend:used_up", "_ >= _.budget_usd")
    drop("service.apply:Applier._send", "_.send_orders(...)")
    becomes("core.passes.retire:expired", "_1 >= _2", "_1 >= _2 / 2")

A pattern is compared with the syntax tree; `_` is whatever expression stands there. It names no
variable, so that no renaming of one makes it stale: only attributes, and what its module defines
or imports. `_1` to `_9` are expressions that the new code may use, each the same wherever it
stands; `_0` in the new code is all that was found. `f(...)` is a call with any arguments,
`f(_, ...)` one with any after the first.
"""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bench.mutated import ROOT
from bench.mutations import Change, Text

_ANY = re.compile(r"_\d?")
_ALL = "_0"
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

type _Node = ast.stmt | ast.expr


class Stale(Exception):
    """The code has changed, and an aimed change finds its place no longer, or more than one."""


@dataclass(frozen=True, slots=True)
class Aimed:
    """In the function `where` ("module:Class.function") the one node that is like `old` becomes
    `new`. Where `new` is a statement the whole statement does.
    """

    where: str
    old: str
    new: str

    @property
    def module(self) -> str:
        return f"tidegate.{self.where.partition(':')[0]}"

    def change(self, source: str) -> Change:
        """Errors: Stale."""
        tree = _parsed(source)
        old, new = _pair(self.old, self.new)
        if strange := sorted(_named(old, new) - _known(tree)):
            raise Stale(f"{self}: its module has no {', '.join(strange)}, and no variable counts")
        found = [pair for node in _nodes(self._aimed_at(tree)) if (pair := _found(old, node))]
        if len(found) != 1:
            raise Stale(f"{self}: {len(found)} places are like that, not one")
        [(node, held)] = found
        if missing := sorted(_wildcards(new) - held.keys()):
            raise Stale(f"{self}: nothing was found as {', '.join(missing)}")
        filled = _Filled(held).visit(deepcopy(new))
        return Text(source).change(node, filled)

    def _aimed_at(self, tree: ast.AST) -> ast.AST:
        node = tree
        for name in self.where.partition(":")[2].split("."):
            inner = (each for each in ast.walk(node) if isinstance(each, _DEFINITIONS))
            found = next((each for each in inner if each.name == name and each is not node), None)
            if found is None:
                raise Stale(f"{self}: there is no {name}")
            node = found
        return node


def becomes(where: str, old: str, new: str) -> Aimed:
    return Aimed(where, old, new)


def never(where: str, condition: str) -> Aimed:
    return Aimed(where, condition, "False")


def always(where: str, condition: str) -> Aimed:
    return Aimed(where, condition, "True")


def drop(where: str, statement: str) -> Aimed:
    return Aimed(where, statement, "pass")


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong, in words, and the changes that make it so."""

    name: str
    aims: tuple[Aimed, ...]

    def texts(self) -> dict[str, str]:
        """The changed modules, by name. Errors: Stale."""
        changes: dict[str, list[Change]] = {}
        for each in self.aims:
            changes.setdefault(each.module, []).append(each.change(source_of(each.module)))
        return {module: _with(found, source_of(module)) for module, found in changes.items()}

    def diff(self) -> str:
        every = ((each, source_of(each.module)) for each in self.aims)
        return "\n".join(each.change(source).diff(source, each.module) for each, source in every)


def fault(name: str, *aims: Aimed) -> Fault:
    return Fault(name, aims)


def source_of(module: str) -> str:
    return Path(ROOT, f"{module.replace('.', '/')}.py").read_text()


def _with(changes: Iterable[Change], source: str) -> str:
    """The last first, so that none moves another's place."""
    for each in sorted(changes, key=lambda each: each.start, reverse=True):
        source = each.of(source)
    return source


@lru_cache(8)
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def _pair(old: str, new: str) -> tuple[_Node, _Node]:
    """Both statements, or both expressions."""
    [before], [after] = ast.parse(old).body, ast.parse(new).body
    if isinstance(before, ast.Expr) and isinstance(after, ast.Expr):
        return before.value, after.value
    return before, after


def _nodes(node: ast.AST) -> Iterator[_Node]:
    return (each for each in ast.walk(node) if isinstance(each, ast.stmt | ast.expr))


def _named(*nodes: ast.AST) -> set[str]:
    names = (each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name))
    return {name for name in names if not _ANY.fullmatch(name)}


def _wildcards(node: ast.AST) -> set[str]:
    names = (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
    return {name for name in names if _ANY.fullmatch(name)}


def _known(tree: ast.Module) -> set[str]:
    """What is no variable: what the module defines and imports, and Python's own."""
    found = set(vars(builtins))
    for node in tree.body:
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {each.asname or each.name for each in names}
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case _:
                pass
    return found


def _found(old: _Node, node: _Node) -> tuple[_Node, Mapping[str, _Node]] | None:
    held: dict[str, _Node] = {_ALL: node}
    return (node, held) if _is_like(old, node, held) else None


def _is_like(old: object, node: object, held: dict[str, _Node]) -> bool:
    match old:
        case ast.Name(id=name) if _ANY.fullmatch(name):
            return isinstance(node, ast.expr) and _is_held(name, node, held)
        case ast.Call(func=func, args=args, keywords=keywords) if _end(args) is not None:
            given = args[: _end(args)]
            return (
                isinstance(node, ast.Call)
                and _is_like(func, node.func, held)
                and _is_like(given, node.args[: len(given)], held)
                and all(any(_is_like(k, other, held) for other in node.keywords) for k in keywords)
            )
        case ast.AST():
            return type(old) is type(node) and all(
                _is_like(getattr(old, each), getattr(node, each), held) for each in old._fields
            )
        case list():
            return (
                isinstance(node, list)
                and len(old) == len(node)
                and all(_is_like(*pair, held) for pair in zip(old, node, strict=True))
            )
        case _:
            return type(old) is type(node) and old == node


def _end(args: list[ast.expr]) -> int | None:
    """Where `...` stands, after which a call may have any arguments; None: it does not."""
    dots = (n for n, each in enumerate(args) if ast.unparse(each) == "...")
    return next(dots, None)


def _is_held(name: str, node: ast.expr, held: dict[str, _Node]) -> bool:
    """Whether it is what the name stands for elsewhere; `_` is something else each time."""
    return name == "_" or ast.unparse(held.setdefault(name, node)) == ast.unparse(node)


class _Filled(ast.NodeTransformer):
    def __init__(self, held: Mapping[str, _Node]) -> None:
        self._held = held

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return deepcopy(self._held.get(node.id, node))
