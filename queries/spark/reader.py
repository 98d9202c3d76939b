"""Runs named queries on one snapshot of a lake with Apache Spark.

DuckDB's SQL is translated to Spark's with sqlglot, plus rules that sqlglot lacks. Parameters become
literals of their declared types, so ``in (select unnest($hashes))`` becomes a list of constants,
which Spark pushes down into the scan of Parquet files. The macros of
``lake/duck/sql/query_macros.sql``, which Spark cannot create, are expanded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlglot
from sqlglot import exp, transforms
from sqlglot.dialects.dialect import rename_func
from sqlglot.dialects.spark import Spark

from tonlake.lake.duck.connection import VIEWED_TABLES, read_bases, read_sql
from tonlake.queries.errors import QueryMalformed, QueryUnknown
from tonlake.queries.loader import find_query, needs_duckdb
from tonlake.queries.parameter import bind_parameters

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from tonlake.lake.spark.tables import SparkLake


def _items(node: exp.Expression | None) -> list[exp.Expression] | None:
    """Return the elements of a constant array; several zipped arrays become tuples."""
    node = _bare(node)
    if isinstance(node, exp.Array):
        return list(node.expressions)
    if isinstance(node, exp.Anonymous) and node.name.lower() == "list_zip":
        return _zip(node.expressions)
    return None


def _zip(arrays: Sequence[exp.Expression]) -> list[exp.Expression] | None:
    lists = [_items(array) for array in arrays]
    if any(items is None for items in lists):
        return None
    rows = zip(*(items for items in lists if items is not None), strict=True)
    return [exp.Tuple(expressions=[item.copy() for item in row]) for row in rows]


def _bare(node: exp.Expression | None) -> exp.Expression | None:
    """Return the expression inside casts to lists."""
    kinds = exp.DataType.Type.ARRAY, exp.DataType.Type.LIST
    while isinstance(node, exp.Cast) and node.to.this in kinds:
        node = node.this
    return node


def _list_members(node: exp.Expression) -> exp.Expression:
    """Rewrite ``x in (select unnest(constants), ...)`` with a list of constants."""
    if not isinstance(node, exp.In) or not isinstance(node.args.get("query"), exp.Subquery):
        return node
    select = node.args["query"].this
    generators = select.expressions if isinstance(select, exp.Select) else []
    if not generators or select.args.get("from_") or select.args.get("from"):
        return node
    if not all(isinstance(item, exp.Explode) for item in generators):
        return node
    arrays = [item.this for item in generators]
    items = _items(arrays[0]) if len(arrays) == 1 else _zip(arrays)
    return node if items is None else _one_of(node.this, items)


def _one_of(value: exp.Expression, items: list[exp.Expression]) -> exp.Expression:
    if not items:
        return exp.false()
    found = exp.In(this=value.copy(), expressions=items)
    # Spark treats rows with NULL at the same position as equal; in SQL they are not.
    known = [
        part.copy().is_(exp.null()).not_()
        for part in (value.expressions if isinstance(value, exp.Tuple) else ())
    ]
    return exp.paren(exp.and_(found, *known), copy=False)


def _contain(node: exp.Expression) -> exp.Expression:
    """Rewrite ``list_contains(constants, x)`` with a list of constants."""
    if not isinstance(node, exp.ArrayContains):
        return node
    items = _items(node.this)
    value = node.expression
    if isinstance(value, exp.Anonymous) and value.name.lower() == "row":
        value = exp.Tuple(expressions=value.expressions)
    return node if items is None else _one_of(value, items)


def _measure(node: exp.Expression) -> exp.Expression:
    """Replace the length of a constant list with a number."""
    if not isinstance(node, exp.Length):
        return node
    items = _items(node.this)
    return node if items is None else exp.Literal.number(len(items))


def _find_position(node: exp.Expression) -> exp.Expression:
    """Translate ``list_position``, which is NULL, not 0, if the value is not found."""
    if not isinstance(node, exp.Anonymous) or node.name.lower() != "list_position":
        return node
    found = exp.Anonymous(this="ARRAY_POSITION", expressions=node.expressions)
    return exp.Nullif(this=found, expression=exp.Literal.number(0))


def _pass_over_nulls(node: exp.Expression) -> exp.Expression:
    """Make aggregates ignore NULL, as DuckDB's do."""
    if isinstance(node, exp.AnyValue) and not isinstance(node.parent, exp.IgnoreNulls):
        return exp.Anonymous(this="ANY_VALUE", expressions=[node.this, exp.true()])
    if isinstance(node, exp.Filter) and isinstance(node.this, exp.ArgMax | exp.ArgMin):
        known = node.this.this.copy().is_(exp.null()).not_()
        where = exp.Where(this=exp.and_(node.expression.this, known))
        return exp.Filter(this=node.this, expression=where)
    if isinstance(node, exp.ArgMax | exp.ArgMin) and not isinstance(node.parent, exp.Filter):
        known = node.this.copy().is_(exp.null()).not_()
        return exp.Filter(this=node.copy(), expression=exp.Where(this=known))
    return node


