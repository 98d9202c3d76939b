"""Structs from rows, in Python: what the extension writes, as objects."""

from __future__ import annotations

from functools import cache
from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET

from api.cells import add_checksum
from api.encoding import (
    decode_currencies,
    encode_account,
    encode_bytes,
    encode_opcode,
    encode_shard,
)
from api.v3.layout.body import read_body
from api.v3.layout.field import Inner, Kind
from api.v3.layout.table import HEX, Field, list_fields

T = TypeVar("T")

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Read = Callable[[Sequence[Any], Any], Any]

_NO_INNER = Inner()
_OF_VALUE: dict[Kind, Callable[[Any], Any]] = {
    Kind.TEXT_NUMBER: str,
    Kind.BASE64: encode_bytes,
    Kind.SHARD: encode_shard,
    Kind.OPCODE: lambda value: encode_opcode(value, HEX),
    Kind.BAG: lambda value: encode_bytes(add_checksum(value)),
    Kind.JSON: lambda text: msgspec.json.decode(text, type=dict[str, str] | None),
}
"""What is written of a column that is not NULL; of other kinds the value itself."""


def make_builder(struct: type[T], opcodes: str = HEX, made: Inner = _NO_INNER) -> Callable[..., T]:
    """Return the function that makes a struct of the rows of a resource, the first its own.

    It takes the values of fields that no column holds by name.
    """
    return _make_resource_builder(struct, opcodes, made)


@cache
def _make_resource_builder(struct: Any, opcodes: str, made: Inner) -> Callable[..., Any]:  # noqa: ANN401 - any struct
    build = _make_builder(struct, opcodes, made)

    def build_resource(sources: Sequence[Any], **extra: object) -> Any:  # noqa: ANN401 - the struct
        return build(sources, sources[max(made.source, 0)], extra)

    return build_resource


def _make_builder(struct: Any, opcodes: str, made: Inner) -> Callable[..., Any]:  # noqa: ANN401
    fields = list_fields(struct, made, opcodes)
    readers = [
        (field.name, _make_reader(field, opcodes))
        for field in fields
        if field.kind not in {Kind.CONSTANT, Kind.EXTRA}
    ]
    missing = {field.name: None if field.is_nullable else UNSET for field in fields}

    def build(sources: Sequence[Any], row: Any, extra: dict[str, object]) -> Any:  # noqa: ANN401
        values = extra
        for name, read in readers:
            value = read(sources, row)
            values[name] = missing[name] if value is None else value
        return struct(**values)

    return build


def _make_reader(field: Field, opcodes: str) -> Read:
    """Return the function that reads a field from the sources of a resource and the row at hand."""
    if field.kind in {Kind.OBJECT, Kind.LIST}:
        return _make_object_reader(field, opcodes)
    read = _make_row_reader(field)
    if field.source < 0:
        return lambda _sources, row: read(row)
    return lambda sources, _row: read(sources[field.source])


def _make_object_reader(field: Field, opcodes: str) -> Read:
    build = _make_builder(field.struct, opcodes, field.inner)
    at, when = field.inner.source, field.inner.when
    if field.kind is Kind.LIST:
        return lambda sources, _row: [build(sources, each, {}) for each in sources[at]]

    def read(sources: Sequence[Any], row: Any) -> Any:  # noqa: ANN401 - a struct
        found = row if at < 0 else sources[at]
        if found is None or (when and all(found[name] is None for name in when)):
            return None
        return build(sources, found, {})

    return read


def _make_row_reader(field: Field) -> Callable[[Any], Any]:
    name, beside, equals = field.column
    match field.kind:
        case Kind.ACCOUNT | Kind.NAMED_ACCOUNT:
            return lambda row: encode_account(row[name], row[beside])
        case Kind.OPCODE_NAME:
            return lambda row: read_body(row["body_hash"], row["body"], row["kind"]).opcode_name
        case Kind.BODY:
            return lambda row: read_body(row["body_hash"], row["body"], row["kind"]).content
        case Kind.CURRENCIES:
            return lambda row: decode_currencies(row[name]) if row[beside] == equals else None
        case Kind.BASE64_UNLESS:
            return lambda row: None if row[name] in {None, row[beside]} else encode_bytes(row[name])
        case _:
            return _make_value_reader(field)


def _make_value_reader(field: Field) -> Callable[[Any], Any]:
    """Return the function that reads a field of one column; one that may be left out may lack."""
    name, write = field.column.name, field.read or _OF_VALUE.get(field.kind)
    read: Callable[[Any], Any] = itemgetter(name)
    if field.is_optional and not field.is_nullable:
        read = methodcaller("get", name)
    if write is None:
        return read
    missing: dict[str, str] | None = None
    if field.kind is Kind.JSON and not field.is_optional:
        missing = {}

    def read_written(row: Any) -> Any:  # noqa: ANN401 - any value
        value = read(row)
        return missing if value is None else write(value)

    return read_written
