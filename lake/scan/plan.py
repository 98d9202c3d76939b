"""Plans a scan: a table, filters, columns of it and of the rows joined to it.

A column of a joined row is named with its join: ``transaction.compute_exit_code``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.schema import (
    ACCOUNT_STATES,
    MESSAGE_BODIES,
    MESSAGES,
    OFFCHAIN_METADATA,
    OPEN_EDGES,
    STATE_CELLS,
    TABLES,
    TRANSACTION_TRACES,
    TRANSACTIONS,
    Table,
)
from tonlake.lake.schema.action import SUPERSEDED_ACTIONS
from tonlake.lake.schema.contract import INTERFACES

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEIGHTS = ("mc_seqno", "mc_seqno_end")
_UNSCANNED = {table.name for table in (STATE_CELLS, OFFCHAIN_METADATA, OPEN_EDGES)} | {
    SUPERSEDED_ACTIONS.name
}
"""Not scannable: cells repeat across files, metadata has no block, the others have no history."""


def name_height(table: Table) -> str | None:
    """Return the column with the masterchain block of a row; None if there is none."""
    return next((name for name in _HEIGHTS if name in table.names), None)


SCANNED: dict[str, Table] = {
    name: table
    for name, table in TABLES.items()
    if name not in _UNSCANNED and name_height(table) is not None
}
"""The tables that can be scanned, by name."""


class Among(NamedTuple):
    """A filter: a column has one of some values, or a list has such an item."""

    column: str
    values: pa.Array

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return (self.column,)

    def mask(self, rows: pa.Table) -> pa.ChunkedArray:
        """Return for each row whether it passes, never NULL."""
        column = rows[self.column]
        if not pa.types.is_list(column.type):
            return pc.is_in(column, value_set=self.values)
        column = column.combine_chunks()
        found = pc.is_in(pc.list_flatten(column), value_set=self.values)
        parents = pc.filter(pc.list_parent_indices(column), found)
        numbers = pa.array(range(rows.num_rows), parents.type)
        return pc.is_in(numbers, value_set=parents)


class AmongAccounts(NamedTuple):
    """A filter: two columns, workchain and account id, name one of some accounts."""

    workchain: str
    column: str
    accounts: Mapping[int, pa.Array]
    """Account ids by workchain."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return (self.workchain, self.column)

    def mask(self, rows: pa.Table) -> pa.ChunkedArray:
        """Return for each row whether it passes, never NULL."""
        masks = [
            pc.and_(
                pc.is_in(rows[self.workchain], value_set=pa.array([workchain], pa.int32())),
                pc.is_in(rows[self.column], value_set=ids),
            )
            for workchain, ids in self.accounts.items()
        ]
        return join_masks(masks, every=False)


Filter = Among | AmongAccounts
Selections = Sequence[Sequence[Filter]]
"""A row is selected if it passes all filters of one selection; without selections every row is."""


def join_masks(masks: list[pa.ChunkedArray], *, every: bool) -> pa.ChunkedArray:
    """Combine masks with AND if ``every``, else with OR."""
    joined = masks[0]
    for mask in masks[1:]:
        joined = pc.and_(joined, mask) if every else pc.or_(joined, mask)
    return joined


class Join(NamedTuple):
    """A table whose rows are joined to those of others, at most one to each.

    ``keys`` are pairs of an own column and a column of the joined table. Rows are joined within a
    masterchain block, or across all blocks if ``everywhere``. Of several matches, the last by
    the column ``order`` is joined.
    """

    name: str
    table: Table
    keys: tuple[tuple[str, str], ...]
    order: str = "mc_seqno"
    everywhere: bool = False

    def list_columns(self, columns: tuple[str, ...]) -> list[str]:
        """Return the columns to read for ``columns``, with keys and order."""
        keys = (other for _own, other in self.keys)
        return list(dict.fromkeys((*keys, *columns, self.order)))