def _unwrap_constants(node: exp.Expression) -> exp.Expression:
    """Remove parentheses around a boolean: Spark parses ``where (false)`` as an alias."""
    inner = node.unnest() if isinstance(node, exp.Paren) else None
    return inner if isinstance(inner, exp.Boolean) else node


def _rank(node: exp.Expression) -> exp.Expression:
    """Rewrite DISTINCT ON without an order, and ASOF JOIN with ``>=``, as conditions on ranks."""
    if not isinstance(node, exp.Select):
        return node
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        keys = ", ".join(key.sql("duckdb") for key in distinct.args["on"].expressions)
        node.set("distinct", None)
        return _qualify(node, f"row_number() over (partition by {keys} order by {keys})")
    for join in node.args.get("joins") or ():
        if join.method == "ASOF":
            on = join.args["on"]
            later, earlier = on.this.sql("duckdb"), on.expression.sql("duckdb")
            join.set("method", None)
            return _qualify(node, f"rank() over (partition by {later} order by {earlier} desc)")
    return node


def _qualify(select: exp.Expression, rank: str) -> exp.Expression:
    first = exp.EQ(this=sqlglot.parse_one(rank, read="duckdb"), expression=exp.Literal.number(1))
    select.set("qualify", exp.Qualify(this=first))
    return select


RULES: tuple[Callable[[exp.Expression], exp.Expression], ...] = (
    _list_members,
    _contain,
    _measure,
    _find_position,
    _pass_over_nulls,
    _unwrap_constants,
    _rank,
)


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


class SparkReader:
    """Runs the queries of ``queries/`` over one lake with Spark."""

    def __init__(self, lake: SparkLake) -> None:
        self._lake = lake
        self._views: set[str] = set()

    def ask(self, name: str, **parameters: object) -> DataFrame:
        """Return the result of a query as a data frame; errors as ``translate``'s."""
        statement = translate(name, **parameters)
        for view in list_tables(statement):
            self._add_view(view)
        return self._lake.session.sql(statement)

    def table(self, name: str, **parameters: object) -> pa.Table:
        """Run a query and collect the result as an Arrow table."""
        return self.ask(name, **parameters).toArrow()

    def rows(self, name: str, **parameters: object) -> list[dict[str, Any]]:
        """Run a query and return a dict per row, like ``Reader.rows``."""
        found: list[dict[str, Any]] = self.table(name, **parameters).to_pylist()
        return found

    def _add_view(self, name: str) -> None:
        if name in self._views:
            return
        self._views.add(name)
        if name in VIEWED_TABLES:
            frame = self._lake.read(VIEWED_TABLES[name].name)
        else:
            for base in read_bases(name):
                self._add_view(base)
            statement = translate_view(name, read_sql(name))
            frame = self._lake.session.sql(statement)
        frame.createOrReplaceTempView(name)


def translate(name: str, **parameters: object) -> str:
    """Return a named query in Spark's SQL.

    Raises QueryUnknown, ParameterMismatch; QueryMalformed: sqlglot cannot read it.
    """
    query = find_query(name)
    if needs_duckdb(query):
        raise QueryUnknown(f"{name} needs functions of DuckDB: run it with tonlake query")
    tree, bound = expand_macros(_parse(name, query.sql)), bind_parameters(query, parameters)
    values = {key: _literal(bound[key], item.type) for key, item in query.parameters.items()}
    return _write(tree.transform(lambda node: _bind(node, values)))
