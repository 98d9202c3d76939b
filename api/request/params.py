"""Strict conversion of query parameters, which one struct per operation declares.

Each field's annotation carries a `Converter`. Keys are case-insensitive, ``key[]`` means ``key``,
and the last of repeated scalars wins; unknown keys and repeated scalars are reported as warnings.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import msgspec

from tonlake.api.errors import AddressInvalid, RequestInvalid
from tonlake.api.text.address import Address, parse_address
from tonlake.lake.notation import read_hash, read_shard

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

INT64_MAX = (1 << 63) - 1
_UINT32, _UINT64 = 1 << 32, 1 << 64
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_UNSIGNED = re.compile(r"[0-9]{1,40}")
_FRACTION = re.compile(
    r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?"
)
_HEX_32 = re.compile(r"(?:0[xX])?([0-9a-fA-F]{1,8})")
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True", "on"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False", ""})
_SORTS = {"asc": "asc", "a": "asc", "desc": "desc", "d": "desc"}


class ConversionError(ValueError):
    """The text does not have the format of its parameter."""


class NoAddress(msgspec.Struct, frozen=True):
    """The literal ``null`` instead of an address: messages without one."""


class Converter(msgspec.Struct, frozen=True):
    """Converts one parameter; ``many``: it may be repeated, ``commas``: or comma-separated."""

    parse: Callable[[str], Any]
    schema: dict[str, Any]
    many: bool = False
    commas: bool = False
    raw: bool = False
    """Whether a JSON value is converted as is, not as text."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the parameters of an operation; the field ``x`` is the parameter ``x``."""


Q = TypeVar("Q", bound=Query)


def parse_int32(text: str) -> int:
    """Signed decimal of 32 bits; empty is 0."""
    return _bounded(text, _INTEGER, -(_UINT32 >> 1), (_UINT32 >> 1) - 1)


def parse_lt(text: str) -> int:
    """Unsigned 64-bit decimal; values above 2^63-1 mean "after everything"."""
    return min(_bounded(text, _UNSIGNED, 0, _UINT64 - 1), INT64_MAX)


def parse_utime(text: str) -> int:
    """Unix seconds; a fraction is cut off, and a negative number wraps around as in TON Center."""
    if _UNSIGNED.fullmatch(text) and int(text) < _UINT32:
        return int(text)
    if _FRACTION.fullmatch(text) is None:
        raise ConversionError(text)
    try:
        return min(int(float(text)) % _UINT64, INT64_MAX)
    except OverflowError as error:
        raise ConversionError(text) from error