EXTERNAL_IN = "external_in"
"""A computed key: whether a message's ``kind`` is ``ext_in``."""


@cache
def list_joins(table: Table) -> Mapping[str, Join]:
    """Return the joins available for a table, by name."""
    names = set(table.names)
    found: list[Join] = []
    tx_hash = "tx_hash" if "tx_hash" in names else "hash"
    is_of_transaction = "tx_hash" in names or table in (TRANSACTIONS, TRANSACTION_TRACES)
    if is_of_transaction and table != TRANSACTIONS:
        found.append(Join("transaction", TRANSACTIONS, ((tx_hash, "hash"),)))
    if is_of_transaction and table != TRANSACTION_TRACES:
        found.append(Join("trace", TRANSACTION_TRACES, ((tx_hash, "hash"),)))
    if table == MESSAGES:
        keys = (("body_hash", "body_hash"), (EXTERNAL_IN, EXTERNAL_IN), ("mc_seqno", "mc_seqno"))
        found.append(Join("body", MESSAGE_BODIES, keys))
    start = "tx_" if table == MESSAGES else ""
    code_hash = "code_hash"
    if table != ACCOUNT_STATES and f"{start}account" in names and "mc_seqno" in names:
        pairs = ((f"{start}workchain", "workchain"), (f"{start}account", "account"))
        keys = (*pairs, ("mc_seqno", "mc_seqno"))
        found.append(Join("state", ACCOUNT_STATES, keys, order="block_seqno"))
        code_hash = code_hash if code_hash in names else f"state.{code_hash}"
    if code_hash in names or "." in code_hash:
        found.append(Join("interface", INTERFACES, ((code_hash, "code_hash"),), everywhere=True))
    return {join.name: join for join in found}


class Plan(msgspec.Struct, frozen=True, dict=True):
    """A scan valid for the schema: its rows pass every filter of one of ``selections``.

    Without selections it returns all rows. ``columns`` are the returned columns, in order.
    """

    table: Table
    columns: tuple[str, ...]
    selections: tuple[tuple[Filter, ...], ...] = ()

    @property
    def height(self) -> str:
        """The column with the masterchain block of a row."""
        name = name_height(self.table)
        if name is None:
            raise KeyError(self.table.name)
        return name

    def list_needed(self) -> set[str]:
        """Return the columns that filters and results need, keys of joins included."""
        needed = {name for filters in self.selections for one in filters for name in one.needs}
        needed |= {*self.columns, self.height}
        joins = list_joins(self.table)
        for name in ("interface", "state", "body", "trace", "transaction"):
            if any(column.startswith(f"{name}.") for column in needed):
                needed |= {own for own, _other in joins[name].keys if own != EXTERNAL_IN}
                needed |= {"kind"} if name == "body" else set()
        return needed

    def list_joined(self) -> dict[str, tuple[str, ...]]:
        """Return the needed columns of each join; a join comes after those that it depends on."""
        needed = sorted(self.list_needed())
        found: dict[str, tuple[str, ...]] = {}
        for name in list_joins(self.table):
            columns = tuple(one.partition(".")[2] for one in needed if one.startswith(f"{name}."))
            if columns:
                found[name] = columns
        return found

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result; columns of joins are nullable."""
        return pa.schema([self.find_field(name) for name in self.columns])

    @cached_property
    def held_schema(self) -> pa.Schema:
        """The same with the masterchain block of a row, whether or not it is returned."""
        names = dict.fromkeys((*self.columns, self.height))
        return pa.schema([self.find_field(name) for name in names])

    def find_field(self, name: str) -> pa.Field:
        """Return the Arrow field of a column of the table or of a join."""
        join, dot, column = name.partition(".")
        if not dot:
            return self.table.arrow.field(name)
        field = list_joins(self.table)[join].table.arrow.field(column)
        return field.with_name(name).with_nullable(True)  # noqa: FBT003 - pyarrow's signature
