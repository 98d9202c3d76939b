"""Tables over message bodies of one layout: views that decode the fields a statement selects.

The caller passes the decoders (``tonlake.ingest.derive.body.fields``): one function per field, from
a batch of bodies to the field's values. DuckDB calls those of the columns that a statement reads,
only for messages with the opcode, which is a filter on the files of messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from tonlake.lake.duck.connection import ALL_VIEWS
from tonlake.lake.duck.statement import join_scripts, quote, quote_name
from tonlake.lake.errors import QueryError
from tonlake.lake.schema.view import REFERENCE_TABLES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FieldKind = Literal["bool", "int", "amount", "text", "bytes", "string", "address", "json"]

MESSAGE_COLUMNS = {
    "time": "make_timestamp(now * 1000000)",
    "tx_hash": "tx_hash",
    "tx_lt": "tx_lt",
    "tx_workchain": "tx_workchain",
    "tx_account": "tx_account",
    "account": "ton_address(tx_workchain, tx_account)",
    "source": "ton_address(source_workchain, source)",
    "destination": "ton_address(destination_workchain, destination)",
    "value": "value",
    "bounced": "bounced",
    "kind": "kind",
    "msg_hash": "msg_hash",
    "body_hash": "body_hash",
    "created_lt": "created_lt",
    "mc_seqno": "mc_seqno",
    "day": "day",
}
"""Columns of every row in addition to the fields of its body. A field of the same name takes
precedence; the column is then named ``message_<name>``."""

MISFITS = "_misfits"
"""Suffix of the table with the messages that have the opcode but whose bodies do not fit."""

_DELIVERED = "(direction = 'in' or kind = 'ext_out')"
_NAMES_KNOWN = frozenset(ALL_VIEWS) | {table.title for table in REFERENCE_TABLES}


class BodyField(NamedTuple):
    """A field: its SQL type, and the path of the value in its JSON.

    ``decode`` returns it of bodies as JSON texts, bare if the kind allows; NULL if one lacks it.
    """

    name: str
    kind: FieldKind
    path: tuple[str, ...]
    decode: Callable[[pa.Array], pa.Array]


class BodyLayout(NamedTuple):
    """The fields that follow an opcode; ``fit`` returns which bodies have this layout."""

    opcode: int
    fields: tuple[BodyField, ...]
    fit: Callable[[pa.Array], pa.Array]

    @property
    def signed_opcode(self) -> int:
        """The opcode as the column ``opcode`` has it, with 32 bits and a sign."""
        return self.opcode - (1 << 32) if self.opcode >> 31 else self.opcode


class BodyTable(NamedTuple):
    """A table of messages with one of several layouts, tried in order for each opcode."""

    name: str
    layouts: tuple[BodyLayout, ...]


class Misfits(Counter[str]):
    """Counts the bodies that statements have read and that fit no layout, by table."""

    def warnings(self) -> list[str]:
        """Return a sentence for each table with such bodies."""
        return [
            f"bodies with the opcode of {name} that do not fit it: {count:,} of those that were "
            f"read; see the table {name}{MISFITS}"
            for name, count in self.items()
            if count
        ]


def add_tables(connection: DuckDBPyConnection, tables: Iterable[BodyTable]) -> Misfits:
    """Create tables on a connection with the view ``messages``; return the counts of misfits."""
    tables, misfits = list(tables), Misfits()
    check_names(tables)
    for table in tables:
        add_table(connection, table, "messages", misfits)
    return misfits


def check_names(tables: Iterable[BodyTable]) -> None:
    """Check the names of tables against those of views and each other."""
    names = set(_NAMES_KNOWN)
    for table in tables:
        for name in (table.name, table.name + MISFITS):
            if name.lower() in names:
                raise QueryError(f"a table {name} already exists: give the layout another name")
            names.add(name.lower())


def add_table(
    connection: DuckDBPyConnection, table: BodyTable, messages: str, misfits: Misfits
) -> None:
    """Create one table over the view ``messages``; ``misfits`` counts bodies that do not fit."""
    _register(connection, table, misfits)
    scripts = [_render_table(table, messages), _render_misfits(table, messages)]
    connection.execute(join_scripts(scripts))


def _register(connection: DuckDBPyConnection, table: BodyTable, misfits: Misfits) -> None:
    """Register the functions of a table with DuckDB."""
    for at, layout in enumerate(table.layouts):
        is_last = at == _find_last(table, layout.opcode)
        counted = _count_misfits(layout.fit, table.name, misfits) if is_last else layout.fit
        functions = {_name_fit(table, at): (counted, "BOOLEAN")}
        functions |= {
            _name_field(table, at, place): (field.decode, "VARCHAR")
            for place, field in enumerate(layout.fields)
        }
        for name, (function, returned) in functions.items():
            connection.create_function(
                name,
                _take_batches(function),
                ["BLOB"],
                returned,
                type=PythonUDFType.ARROW,
                null_handling=FunctionNullHandling.SPECIAL,
            )


def _take_batches(decode: Callable[[pa.Array], pa.Array]) -> Callable[[pa.ChunkedArray], pa.Array]:
    def decode_batch(bodies: pa.ChunkedArray) -> pa.Array:
        return decode(bodies.combine_chunks().cast(pa.binary()))

    return decode_batch


def _count_misfits(
    fit: Callable[[pa.Array], pa.Array], name: str, misfits: Misfits
) -> Callable[[pa.Array], pa.Array]:
    def fit_and_count(bodies: pa.Array) -> pa.Array:
        fits = fit(bodies)
        misfits[name] += fits.false_count
        return fits

    return fit_and_count


def _name_fit(table: BodyTable, at: int) -> str:
    return f"body_{table.name}_{at}_fits"


def _name_field(table: BodyTable, at: int, place: int) -> str:
    return f"body_{table.name}_{at}_{place}"


def _find_last(table: BodyTable, opcode: int) -> int:
    return max(at for at, layout in enumerate(table.layouts) if layout.opcode == opcode)


def _render_table(table: BodyTable, messages: str) -> str:
    """Return the SQL of the view over the bodies that fit."""
    taken = {field.name.lower() for layout in table.layouts for field in layout.fields}
    beside = [
        f"    {expression} as {quote_name(f'message_{name}' if name in taken else name)}"
        for name, expression in MESSAGE_COLUMNS.items()
    ]
    selects = []
    for at, layout in enumerate(table.layouts):
        fields = [
            f"    {_render_field(field, quote_name(_name_field(table, at, place)))} as "
            f"{quote_name(field.name)}"
            for place, field in enumerate(layout.fields)
        ]
        columns = ",\n".join([*beside[:1], *fields, *beside[1:]])
        selects.append(
            f"select\n{columns}\nfrom {quote_name(messages)}\n"
            f"where opcode = {layout.signed_opcode}\n    and {_DELIVERED}\n"
            f"    and {_render_fits(table, at)}"
        )
    union = "\nunion all by name\n".join(selects)
    return f"create or replace view {quote_name(table.name)} as\n{union};\n"


def _render_misfits(table: BodyTable, messages: str) -> str:
    """Return the SQL of the view over the bodies that do not fit."""
    last = {layout.opcode: at for at, layout in enumerate(table.layouts)}
    columns = ",\n".join(
        f"    {expression} as {quote_name(name)}" for name, expression in MESSAGE_COLUMNS.items()
    )
    selects = [
        f"select\n{columns},\n    body\nfrom {quote_name(messages)}\n"
        f"where opcode = {table.layouts[at].signed_opcode}\n    and {_DELIVERED}\n"
        + "".join(
            f"    and not {quote_name(_name_fit(table, each))}(body)\n"
            for each, layout in enumerate(table.layouts)
            if layout.opcode == opcode
        )
        for opcode, at in last.items()
    ]
    union = "union all\n".join(selects)
    return f"create or replace view {quote_name(table.name + MISFITS)} as\n{union};\n"


def _render_fits(table: BodyTable, at: int) -> str:
    """Return the condition that a layout fits, and no earlier one of the same opcode."""
    earlier = [
        f"not {quote_name(_name_fit(table, each))}(body)"
        for each in range(at)
        if table.layouts[each].opcode == table.layouts[at].opcode
    ]
    return " and ".join([*earlier, f"{quote_name(_name_fit(table, at))}(body)"])


def _render_field(field: BodyField, function: str) -> str:
    """Return the SQL expression of a field's value."""
    call = f"{function}(body)"
    if field.kind == "json":
        return _render_value(call, field.path, "json_extract") + "::varchar" if field.path else call
    if field.kind == "address":
        kind, workchain, account = (
            _render_value(call, (*field.path, name))
            for name in ("@type", "workchain_id", "address")
        )
        return f"case when {kind} = 'addr_std' then {workchain} || ':' || {account} end"
    value = call if not field.path and field.kind != "string" else _render_value(call, field.path)
    if field.kind == "bool":
        return f"({value} = 'true')"
    if field.kind == "bytes":
        return f"unhex({value})"
    types = {"int": "bigint", "amount": "decimal(38, 0)"}
    return f"{value}::{types[field.kind]}" if field.kind in types else value


def _render_value(call: str, path: tuple[str, ...], how: str = "json_extract_string") -> str:
    keys = "".join(f".{quote_name(name)}" for name in path)
    return f"{how}({call}, {quote(f'${keys}')})"
