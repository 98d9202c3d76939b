"""Annotations of struct fields in version 3: form and columns.

Without an annotation the form follows from the type, and the column has the field's name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from msgspec import UnsetType

if TYPE_CHECKING:
    from collections.abc import Callable


class Kind(StrEnum):
    """The form in which a column's value is written; the extension knows the same names."""

    NUMBER = "number"
    TEXT_NUMBER = "text_number"
    BASE64 = "base64"
    FLAG = "flag"
    TEXT = "text"
    ACCOUNT = "account"
    """Workchain in the column, account id in the one beside it: the raw address."""
    NAMED_ACCOUNT = "named_account"
    """The same; the account belongs to the address book of the answer."""
    SHARD = "shard"
    OPCODE = "opcode"
    JSON = "json"
    """Text that is JSON already; ``{}`` where it is NULL, unless the field may be left out."""
    CURRENCIES = "currencies"
    """The same, but null unless the column beside it equals a text."""
    BAG = "bag"
    """A bag of cells as base64, with its checksum."""
    BASE64_UNLESS = "base64_unless"
    """Base64, left out where it equals the column beside it."""
    OPCODE_NAME = "opcode_name"
    """The name of a body's opcode; the columns are the body, its hash, and its message's kind."""
    BODY = "body"
    """The struct of the body whose ``OPCODE_NAME`` was written before it."""
    OBJECT = "object"
    LIST = "list"
    """An object for each row of a source."""
    CONSTANT = "constant"
    """The field's default."""
    READ = "read"
    """What a function makes of it, in Python alone."""
    EXTRA = "extra"
    """Nothing that a column holds: who builds the struct sets it."""


class Column(NamedTuple):
    """Where a value stands: its column, another one, the text that it is compared with."""

    name: str
    beside: str = ""
    equals: str = ""


class Read(NamedTuple):
    """The function that makes a field's value of what its column holds, if that is not NULL."""

    function: Callable[[Any], Any]


class Inner(NamedTuple):
    """Which row and columns an object is made of.

    Attributes:
        when: It is there if one of these columns is not NULL; without any, if its row is there.
        source: The row it is made of, among those of the resource; -1 the row at hand.
        prefix: What the names of its fields are preceded by in the names of their columns.
        columns: Other columns of single fields, which belong to the resource's own row if
            ``source`` is another.
        named: The field of kind ``ACCOUNT`` that belongs to the address book.
    """

    when: tuple[str, ...] = ()
    source: int = -1
    prefix: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    named: str = ""


def inner(*when: str, source: int = -1, prefix: str = "", named: str = "", **columns: str) -> Inner:
    """Return an ``Inner``; ``columns`` are the columns of single fields."""
    return Inner(when, source, prefix, tuple(sorted(columns.items())), named)


def account(name: str = "") -> Column:
    """Return the columns of an account id and its workchain: the row's own, or by its name."""
    return Column(f"{name}_workchain", name) if name else Column("workchain", "account")


Omitted = UnsetType
Currencies = dict[str, str]
Decimal = Annotated[str, Kind.TEXT_NUMBER]
Base64 = Annotated[str, Kind.BASE64]
Shard = Annotated[str, Kind.SHARD]
RawAddress = Annotated[str, Kind.ACCOUNT]
Bag = Annotated[str, Kind.BAG]
