"""Finds SQL text that is composed at run time before it is executed."""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

EXECUTING = frozenset({"execute", "executemany", "sql", "query", "from_query"})
COMPOSING = frozenset({"format", "format_map", "join", "replace"})
AUDITED = frozenset({"fill_statement", "join_scripts"})
"""Functions of ``tonlake.lake.duck.statement``, the only module that may compose SQL text."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_composed(source: str, root: Path) -> list[int]:
    """Return the lines of a module that execute composed text.

    Text is followed back through variables, attributes, loops, returned values and imports.

    Args:
        source: Text of the module.
        root: Folder of the packages that imports are followed into.
    """
    return sorted(_Module(ast.parse(source), root).find_composed())


@cache
def _open(path: Path, root: Path) -> _Module:
    return _Module(ast.parse(path.read_text()), root)


class _Module:
    def __init__(self, tree: ast.Module, root: Path) -> None:
        self._tree = tree
        self._root = root
        self._seen: set[tuple[int, tuple[int, ...]]] = set()

    def find_composed(self) -> Iterator[int]:
        for scopes, node in _walk(self._tree, (self._tree,)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in EXECUTING
                and any(self._is_composed(each, scopes) for each in _list_texts(node))
            ):
                yield node.lineno

    def _is_composed(self, node: ast.expr, scopes: tuple[ast.AST, ...]) -> bool:
        key = (id(node), tuple(map(id, scopes)))
        if key in self._seen:
            return False
        self._seen.add(key)
        try:
            return self._check(node, scopes)
        finally:
            self._seen.discard(key)

    def _check(self, node: ast.expr, scopes: tuple[ast.AST, ...]) -> bool:
        match node:
            case ast.JoinedStr():
                found = any(isinstance(part, ast.FormattedValue) for part in node.values)
            case ast.BinOp():
                found = isinstance(node.op, ast.Add | ast.Mod)
            case ast.Name():
                found = self._check_name(node.id, scopes)
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                found = self._any(_list_attribute(self._tree, node.attr))
            case ast.Call():
                found = self._check_call(node, scopes)
            case _:
                found = self._any((scopes, part) for part in _list_parts(node))
        return found

    def _any(self, places: Iterable[tuple[tuple[ast.AST, ...], ast.expr]]) -> bool:
        return any(self._is_composed(each, scopes) for scopes, each in places)

    def _check_call(self, node: ast.Call, scopes: tuple[ast.AST, ...]) -> bool:
        called = node.func
        if isinstance(called, ast.Name):
            if called.id in AUDITED:
                template = node.args[0] if called.id == "fill_statement" else None
                return template is not None and not isinstance(template, ast.Constant)
            return self._check_function(called.id)
        if isinstance(called, ast.Attribute):
            if isinstance(called.value, ast.Name) and called.value.id in {"self", "cls"}:
                return self._check_function(called.attr)
            return called.attr in COMPOSING or self._is_composed(called.value, scopes)
        return False

    def _check_name(self, name: str, scopes: tuple[ast.AST, ...]) -> bool:
        for at in range(len(scopes), 0, -1):
            values = list(_list_values(scopes[at - 1], name))
            if None in values:
                return True
            if values:
                return self._any((scopes[:at], each) for each in values if each is not None)
            if name in _list_parameters(scopes[at - 1]):
                return False
        module = self._import(name)
        return module is not None and module._check_name(name, (module._tree,))

    def _check_function(self, name: str) -> bool:
        found = [
            ((*scopes, node), each.value)
            for scopes, node in _walk(self._tree, (self._tree,))
            if isinstance(node, Function) and node.name == name
            for each in _list_own(node)
            if isinstance(each, ast.Return | ast.Yield) and each.value is not None
        ]
        if found:
            return self._any(found)
        module = self._import(name)
        return module is not None and module._check_function(name)

    def _import(self, name: str) -> _Module | None:
        """Return the project module that a name is imported from."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
                path = self._root.joinpath(*(node.module or "").split("."))
                for each in (path.with_suffix(".py"), path / "__init__.py"):
                    if each.is_file():
                        return _open(each, self._root)
        return None


def _list_parts(node: ast.expr) -> list[ast.expr]:
    """Return the expressions that an expression may evaluate to or contain."""
    match node:
        case ast.IfExp():
            return [node.body, node.orelse]
        case ast.BoolOp() | ast.Dict():
            return node.values
        case ast.Tuple() | ast.List():
            return node.elts
        case ast.NamedExpr() | ast.Await() | ast.Starred() | ast.Subscript():
            return [node.value]
    return []


def _list_texts(call: ast.Call) -> list[ast.expr]:
    named = [each.value for each in call.keywords if each.arg in {"query", "sql", "sqlQuery"}]
    return [*call.args[:1], *named]


def _walk(
    node: ast.AST, scopes: tuple[ast.AST, ...]
) -> Iterator[tuple[tuple[ast.AST, ...], ast.AST]]:
    """Yield every node with its enclosing functions, the module first."""
    for child in ast.iter_child_nodes(node):
        yield scopes, child
        inner = (*scopes, child) if isinstance(child, Function | ast.Lambda) else scopes
        yield from _walk(child, inner)


def _list_own(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope, without those of nested functions."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, Function | ast.Lambda):
            yield from _list_own(child)


def _list_parameters(scope: ast.AST) -> set[str]:
    if not isinstance(scope, Function | ast.Lambda):
        return set()
    return {node.arg for node in ast.walk(scope.args) if isinstance(node, ast.arg)}


def _list_values(scope: ast.AST, name: str) -> Iterator[ast.expr | None]:
    """Yield the values bound to a name in a scope; None where text is appended to it."""
    for node in _list_own(scope):
        match node:
            case ast.Assign():
                if any(_binds(target, name) for target in node.targets):
                    yield node.value
            case ast.AnnAssign(value=ast.expr()) | ast.NamedExpr():
                if _binds(node.target, name):
                    yield node.value
            case ast.AugAssign():
                if _binds(node.target, name):
                    yield None
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                if _binds(node.target, name):
                    yield node.iter


def _list_attribute(tree: ast.Module, name: str) -> Iterator[tuple[tuple[ast.AST, ...], ast.expr]]:
    """Yield the values bound to an attribute of any object or class in a module."""
    for scopes, node in _walk(tree, (tree,)):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Attribute) and target.attr == name:
                    yield scopes, node.value


def _binds(target: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target))
