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
    from typing import TypeAlias

    TraceWriter: TypeAlias = Callable[
        [bytes, list[Any], list[bytes | None], set[tuple[int, bytes]]], tuple[bytes, bytes, bytes]
    ]

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


def compile_record(nonexist: tuple[bytes, object], unknown: object) -> Any:  # noqa: ANN401 - the extension's
    """Return the layout by which records of transactions are written.

    Args:
        nonexist: The state hash of a nonexistent account, and the row written for it.
        unknown: The row written for an unknown state.
    """
    parts = "row", "messages", "before", "after"
    hashes = "account_state_hash_before", "account_state_hash_after"
    return NATIVE.compile_record(
        parts, ("hash", "msg_hash", "direction", *hashes), "in", *nonexist, unknown
    )


def make_record_writer(
    layout: Any,  # noqa: ANN401 - the extension's
    record: Any,  # noqa: ANN401 - the extension's
) -> Callable[[list[Any], set[tuple[int, bytes]]], list[bytes]]:
    """Return the function that writes transactions from their records, in the given layout.

    It adds workchain and id of the address book's accounts to its second argument.
    """
    return partial(NATIVE.write_records, layout, record)


def make_trace_writer(
    layout: Any,  # noqa: ANN401 - the extension's
    record: Any,  # noqa: ANN401 - the extension's
) -> TraceWriter:
    """Return the function that writes the tree, the order and the transactions of a trace.

    Its arguments are the trace id, the records in order, the hashes of the parent transactions, and
    the set to which the address book's accounts are added.
    """
    return partial(NATIVE.write_trace, layout, record)
