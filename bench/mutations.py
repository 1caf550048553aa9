"""Small changes of a module, found in its syntax tree: each is a fault that a test should see.

A change replaces one node's text, so that its diff is one or two lines and no renaming of a
variable makes it stale. Not changed: annotations, docstrings, assertions, and what only types need.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from itertools import accumulate

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SKIPPED = (ast.Assert, ast.Import, ast.ImportFrom, ast.TypeAlias)


@dataclass(frozen=True, slots=True)
class Change:
    """`new` instead of the bytes from `start` to `end` of the module's text."""

    start: int
    end: int
    new: str

    def of(self, source: str) -> str:
        text = source.encode()
        return (text[: self.start] + self.new.encode() + text[self.end :]).decode()

    def diff(self, source: str, name: str) -> str:
        lines = unified_diff(
            source.splitlines(), self.of(source).splitlines(), name, name, "", "", 1, lineterm=""
        )
        return "\n".join(lines)


class Text:
    """A module's text, in which one node becomes another."""

    def __init__(self, source: str) -> None:
        lengths = (len(line.encode()) for line in source.splitlines(keepends=True))
        self._starts = [0, *accumulate(lengths)]

    def change(self, node: ast.stmt | ast.expr, new: ast.stmt | ast.expr) -> Change:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        text = ast.unparse(new)
        is_bare = isinstance(new, ast.stmt | ast.Constant | ast.Name | ast.Tuple)
        return Change(
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
            text if is_bare else f"({text})",
        )


def changes(source: str) -> list[Change]:
    """All of a module, in the order of its text; each of them can be compiled."""
    text = Text(source)
    found = {text.change(*each) for each in _pairs(ast.parse(source))}
    return sorted(found, key=lambda each: (each.start, each.end, each.new))


type _Pair = tuple[ast.stmt | ast.expr, ast.stmt | ast.expr]


def _pairs(node: ast.AST) -> Iterator[_Pair]:
    """Each node that may be another one, and what it becomes."""
    if isinstance(node, _SKIPPED) or _is_for_types(node):
        return
    if isinstance(node, ast.stmt):
        yield from _of_statement(node)
    elif isinstance(node, ast.expr):
        yield from _of_expression(node)
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _is_docstring(child):
                    yield from _pairs(child)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _of_statement(node: ast.stmt) -> Iterator[_Pair]:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))):
            pass
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield node, ast.Pass()
        case ast.If(test=test):
            yield test, _not(test)
        case _:
            pass


def _of_expression(node: ast.expr) -> Iterator[_Pair]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=right):
            yield node, ast.Compare(left, [_COMPARED[type(op)]()], right)
        case ast.BoolOp(op=op, values=values):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield node, ast.BoolOp(other, values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, operand
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMPUTED:
            yield node, ast.BinOp(left, _COMPUTED[type(op)](), right)
        case ast.IfExp(test=test):
            yield test, _not(test)
        case ast.Constant(value=bool(value)):
            yield node, ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield node, ast.Constant(value + 1)
        case ast.Call(func=ast.Name(id=name) as called) if name in _CALLED:
            yield called, ast.Name(_CALLED[name])
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            for each in (one for loop in node.generators for one in loop.ifs):
                yield each, ast.Constant(True)
        case _:
            pass


def _not(test: ast.expr) -> ast.expr:
    return test.operand if isinstance(test, ast.UnaryOp) else ast.UnaryOp(ast.Not(), test)
