"""Annotations of struct fields in version 3: format and columns.

Without an annotation the format follows from the type, and the column has the field's name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from msgspec import UnsetType

if TYPE_CHECKING:
    from collections.abc import Callable


class Kind(StrEnum):
    """The format of a field's value; the C extension has the same names."""

    NUMBER = "number"
    TEXT_NUMBER = "text_number"
    BASE64 = "base64"
    FLAG = "flag"
    TEXT = "text"
    ACCOUNT = "account"
    """A raw address: workchain in the column, account id in ``beside``."""
    NAMED_ACCOUNT = "named_account"
    """The same; the account is added to the response's address book."""
    SHARD = "shard"
    OPCODE = "opcode"
    JSON = "json"
    """Text that is already JSON; ``{}`` if it is NULL, unless the field is optional."""
    CURRENCIES = "currencies"
    """The same, but null unless the column ``beside`` equals a text."""
    BAG = "bag"
    """A bag of cells as base64, with its checksum."""
    BASE64_UNLESS = "base64_unless"
    """Base64; left out if it equals the column ``beside``."""
    OPCODE_NAME = "opcode_name"
    """The name of a body's opcode; the columns are the body, its hash, and the kind of message."""
    BODY = "body"
    """The decoded body; an ``OPCODE_NAME`` of the same body precedes it."""
    OBJECT = "object"
    LIST = "list"
    """An object for each row of a source."""
    CONSTANT = "constant"
    """The field's default."""
    READ = "read"
    """The result of a function; only in Python."""
    EXTRA = "extra"
    """A field without a column; the caller that builds the struct sets it."""


class Column(NamedTuple):
    """The columns of a value, and the text that ``beside`` is compared with."""

    name: str
    beside: str = ""
    equals: str = ""


class Read(NamedTuple):
    """The function that converts a non-NULL column value to the field's value."""

    function: Callable[[Any], Any]


class Inner(NamedTuple):
    """The row and columns of a nested object.

    Attributes:
        when: The object exists if one of these columns is not NULL; if empty, if its row exists.
        source: Index of its row among those of the resource; -1 for the current row.
        prefix: Prefix of its fields' names in the names of their columns.
        columns: Columns of single fields; they belong to the resource's own row if ``source`` is
            another row.
        named: The field of kind ``ACCOUNT`` that is added to the address book.
    """

    when: tuple[str, ...] = ()
    source: int = -1
    prefix: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    named: str = ""


def inner(*when: str, source: int = -1, prefix: str = "", named: str = "", **columns: str) -> Inner:
    """Return an ``Inner``; ``columns`` are the columns of single fields by name."""
    return Inner(when, source, prefix, tuple(sorted(columns.items())), named)


def account(name: str = "") -> Column:
    """Return the columns of an account and its workchain: the row's own, or those of ``name``."""
    return Column(f"{name}_workchain", name) if name else Column("workchain", "account")


Omitted = UnsetType
Currencies = dict[str, str]
Decimal = Annotated[str, Kind.TEXT_NUMBER]
Base64 = Annotated[str, Kind.BASE64]
Shard = Annotated[str, Kind.SHARD]
RawAddress = Annotated[str, Kind.ACCOUNT]
Bag = Annotated[str, Kind.BAG]
