"""What a scan reads: tables, the rows joined to theirs, and conditions, rendered as SQL.

A column of a joined row is named with its join: ``transaction.compute_exit_code``. In SQL, ``t`` is
the scanned table, and joins have their own names.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import NamedTuple

import pyarrow as pa

from tonlake.lake.duck.body_table import Misfits
from tonlake.lake.duck.statement import quote, quote_name
from tonlake.lake.log.ranges import Range
from tonlake.lake.schema import (
    ACCOUNT_STATES,
    ACTION_RANGES,
    INTERFACES,
    MESSAGE_BODIES,
    MESSAGES,
    OFFCHAIN_METADATA,
    OPEN_EDGES,
    STATE_CELLS,
    SUPERSEDED_ACTIONS,
    TABLES,
    TRANSACTION_TRACES,
    TRANSACTIONS,
    Table,
)

HEIGHT = "mc_seqno"
"""The column with the masterchain block, in rows of several tables."""

HELD_HEIGHT = "height of the scan"
"""The first column of every statement: the masterchain block of a row, which is not returned."""

_UNSCANNED = (STATE_CELLS, OFFCHAIN_METADATA, OPEN_EDGES, SUPERSEDED_ACTIONS, ACTION_RANGES)
"""Not scannable: cells repeat, ranges and metadata have no block, the others have no history."""


class Join(NamedTuple):
    """A table of which at most one row, the last by ``newest``, is joined to each row of others.

    ``keys`` are pairs of an expression over the row and a column of the joined table. Rows are
    joined within the same blocks, or across all if ``everywhere``.
    """

    name: str
    table: Table
    keys: tuple[tuple[str, str], ...]
    newest: str | None = None
    everywhere: bool = False

    @property
    def source(self) -> str:
        """The table or view of the scan's database that has the rows."""
        return f"all {self.table.name}" if self.everywhere else self.table.name

    def render(self, columns: Sequence[str]) -> str:
        """Return the join in SQL, with only some columns of its table."""
        name, others = quote_name(self.name), [quote_name(other) for _own, other in self.keys]
        chosen = ", ".join(dict.fromkeys((*others, *map(quote_name, columns))))
        rows = f"{chosen} from {quote_name(self.source)}"
        if self.newest is not None:
            rows = f"distinct on ({', '.join(others)}) {rows} order by {self.newest} desc"
        matches = (f"{own} = {name}.{quote_name(other)}" for own, other in self.keys)
        return f"left join (select {rows}) as {name} on {' and '.join(matches)}"


@cache
def list_joins(table: Table) -> Mapping[str, Join]:
    """Return the joins available for a table, by name; each after the one that it depends on."""
    names = set(table.names)
    found: list[Join] = []
    tx_hash = "t.tx_hash" if "tx_hash" in names else "t.hash"
    is_of_transaction = "tx_hash" in names or table in (TRANSACTIONS, TRANSACTION_TRACES)
    if is_of_transaction and table != TRANSACTIONS:
        found.append(Join("transaction", TRANSACTIONS, ((tx_hash, "hash"),)))
    if is_of_transaction and table != TRANSACTION_TRACES:
        found.append(Join("trace", TRANSACTION_TRACES, ((tx_hash, "hash"),)))
    block = ("t.mc_seqno", "mc_seqno")
    if table == MESSAGES:
        of_body = ("t.body_hash", "body_hash"), ("(t.kind = 'ext_in')", "external_in"), block
        found.append(Join("body", MESSAGE_BODIES, of_body))
    start = "tx_" if table == MESSAGES else ""
    code_hash = "t.code_hash" if "code_hash" in names else ""
    if table != ACCOUNT_STATES and f"{start}account" in names and "mc_seqno" in names:
        pairs = ((f"t.{start}workchain", "workchain"), (f"t.{start}account", "account"))
        found.append(Join("state", ACCOUNT_STATES, (*pairs, block), newest="block_seqno"))
        code_hash = code_hash or "state.code_hash"
    if code_hash:
        of_code = ((code_hash, "code_hash"),)
        found.append(Join("interface", INTERFACES, of_code, newest="mc_seqno", everywhere=True))
    return {join.name: join for join in found}


class ScanFilter(NamedTuple):
    """A condition in SQL on a column, which may be one of a joined row."""

    column: str
    condition: str
    workchain: str | None = None
    """The column of workchains that the condition names, too."""


