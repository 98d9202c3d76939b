"""Tables over message bodies of one layout: views that decode the fields a statement selects.

The caller passes the decoders (``tonlake.ingest.derive.body.fields``): one function per field, from
a batch of bodies to the field's values. DuckDB calls those of the columns that a statement reads,
only for messages with the opcode, which is a filter on the files of messages.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import pyarrow as pa
from duckdb import DuckDBPyConnection
from duckdb.func import FunctionNullHandling, PythonUDFType

from tonlake.lake.duck.connection import NAMES_TAKEN
from tonlake.lake.duck.statement import join_scripts, quote, quote_name
from tonlake.lake.errors import QueryError

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
    names = set(NAMES_TAKEN)
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
    """Register the functions of a table with DuckDB; the last of an opcode count misfits."""
    counted = {_name_fit(table, at) for at in _list_last(table)}

    def register(name: str, decode: Callable[[pa.Array], pa.Array], returned: str) -> None:
        def decode_batch(bodies: pa.ChunkedArray) -> pa.Array:
            values = decode(bodies.combine_chunks().cast(pa.binary()))
            if name in counted:
                misfits[table.name] += values.false_count
            return values

        connection.create_function(
            name,
            decode_batch,
            ["BLOB"],
            returned,
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
        )

    for at, layout in enumerate(table.layouts):
        register(_name_fit(table, at), layout.fit, "BOOLEAN")
        for place, field in enumerate(layout.fields):
            register(_name_field(table, at, place), field.decode, "VARCHAR")


def _name_fit(table: BodyTable, at: int) -> str:
    return f"body_{table.name}_{at}_fits"


def _name_field(table: BodyTable, at: int, place: int) -> str:
    return f"body_{table.name}_{at}_{place}"


def _list_last(table: BodyTable) -> list[int]:
    """Return the place of the last layout of each opcode."""
    return [*{layout.opcode: at for at, layout in enumerate(table.layouts)}.values()]


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
        columns = [*beside[:1], *fields, *beside[1:]]
        selects.append(_render_select(table, messages, at, columns, fits=True))
    union = "union all by name\n".join(selects)
    return f"create or replace view {quote_name(table.name)} as\n{union};\n"


def _render_misfits(table: BodyTable, messages: str) -> str:
    """Return the SQL of the view over the bodies that do not fit."""
    named = MESSAGE_COLUMNS.items()
    columns = [
        *(f"    {expression} as {quote_name(name)}" for name, expression in named),
        "    body",
    ]
    selects = [_render_select(table, messages, at, columns, fits=False) for at in _list_last(table)]
    union = "union all\n".join(selects)
    return f"create or replace view {quote_name(table.name + MISFITS)} as\n{union};\n"


def _render_select(
    table: BodyTable, messages: str, at: int, columns: list[str], *, fits: bool
) -> str:
    """Return the query for bodies that fit a layout, or not, and no earlier one of its opcode."""
    opcode = table.layouts[at].opcode
    calls = [
        f"{quote_name(_name_fit(table, each))}(body)"
        for each in range(at + 1)
        if table.layouts[each].opcode == opcode
    ]
    signed = opcode - (1 << 32) if opcode >> 31 else opcode  # as in the column
    conditions = [f"opcode = {signed}", _DELIVERED]
    conditions += [f"not {call}" for call in calls[:-1]]
    conditions.append(calls[-1] if fits else f"not {calls[-1]}")
    shown, where = ",\n".join(columns), "\n    and ".join(conditions)
    return f"select\n{shown}\nfrom {quote_name(messages)}\nwhere {where}\n"


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


def name_views(statement: str, tables: Sequence[object]) -> str:
    """Return ``statement`` extended by the view and the macro that ``tables`` depend on."""
    return f"{statement} messages ton_address" if tables else statement
