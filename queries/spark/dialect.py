"""Translates DuckDB's SQL to Spark's with sqlglot, plus rules that sqlglot lacks (``rules.py``).

Parameters become literals of their declared types, so ``in (select unnest($hashes))`` becomes a
list of constants, which Spark pushes down into the scan of Parquet files. The macros of
``lake/duck/sql/query_macros.sql``, which Spark cannot create, are expanded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import sqlglot
from sqlglot import exp, transforms
from sqlglot.dialects.dialect import rename_func
from sqlglot.dialects.spark import Spark

from tonlake.lake.duck.connection import read_sql
from tonlake.queries.errors import QueryMalformed
from tonlake.queries.spark.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.queries.loader import Query


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
            body = _expand_all(statement.expression, macros)  # earlier macros only
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
    """Replace ``query_table('name')`` with the name; a parameter stays until it has a value."""
    called = node.this if isinstance(node, exp.Table) else None
    if not isinstance(called, exp.Anonymous) or called.name.lower() != "query_table":
        return node
    name = called.expressions[0]
    if not isinstance(name, exp.Literal):
        return node
    return exp.to_table(name.name, alias=node.args.get("alias"))


_TYPES = {
    "boolean": "boolean",
    "integer": "int",
    "bigint": "bigint",
    "text": "string",
    "blob": "binary",
}


class _Generator(Spark.Generator):  # type: ignore[misc]  # sqlglot is not type-checked
    """sqlglot's generator, with QUALIFY, which Spark has since version 4."""

    TRANSFORMS = {  # noqa: RUF012 - as sqlglot declares it
        **Spark.Generator.TRANSFORMS,
        exp.ArrayOverlaps: rename_func("ARRAYS_OVERLAP"),
        exp.Select: transforms.preprocess([transforms.unnest_to_explode]),
    }


def translate_query(query: Query, parameters: Mapping[str, object]) -> str:
    """Return a named query with its parameters as one statement for Spark.

    Raises:
        QueryMalformed: sqlglot cannot read the statement.
    """
    tree = expand_macros(_parse(query.name, query.sql))
    values = {
        name: _literal(parameters[name], item.type) for name, item in query.parameters.items()
    }
    return _write(tree.transform(lambda node: _bind(node, values)))


def translate_view(name: str, text: str) -> str:
    """Return the statement behind ``create view``, the first of the text's statements."""
    view = sqlglot.parse(text, read="duckdb")[0]
    if not isinstance(view, exp.Create) or view.expression is None:
        raise QueryMalformed(f"lake/duck/sql/{name}.sql: does not begin with a view")
    return _write(expand_macros(view.expression))


def list_tables(statement: str) -> set[str]:
    """Return the tables and views that a Spark statement reads."""
    tree = sqlglot.parse_one(statement, read="spark")
    own = {table.alias_or_name for table in tree.find_all(exp.CTE)}
    return {table.name for table in tree.find_all(exp.Table)} - own


def _parse(name: str, text: str) -> exp.Expression:
    try:
        return sqlglot.parse_one(text, read="duckdb")
    except sqlglot.ParseError as error:
        raise QueryMalformed(f"queries/{name}.sql: sqlglot cannot read it: {error}") from error


def _write(tree: exp.Expression) -> str:
    for rule in RULES:
        tree = tree.transform(rule)
    text: str = _Generator(dialect=Spark, pretty=True, comments=False).generate(tree)
    return text


def _bind(node: exp.Expression, values: Mapping[str, exp.Expression]) -> exp.Expression:
    if not isinstance(node, exp.Placeholder):
        return node
    value = values[node.name].copy()
    bare = isinstance(node.parent, exp.Limit | exp.Offset)
    return value.this if bare and isinstance(value, exp.Cast) else value


def _literal(value: object, kind: str) -> exp.Expression:
    """Return a value as a constant of a type of ``tonlake.queries.loader.TYPES``."""
    element = kind.removesuffix("[]")
    if element != kind and isinstance(value, Sequence):
        items = exp.Array(expressions=[_literal(item, element) for item in value])
        return exp.cast(items, f"array<{_TYPES[element]}>", dialect="spark")
    if isinstance(value, bytes):
        return exp.HexString(this=value.hex())
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int):
        return exp.cast(exp.Literal.number(value), _TYPES[element], dialect="spark")
    if isinstance(value, str):
        return exp.Literal.string(value)
    return exp.cast(exp.Null(), _TYPES[element], dialect="spark")