def locate(name: str) -> str:
    """Return the SQL name of a column of a table or of a join."""
    join, dot, column = name.partition(".")
    return f"{quote_name(join)}.{quote_name(column)}" if dot else f"t.{quote_name(name)}"


def match_values(column: str, values: pa.Array, *, is_list: bool = False) -> str:
    """Return the condition that a column has one of some values, or a list has such an item."""
    known = [_render_value(value) for value in values.to_pylist() if value is not None]
    name = locate(column)
    if is_list:
        return f"list_has_any({name}, [{', '.join(known)}])" if known else "false"
    parts = [f"{name} in ({', '.join(known)})"] if known else []
    parts += [f"{name} is null"] if values.null_count else []
    return f"({' or '.join(parts)})" if parts else "false"


def _render_value(value: object) -> str:
    """Return a value as an SQL literal."""
    if isinstance(value, bytes):
        return f"unhex('{value.hex()}')"
    if isinstance(value, Decimal):
        return f"'{value:f}'::decimal(38, 0)"
    return quote(value) if isinstance(value, str) else str(value).lower()


class ScannedTable(NamedTuple):
    """One table of a scan, in the database a ``view``: a row must pass all filters of a selection.

    Rows come in the order of the files of ``table``, or by ``order``.
    """

    name: str
    view: str
    table: Table
    known: pa.Schema
    """All columns, those of joined rows included."""
    schema: pa.Schema
    height: str
    selections: tuple[tuple[ScanFilter, ...], ...] = ()
    order: tuple[str, ...] = ()
    addresses: frozenset[str] = frozenset()
    """Columns whose texts are addresses."""
    misfits: Misfits | None = None
    """Counts the bodies that do not fit, if the table is that of a signature."""

    @property
    def joined(self) -> dict[Join, list[str]]:
        """The joins that columns and filters need, with the columns that they need."""
        if self.misfits is not None:  # the table of a signature
            return {}
        filters = [one for each in self.selections for one in each]
        needed = [*self.schema.names, *(one.column for one in filters)]
        needed += [one.workchain for one in filters if one.workchain is not None]
        joins = list_joins(self.table)
        if any(name.startswith("interface.") for name in needed):
            needed += [own for own, _ in joins["interface"].keys if own.startswith("state.")]
        columns: dict[Join, list[str]] = {}
        for name, join in joins.items():
            found = [each.partition(".")[2] for each in needed if each.startswith(f"{name}.")]
            if found:
                columns[join] = found
        return columns

    def render(self, span: Range, *, as_struct: bool) -> str:
        """Return the statement that reads the rows of some blocks, as columns or as one struct."""
        joined, height = self.joined, f"t.{quote_name(self.height)}"
        names = {name: locate(name) for name in self.schema.names}
        if as_struct:
            fields = ", ".join(f"{quote_name(name)} := {each}" for name, each in names.items())
            columns = f"struct_pack({fields}) as {quote_name(self.name)}"
        else:
            columns = ", ".join(f"{each} as {quote_name(name)}" for name, each in names.items())
        passing = " or ".join(
            "(" + " and ".join(one.condition for one in each) + ")" for each in self.selections
        )
        order = self.order or (self.table.sort if joined else ())
        parts = [
            f"select {height}::bigint as {quote_name(HELD_HEIGHT)}, {columns}",
            f"from {quote_name(self.view)} as t",
            *(join.render(needed) for join, needed in joined.items()),
            f"where {height} between {span[0]} and {span[1]}",
            f"and ({passing})" if passing else "",
            f"order by {', '.join(f't.{each}' for each in order)}" if order else "",
        ]
        return "\n".join(filter(None, parts))


def _list_columns(table: Table) -> pa.Schema:
    """Return the columns of a table and of the rows joined to its own."""
    joined = [
        field.with_name(f"{join.name}.{field.name}").with_nullable(True)  # noqa: FBT003 - pyarrow's
        for join in list_joins(table).values()
        for field in join.table.arrow
    ]
    return pa.schema([*table.arrow, *joined])


SCANNED: dict[str, ScannedTable] = {
    name: ScannedTable(name, name, table, _list_columns(table), table.arrow, table.height)
    for name, table in TABLES.items()
    if table not in _UNSCANNED
}
"""The tables that can be scanned, with all of their columns and rows, by name."""
