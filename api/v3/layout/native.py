"""Compiles structs for the C extension, which writes rows as JSON without building structs."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.text.native import NATIVE
from tonlake.api.v3.layout.body import KEPT, list_opcodes, write_body
from tonlake.api.v3.layout.build import make_builder
from tonlake.api.v3.layout.field import Inner, Kind
from tonlake.api.v3.layout.table import HEX, Field, list_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_BESIDE = frozenset({Kind.ACCOUNT, Kind.NAMED_ACCOUNT, Kind.BASE64_UNLESS})
_NO_INNER = Inner()


def compile_struct(struct: Any, opcodes: str = HEX, made: Inner = _NO_INNER) -> Any:  # noqa: ANN401 - the extension's
    """Return the layout of a struct.

    Raises:
        ValueError: a field has no column.
    """
    fields = list_fields(struct, made, opcodes)
    return NATIVE.compile_layout(tuple(_describe(each, opcodes) for each in fields))


def _describe(field: Field, opcodes: str) -> tuple[Any, ...]:
    """Return a field as (kind, source, columns, prefix, missing, other)."""
    prefix = f'"{field.name}":'.encode()
    source, other = field.source, None
    columns: tuple[str, ...] = (field.column.name,)
    missing = b"null" if field.is_nullable else None
    if isinstance(field.default, str):
        missing = msgspec.json.encode(field.default)
    _, beside, equals = field.column
    match field.kind:
        case Kind.CONSTANT:
            prefix, columns = prefix + msgspec.json.encode(field.default), ()
        case Kind.OBJECT | Kind.LIST | Kind.BODY:
            source, columns = field.inner.source, field.inner.when
            other = compile_struct(field.struct, opcodes, field.inner)
        case Kind.CURRENCIES:
            other = beside, equals
        case Kind.OPCODE_NAME:
            other = beside, equals, list_opcodes(), write_body, KEPT, "body_hash"
        case Kind.JSON if not field.is_optional:
            missing = b"{}"
        case kind if kind in _BESIDE:
            other = beside
    return field.kind.value, source, columns, prefix, missing, other


def make_writer(layout: Any) -> Callable[[tuple[Mapping[str, Any] | Any, ...]], bytes]:  # noqa: ANN401
    """Return the function that writes the first row of a tuple; the others are its sources."""
    return partial(NATIVE.write_row, layout)


@cache
def make_row_writer(struct: Any, opcodes: str = HEX) -> Callable[[tuple[Any, ...]], Any]:  # noqa: ANN401 - any struct
    """Return the function that writes the first row of a tuple, for sending only.

    It returns ``msgspec.Raw`` with the C extension, else the struct.
    """
    if NATIVE is None:
        return make_builder(struct, opcodes)
    write = make_writer(compile_struct(struct, opcodes))
    return lambda sources: msgspec.Raw(write(sources))


RecordKeys = tuple[str, str, str, str, bytes, object, object]
"""How records of transactions are taken apart: the columns of a message's direction and of the
hashes of the states before and after, the direction of the incoming message, the state hash of a
nonexistent account, and the rows written for such a state and for an unknown one."""


def make_record_writer(
    layout: Any,  # noqa: ANN401 - the extension's
    keys: RecordKeys,
) -> Callable[[list[Any], set[tuple[int, bytes]]], list[bytes]]:
    """Return the function that writes transactions from their records, in the given layout.

    It adds workchain and id of the address book's accounts to its second argument.
    """
    return partial(NATIVE.write_records, layout, keys)