def parse_bool(text: str) -> bool:
    """The words that Go's ``strconv.ParseBool`` accepts, and ``on``; empty is false."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ConversionError(text)


def parse_hash(text: str) -> bytes:
    """Return 32 bytes from hex or base64; a space is a ``+`` that was not escaped."""
    try:
        return read_hash(text.replace(" ", "+"))
    except ValueError as error:
        raise ConversionError(text) from error


def parse_any_address(text: str) -> Address:
    """Read an address in any form."""
    try:
        return parse_address(text.replace(" ", "+"))
    except AddressInvalid as error:
        raise ConversionError(text) from error


def parse_address_or_null(text: str) -> Address | NoAddress:
    """Read an address in any form, or the word ``null``."""
    return NoAddress() if text == "null" else parse_any_address(text)


def parse_shard(text: str) -> int:
    """Hex digits, else a decimal; the signed 64-bit id."""
    try:
        return read_shard(text)
    except ValueError as error:
        raise ConversionError(text) from error


def parse_opcode(text: str) -> int:
    """Hex digits even without ``0x``, else a decimal; the signed 32-bit number."""
    match = _HEX_32.fullmatch(text)
    number = (
        int(match[1], 16)
        if match
        else _bounded(text, _INTEGER, -(_UINT32 >> 1), _UINT32 - 1, empty=None)
    )
    return number - _UINT32 if number >= _UINT32 >> 1 else number


def parse_sort(text: str) -> str:
    """``asc``, ``a``, ``desc`` or ``d`` in any letter case; "" for anything else."""
    return _SORTS.get(text.lower(), "")


def _bounded(
    text: str, form: re.Pattern[str], low: int, high: int, *, empty: int | None = 0
) -> int:
    if text == "" and empty is not None:
        return empty
    if form.fullmatch(text) is None or not low <= int(text) <= high:
        raise ConversionError(text)
    return int(text)


_INT32 = Converter(parse_int32, {"type": "integer", "format": "int32"})
_UTIME = Converter(parse_utime, {"type": "number"})
_LT = Converter(parse_lt, {"type": "integer", "minimum": 0, "maximum": _UINT64 - 1})
_HASH = Converter(parse_hash, {"type": "string", "pattern": "^(0x)?[0-9a-fA-F]{64}$|^.{43}=?$"})
_ADDRESS = Converter(parse_any_address, {"type": "string", "minLength": 1})
_TEXT = Converter(str, {"type": "string"})

Int32 = Annotated[int | None, _INT32]
Utime = Annotated[int | None, _UTIME]
Lt = Annotated[int | None, _LT]
Flag = Annotated[bool | None, Converter(parse_bool, {"type": "boolean"})]
Hash = Annotated[bytes | None, _HASH]
Hashes = Annotated[tuple[bytes, ...], msgspec.structs.replace(_HASH, many=True, commas=True)]
OneAddress = Annotated[Address | None, _ADDRESS]
Addresses = Annotated[
    tuple[Address, ...], msgspec.structs.replace(_ADDRESS, many=True, commas=True)
]
AddressOrNull = Annotated[
    Address | NoAddress | None, Converter(parse_address_or_null, _ADDRESS.schema)
]
Shard = Annotated[int | None, Converter(parse_shard, {"type": "string"})]
Opcode = Annotated[int | None, Converter(parse_opcode, {"type": "string"})]
Text = Annotated[str | None, _TEXT]
Texts = Annotated[tuple[str, ...], msgspec.structs.replace(_TEXT, many=True, commas=True)]
Sort = Annotated[str | None, Converter(parse_sort, {"type": "string", "enum": sorted(_SORTS)})]


class Arguments:
    """The keys and values of one request, and warnings about them."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Collect the pairs, ignoring the case of keys and a trailing ``[]``."""
        self.values: dict[str, list[str]] = {}
        for key, value in pairs:
            self.values.setdefault(key.lower().removesuffix("[]"), []).append(value)

    def last(self, name: str) -> str | None:
        """Return the last value of a scalar, or None."""
        found = self.values.get(name)
        return found[-1] if found else None

    def warnings(self, known: Mapping[str, Converter], shared: frozenset[str]) -> list[str]:
        """Return warnings of unknown keys and repeated scalars."""
        lines = []
        for name, texts in self.values.items():
            if name not in known and name not in shared:
                lines.append(f"unknown parameter {name!a}")
            elif len(texts) > 1 and not (name in known and known[name].many):
                lines.append(f"repeated parameter {name!a}, the last one counts")
        return lines


@cache
def converters_of(kind: type[Query]) -> Mapping[str, Converter]:
    """Return the converters of an operation's parameters, in order of declaration."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: hints[name].__metadata__[0] for name in kind.__struct_fields__}


def read_query(kind: type[Q], arguments: Arguments) -> Q:
    """Convert the arguments that ``kind`` takes.

    Raises:
        RequestInvalid: a value cannot be converted; names the first one, and counts the others.
    """
    found: dict[str, Any] = {}
    errors: list[str] = []
    for name, converter in converters_of(kind).items():
        texts = arguments.values.get(name)
        if texts is None:
            continue
        try:
            found[name] = (
                _convert_all(converter, texts, name)
                if converter.many
                else (_convert_one(converter, texts[-1], name))
            )
        except RequestInvalid as error:
            errors.append(str(error))
    if errors:
        raise RequestInvalid(errors[0] + _count_others(len(errors) - 1))
    return kind(**found)


def _convert_one(converter: Converter, text: str, name: str) -> object:
    try:
        return converter.parse(text)
    except ConversionError as error:
        raise RequestInvalid(f'schema: error converting value for "{name}"') from error


def _convert_all(converter: Converter, texts: list[str], name: str) -> tuple[object, ...]:
    parts = [part for text in texts for part in (text.split(",") if converter.commas else [text])]
    values = []
    for index, part in enumerate(parts):
        try:
            values += [converter.parse(part)] if part else []
        except ConversionError as error:
            text = f'schema: error converting value for index {index} of "{name}"'
            raise RequestInvalid(text) from error
    return tuple(values)


def _count_others(count: int) -> str:
    if count == 0:
        return ""
    return " (and 1 other error)" if count == 1 else f" (and {count} other errors)"
