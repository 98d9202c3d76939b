"""Annotations of struct fields in version 3, their format and columns, parsed for both writers.

Without an annotation the format follows from the type, and the column has the field's name.
"""

from collections.abc import Callable
from enum import StrEnum
from itertools import chain
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, UNSET, UnsetType


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

    It exists if one of the columns ``when`` is not NULL, or else if its row does. ``source`` is
    that row among those of the resource, -1 the current one; ``prefix`` begins the names of its
    columns, ``columns`` are those of single fields, of the resource's own row if ``source`` is
    another one. The field ``named`` is added to the address book.
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


T = TypeVar("T")

HEX, INTEGER = "hex", "integer"
"""Formats of opcodes."""

_PLAIN = {int: Kind.NUMBER, bool: Kind.FLAG, str: Kind.TEXT, Currencies: Kind.JSON}


class Field(NamedTuple):
    """A field of a struct.

    ``source`` is the index of its row among those of the resource, -1 for the current one. Without
    a value it is ``default``, null if it is nullable, or left out if it is optional. ``inner`` and
    ``struct`` are of an object, or of the objects of a list.
    """

    name: str
    kind: Kind
    column: Column
    source: int
    is_nullable: bool
    is_optional: bool
    default: object
    read: Callable[[Any], Any] | None
    inner: Inner
    struct: Any


def list_fields(struct: Any, made: Inner = Inner(), opcodes: str = HEX) -> list[Field]:  # noqa: ANN401, B008 - any struct; immutable
    """Return the fields of a struct; ``made`` if it is part of another one."""
    return [_read_field(each, made, opcodes) for each in msgspec.structs.fields(struct)]


def _read_field(info: msgspec.structs.FieldInfo, made: Inner, opcodes: str) -> Field:
    types, notes = _take_apart(info.type)
    values = [each for each in types if each not in {type(None), UnsetType}]
    kind = _find(notes, Kind) or _guess_kind(values, info.default)
    if kind is Kind.ACCOUNT and info.name == made.named:
        kind = Kind.NAMED_ACCOUNT
    if kind is Kind.OPCODE and opcodes == INTEGER:
        kind = Kind.NUMBER
    replaced = dict(made.columns)
    column = _find(notes, Column) or Column(made.prefix + info.name)
    if info.name in replaced:
        column = Column(replaced[info.name])
    part = _find(notes, Inner) or Inner()
    read = _find(notes, Read)
    if read is not None:
        kind = Kind.READ
    source = 0 if info.name in replaced and made.source >= 0 else part.source
    has_parts = kind in {Kind.OBJECT, Kind.LIST, Kind.BODY}
    return Field(
        info.name,
        kind,
        column,
        source,
        type(None) in types,
        UnsetType in types,
        None if info.default in {UNSET, NODEFAULT} else info.default,
        read and read.function,
        part,
        (get_args(values[0]) or values)[0] if has_parts else None,
    )


def _take_apart(kind: Any) -> tuple[list[Any], list[Any]]:  # noqa: ANN401 - any type
    """Return the types that a value may have, and all their annotations."""
    if get_origin(kind) is Annotated:
        types, notes = _take_apart(kind.__origin__)
        return types, [*notes, *kind.__metadata__]
    if get_origin(kind) in {Union, UnionType}:
        parts = [_take_apart(each) for each in get_args(kind)]
        types, notes = zip(*parts, strict=True)
        return [*chain.from_iterable(types)], [*chain.from_iterable(notes)]
    return [kind], []


def _find(notes: list[Any], kind: type[T]) -> T | None:
    """Return the last annotation that is of this type."""
    return next((each for each in reversed(notes) if isinstance(each, kind)), None)


def _guess_kind(types: list[Any], default: object) -> Kind:
    """Return the kind of a field without annotation."""
    if default not in {None, UNSET, NODEFAULT}:
        return Kind.CONSTANT
    if len(types) == 1 and isinstance(types[0], type) and issubclass(types[0], msgspec.Struct):
        return Kind.OBJECT
    found = _PLAIN.get(types[0]) if len(types) == 1 else None
    return found or (Kind.CONSTANT if default is None else Kind.EXTRA)
