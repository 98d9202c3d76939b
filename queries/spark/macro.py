"""Expands the macros of ``lake/duck/sql/query_macros.sql``, which Spark cannot create."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import sqlglot
from sqlglot import exp

from tonlake.lake.duck.connection import read_sql

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class _Macro(NamedTuple):
    parameters: tuple[str, ...]
    body: exp.Expression


def expand_macros(tree: exp.Expression) -> exp.Expression:
    """Return the statement with every call of a macro replaced by the macro's body."""
    return _expand_all(tree, _load_macros())


@cache
def _load_macros() -> Mapping[str, _Macro]:
    macros: dict[str, _Macro] = {}
    for statement in sqlglot.parse(read_sql("query_macros"), read="duckdb"):
        if isinstance(statement, exp.Create):
            parameters = tuple(parameter.name for parameter in statement.this.expressions)
            body = _expand_all(statement.expression, macros)  # those above it
            macros[statement.this.this.name] = _Macro(parameters, body)
    return macros


def _expand_all(tree: exp.Expression, macros: Mapping[str, _Macro]) -> exp.Expression:
    def expand(node: exp.Expression) -> exp.Expression:
        called = node.this if isinstance(node, exp.Table) else node
        if not isinstance(called, exp.Anonymous) or called.name.lower() not in macros:
            return node
        arguments = [_expand_all(argument, macros) for argument in called.expressions]
        body = _substitute(macros[called.name.lower()], arguments)
        if called is node:
            return exp.paren(body, copy=False)
        return exp.Subquery(this=body.transform(_name_relation), alias=node.args.get("alias"))

    return tree.transform(expand)


def _substitute(macro: _Macro, arguments: Sequence[exp.Expression]) -> exp.Expression:
    """Return the body with arguments in place of parameters."""
    values = dict(zip(macro.parameters, arguments, strict=True))

    def replace(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Column) or node.table or node.name not in values:
            return node
        return values[node.name].copy()

    return macro.body.transform(replace)


def _name_relation(node: exp.Expression) -> exp.Expression:
    """Replace ``query_table('name')`` by the name; a parameter stays until it has a value."""
    called = node.this if isinstance(node, exp.Table) else None
    if not isinstance(called, exp.Anonymous) or called.name.lower() != "query_table":
        return node
    name = called.expressions[0]
    return exp.to_table(name.name) if isinstance(name, exp.Literal) else node
