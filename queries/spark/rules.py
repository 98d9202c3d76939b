"""Rewrites DuckDB constructs that sqlglot does not translate, as ordered rules over the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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
    while isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.ARRAY:
        node = node.this
    while isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.LIST:
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
