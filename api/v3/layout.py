"""How a row is written as JSON, field by field: what the extension ``api._json`` follows.

A layout says the same as the structs of ``model`` and their renderers, which are used where the
extension is not there; a test holds both against each other.
"""

from __future__ import annotations

from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from api.native import NATIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NULL = b"null"


class Kind(IntEnum):
    """What a field writes of its column's value; the extension knows them by number."""

    NUMBER = 0
    TEXT_NUMBER = 1
    BASE64 = 2
    FLAG = 3
    TEXT = 4
    ACCOUNT = 5
    """Workchain in ``column``, account in ``other``: the raw address."""
    SHARD = 6
    OPCODE = 7
    JSON = 8
    """Text that is JSON already."""
    CALL = 9
    """What the function ``other`` returns for the row: bytes of JSON, or None.

    With a column it is called only where that is not None.
    """
    OBJECT = 10
    """The layout ``other`` over the same row; there if one of the columns is not None."""
    LIST = 11
    """The layout ``other`` over each row of a list, which is one of the sources."""
    BASE64_UNLESS = 12
    """Base64, left out where it equals the column ``other``."""
    CONSTANT = 13
    """Nothing but the prefix."""
    NAMED_ACCOUNT = 14
    """As ``ACCOUNT``, and the account belongs into the address book of the answer."""
    CURRENCIES = 15
    """Null unless the column named first in ``other`` is ``int``; then {} where its own is None.

    Else what the second of ``other`` says, a function.
    """
    BODY = 16
    """Both fields of a body; the columns are its hash, the body, and the kind of its message.

    ``other`` has the set of opcodes that are known, and the function that writes a body which may
    have one of them; all others are written without it.
    """


class Field(NamedTuple):
    """One field; where its value is None it is ``missing``, or left out if that is None too."""

    kind: Kind
    source: int
    """Which of the rows given is read; -1 the one at hand."""

    column: Any
    prefix: bytes
    missing: bytes | None
    other: Any


def field(
    kind: Kind,
    name: str,
    column: str | tuple[str, ...] | None = None,
    *,
    missing: bytes | None = None,
    other: object = None,
    source: int = -1,
) -> Field:
    """Return a field called ``name``, of the column of the same name unless told otherwise.

    What a function says (``CALL``) has no column unless told so.
    """
    wanted = name if column is None and kind is not Kind.CALL else column
    return Field(kind, source, wanted, f'"{name}":'.encode(), missing, other)


def fields(
    kind: Kind, names: str, *, prefix: str = "", missing: bytes | None = None
) -> list[Field]:
    """Return fields whose columns are ``prefix`` and the field's name."""
    return [field(kind, name, prefix + name, missing=missing) for name in names.split()]


def compile_layout(*parts: Field | Sequence[Field]) -> Any:  # noqa: ANN401 - the extension's
    """Return a layout of fields and groups of fields."""
    flat = [item for part in parts for item in ([part] if isinstance(part, Field) else part)]
    return NATIVE.compile_layout(tuple((int(item.kind), *item[1:]) for item in flat))


def make_writer(layout: Any) -> Callable[[tuple[Mapping[str, Any] | Any, ...]], bytes]:  # noqa: ANN401
    """Return the function that writes the first of a tuple of rows; the others are its sources."""
    return partial(NATIVE.write_row, layout)


def make_record_writer(
    layout: Any,  # noqa: ANN401 - the extension's
    nonexist: tuple[bytes, object],
    unknown: object,
) -> Callable[[list[Any], set[tuple[int, bytes]]], list[bytes]]:
    """Return the function that writes transactions from their records.

    It adds workchain and id of the accounts for the address book to the set that it is given.

    Args:
        layout: Its sources are a record's row, in message, out messages, and the states before
            and after.
        nonexist: The hash of a state that is none, and the row that is written for it.
        unknown: The row that is written for a state that is not known.
    """
    parts = "row", "messages", "before", "after"
    columns = "direction", "account_state_hash_before", "account_state_hash_after"
    record = NATIVE.compile_record(parts, columns, *nonexist, unknown)
    return partial(NATIVE.write_records, layout, record)
