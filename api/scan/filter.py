"""Resolves the columns and filters of a scan against the schema of its table."""

from __future__ import annotations

from decimal import Decimal
from difflib import get_close_matches
from typing import TYPE_CHECKING

import pyarrow as pa

from tonlake.api.errors import AddressInvalid, RequestInvalid
from tonlake.api.request.params import ConversionError, parse_hash
from tonlake.api.text.address import parse_address
from tonlake.lake.scan.plan import SCANNED, Among, AmongAccounts, Plan, list_joins
from tonlake.lake.schema.column import ARROW_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tonlake.api.scan.query import Selection, Value
    from tonlake.lake.scan.plan import Filter, Join
    from tonlake.lake.schema import Column, Table

MAX_DIGITS = 300
"""Maximum length of a number: 256 bits need less, and parsing longer ones would take seconds."""

MAX_NAMES = 40
"""Maximum names in an error if none is similar to the requested one."""

_INTEGERS = {"int8": 8, "int32": 32, "int64": 64, "ints": 32}
_TEXTS = frozenset({"text", "texts"})
_HASHES = frozenset({"hash", "hashes"})
_FILTERED = frozenset({*_INTEGERS, *_TEXTS, *_HASHES, "bool", "amount"})
_ALIASES = {
    "exit_code": ("compute_exit_code", "transaction.compute_exit_code"),
    "code_hash": ("state.code_hash",),
    "interface": ("interface.names",),
    "action_type": ("type",),
    "account": ("tx_account",),
}
"""Alternative filter names; each means the first of these columns that the table has."""


def make_plan(name: str, where: Sequence[Selection], columns: Sequence[str]) -> Plan:
    """Return the plan of a scan of one table.

    Raises:
        RequestInvalid: the table or a column does not exist, or a value does not fit its column.
    """
    if name not in SCANNED:
        raise RequestInvalid(f"table {suggest(name, SCANNED)}")
    table = SCANNED[name]
    for column in columns:
        _find_column(table, column)
    selections = tuple(
        tuple(read_filter(table, column, values) for column, values in each.items())
        for each in where
    )
    # A selection without filters matches every row.
    chosen = selections if all(selections) else ()
    return Plan(table, tuple(columns) or table.names, chosen)


def suggest(name: str, known: Iterable[str]) -> str:
    """Return the text that ``name`` does not exist, with the most similar known names."""
    listed = sorted(known)
    near = get_close_matches(name[:80], listed, 3) or [
        *listed[:MAX_NAMES],
        *(["and others"] if len(listed) > MAX_NAMES else []),
    ]
    return f"{name[:80]!r} does not exist here; there are: {', '.join(near)}"


def _find_column(table: Table, name: str) -> Column:
    """Return a column of a table or of a table joined to it."""
    prefix, dot, rest = name.partition(".")
    joins = list_joins(table)
    if dot and prefix not in joins:
        raise RequestInvalid(f"column {suggest(name, [*table.names, *_list_joined(joins)])}")
    of = joins[prefix].table if dot else table
    for column in of.columns:
        if column.name == (rest if dot else name):
            return column
    raise RequestInvalid(f"column {suggest(name, [*table.names, *_list_joined(joins)])}")


def _list_joined(joins: Mapping[str, Join]) -> list[str]:
    return [f"{join.name}.{column}" for join in joins.values() for column in join.table.names]


def read_filter(table: Table, name: str, values: list[Value]) -> Filter:
    """Return the filter on column ``name`` for ``values``.

    Raises:
        RequestInvalid: the column does not exist, or a value does not fit it.
    """
    known = {*table.names, *_list_joined(list_joins(table))}
    if name not in known:
        name = next((alias for alias in _ALIASES.get(name, ()) if alias in known), name)
    column = _find_column(table, name)
    if column.type not in _FILTERED:
        raise RequestInvalid(f"{name} is of type {column.type}, which scans cannot filter by")
    workchain = name_workchain(name)
    if column.type == "hash" and workchain in known and None not in values:
        return _read_accounts(name, workchain, values)
    kind = ARROW_TYPES[column.type]
    try:
        items = [_read_value(column, value) for value in values]
        return Among(name, pa.array(items, kind.value_type if pa.types.is_list(kind) else kind))
    except (ConversionError, ValueError, TypeError, OverflowError, ArithmeticError) as error:
        raise RequestInvalid(f"{name} is of type {column.type}: {error}") from error


def name_workchain(name: str) -> str:
    """Return the name of the workchain column that belongs to a column of account ids."""
    if name.endswith("account"):
        return f"{name.removesuffix('account')}workchain"
    return f"{name}_workchain"


def _read_accounts(name: str, workchain: str, values: list[Value]) -> AmongAccounts:
    accounts: dict[int, list[bytes]] = {}
    for value in values:
        if not isinstance(value, str):
            raise RequestInvalid(f"{name} takes a list of addresses, not {value!r}")
        address = parse_address(value)
        accounts.setdefault(address.workchain, []).append(address.account)
    ids = {each: pa.array(found, pa.binary(32)) for each, found in accounts.items()}
    return AmongAccounts(workchain, name, ids or {0: pa.array([], pa.binary(32))})


def _read_value(column: Column, value: Value) -> object:
    """Convert a value to its column's type: addresses to raw, hashes to bytes, opcodes signed."""
    if value is None:
        return None
    if column.type == "bool":
        if not isinstance(value, bool):
            raise ConversionError(f"{value!r} is neither true nor false")
        return value
    if isinstance(value, bool):
        raise ConversionError(f"{value!r} is a boolean")
    if column.type in _TEXTS:
        return read_text(str(value))
    if column.type in _HASHES:
        return _read_hash(value)
    number = read_number(value)
    if column.type == "amount":
        return Decimal(number)
    bits = _INTEGERS[column.type]
    if not -1 << (bits - 1) <= number < 1 << bits:
        raise ConversionError(f"{value!r} does not fit in {bits} bits")
    # Opcodes and shards may be written as unsigned numbers.
    return number - (1 << bits) if 1 << (bits - 1) <= number < 1 << bits else number


def read_number(value: str | int) -> int:
    """Return a number, parsing text as decimal or with the prefix 0x, 0o or 0b.

    Raises:
        ConversionError: the text is not a number, or longer than any column's.
    """
    if isinstance(value, int):
        return value
    if len(value) > MAX_DIGITS:
        raise ConversionError(f"the number has {len(value):,} characters")
    try:
        return int(value, 0)
    except ValueError as error:
        raise ConversionError(f"{value!r} is not a number") from error


def read_text(text: str) -> str:
    """Return an address in raw form, other text unchanged."""
    try:
        return str(parse_address(text))
    except AddressInvalid:
        return text


def _read_hash(value: str | int) -> bytes:
    try:
        return parse_hash(str(value))
    except ConversionError as error:
        raise ConversionError(
            f"{str(value)[:80]!r} is not a hash: 64 hex digits or 43 base64 characters"
        ) from error
