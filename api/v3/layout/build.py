"""Structs from rows, in Python: what the extension writes, as objects."""

from __future__ import annotations

from functools import cache
from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET

from tonlake.api.chain.cells import add_checksum
from tonlake.api.text.encoding import (
    decode_currencies,
    encode_account,
    encode_bytes,
    encode_opcode,
    encode_shard,
)
from tonlake.api.v3.layout.body import read_body
from tonlake.api.v3.layout.field import Inner, Kind
from tonlake.api.v3.layout.table import HEX, Field, list_fields

T = TypeVar("T")

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NO_INNER = Inner()
_PARTS = frozenset({Kind.OBJECT, Kind.LIST})
_OF_VALUE: dict[Kind, Callable[[Any], Any]] = {
    Kind.TEXT_NUMBER: str,
    Kind.BASE64: encode_bytes,
    Kind.SHARD: encode_shard,
    Kind.OPCODE: lambda value: encode_opcode(value, HEX),
    Kind.BAG: lambda value: encode_bytes(add_checksum(value)),
    Kind.JSON: lambda text: msgspec.json.decode(text, type=dict[str, str] | None),
}
"""What is written of a column that is not NULL; of other kinds the value itself."""


def make_builder(
    struct: Callable[..., T], opcodes: str = HEX, made: Inner = _NO_INNER
) -> Callable[..., T]:
    """Return the function that makes a struct of the rows of a resource, the first its own.

    It takes the values of fields that no column holds by name.
    """
    return _make_resource_builder(struct, opcodes, made)


@cache
def _make_resource_builder(struct: Any, opcodes: str, made: Inner) -> Callable[..., Any]:  # noqa: ANN401 - any struct
    build = _make_builder(struct, opcodes, made)
    at = max(made.source, 0)

    def build_resource(sources: Sequence[Any], **extra: object) -> Any:  # noqa: ANN401 - the struct
        return build(sources, sources[at], extra)

    return build_resource


def _make_builder(struct: Any, opcodes: str, made: Inner) -> Callable[..., Any]:  # noqa: ANN401
    fields = [
        field
        for field in list_fields(struct, made, opcodes)
        if field.kind not in {Kind.CONSTANT, Kind.EXTRA}
    ]
    columns = [(field, *_make_reader(field)) for field in fields if field.kind not in _PARTS]
    here = [(field.name, read, write) for field, read, write in columns if field.source < 0]
    away = [(field, read, write) for field, read, write in columns if field.source >= 0]
    parts = [
        (field.name, _make_part_reader(field, opcodes)) for field in fields if field.kind in _PARTS
    ]
    missing = {field.name: _find_missing(field) for field in fields}

    def build(sources: Sequence[Any], row: Any, values: dict[str, object]) -> Any:  # noqa: ANN401
        for name, read, write in here:
            value = read(row)
            if value is None:
                value = missing[name]
            elif write is not None:
                value = write(value)
            values[name] = value
        for field, read, write in away:
            value = read(sources[field.source])
            values[field.name] = value if value is None or write is None else write(value)
        for name, read_part in parts:
            value = read_part(sources, row)
            values[name] = missing[name] if value is None else value
        return struct(**values)

    return build


def _find_missing(field: Field) -> object:
    """Return the value of a field whose column is NULL."""
    if field.kind is Kind.JSON and not field.is_optional:
        return {}
    return None if field.is_nullable else UNSET


def _make_part_reader(field: Field, opcodes: str) -> Callable[[Sequence[Any], Any], Any]:
    """Return the function that makes an object, or a list of them."""
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


def _make_reader(field: Field) -> tuple[Callable[[Any], Any], Callable[[Any], Any] | None]:
    """Return what reads a field from its row, and what is done with the value unless it is None."""
    name, beside, equals = field.column
    match field.kind:
        case Kind.ACCOUNT | Kind.NAMED_ACCOUNT:
            return lambda row: encode_account(row[name], row[beside]), None
        case Kind.OPCODE_NAME:
            return (
                lambda row: read_body(row["body_hash"], row["body"], row["kind"]).opcode_name,
                None,
            )
        case Kind.BODY:
            return lambda row: read_body(row["body_hash"], row["body"], row["kind"]).content, None
        case Kind.CURRENCIES:
            return lambda row: decode_currencies(row[name]) if row[beside] == equals else None, None
        case Kind.BASE64_UNLESS:
            return lambda row: None if row[name] == row[beside] else row[name], encode_bytes
    # A column that may be left out may lack.
    may_lack = field.is_optional and not field.is_nullable
    return methodcaller("get", name) if may_lack else itemgetter(name), (
        field.read or _OF_VALUE.get(field.kind)
    )
