"""Converts parameters of v2 strictly, with the error texts that its clients know.

A value comes from a query string or a JSON body, in which a number may also be text. So JSON values
are converted to text first, and converters read text.
"""

from __future__ import annotations

import base64
import re
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from tonlake.api.errors import AddressInvalid, RequestInvalid
from tonlake.api.request.params import ConversionError, Converter, Query, converters_of
from tonlake.api.text.address import WrittenAddress, read_address
from tonlake.ingest.decode.cell.build import MAX_BITS, CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import method_id
from tonlake.ingest.errors import BocError
from tonlake.lake.notation import read_hash

if TYPE_CHECKING:
    from collections.abc import Mapping

_INTEGER = re.compile(r"-?[0-9]{1,20}")
_TRUE = frozenset({"y", "yes", "t", "true", "on", "1"})
_FALSE = frozenset({"n", "no", "f", "false", "off", "0"})


def parse_int32(text: str) -> int:
    """Parse a signed 32-bit decimal."""
    return _parse_bounded(text, 32)


def parse_int64(text: str) -> int:
    """Parse a signed 64-bit decimal."""
    return _parse_bounded(text, 64)


def parse_flag(text: str) -> bool:
    """Parse y, yes, t, true, on, 1 or an opposite, in any letter case."""
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ConversionError


def parse_hash(text: str) -> bytes:
    """Parse a hash in hex or base64; a space is a +."""
    try:
        return read_hash(text.replace(" ", "+"))
    except ValueError as error:
        raise ConversionError(f"invalid hash: '{text}'") from error


def parse_written_address(text: str) -> WrittenAddress:
    """Parse an address in any notation; a space counts as +."""
    try:
        return read_address(text.replace(" ", "+"))
    except AddressInvalid as error:
        raise ConversionError(f"Failed to parse ton_addr: '{text}'") from error


def parse_account_hash(text: str) -> bytes:
    """Return the account id in a hash or an address."""
    try:
        return parse_hash(text)
    except ConversionError as error:
        try:
            return parse_written_address(text).address.account
        except ConversionError:
            raise error from None


def _parse_bounded(text: str, bits: int) -> int:
    if _INTEGER.fullmatch(text) is None or not -(1 << bits - 1) <= int(text) < 1 << bits - 1:
        raise ConversionError
    return int(text)


def parse_method(text: str) -> int:
    """Return the id of a get-method given by number or name."""
    if _INTEGER.fullmatch(text):
        return parse_int32(text)
    if not text:
        raise ConversionError
    return method_id(text)


def parse_bag(text: str) -> bytes:
    """Decode text in either base64 alphabet; a space counts as +."""
    plain = text.replace(" ", "+").replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError as error:  # binascii.Error, or text beyond ASCII
        raise ConversionError("the text is not base64") from error


def parse_cell_object(value: object) -> bytes:
    """Return the bag of a cell given as ``{"data": {"b64", "len"}, "refs": [...]}``."""
    try:
        tree = CellTree()
        root = _append_object(tree, msgspec.convert(value, _CellObject))
        return serialize_boc(tree, [root])
    except (msgspec.ValidationError, RecursionError, BocError) as error:
        raise ConversionError(f"the object is not a cell: {error}") from error


def _append_object(tree: CellTree, cell: _CellObject) -> int:
    data = int.from_bytes(parse_bag(cell.data.b64), "big")
    left = len(parse_bag(cell.data.b64)) * 8 - cell.data.len
    builder = CellBuilder(tree)
    kids = [_append_object(tree, kid) for kid in cell.refs]
    builder.store_uint(data >> left if left >= 0 else data << -left, cell.data.len)
    for kid in kids:
        builder.store_ref(kid)
    return builder.end()


class _CellData(msgspec.Struct, frozen=True):
    """Bits: the first ``len`` bits of the decoded bytes."""

    b64: str
    len: Annotated[int, msgspec.Meta(ge=0, le=MAX_BITS)]


class _CellObject(msgspec.Struct, frozen=True):
    """A cell in the format of the Python server of TON Center."""

    data: _CellData
    refs: list[_CellObject] = []


def parse_list(value: object) -> tuple[Any, ...]:
    """Return the items of a JSON array unchanged."""
    if not isinstance(value, list):
        raise ConversionError
    return tuple(value)


_HASH = Converter(parse_hash, {"type": "string", "pattern": "^[0-9a-fA-F]{64}$|^.{43,44}$"})
_INT32 = Converter(parse_int32, {"type": "integer", "format": "int32"})
# The rules of a method refuse values below the minimum, with their own texts.
_POSITIVE = Converter(parse_int32, {"type": "integer", "format": "int32", "minimum": 1})
_INT64 = Converter(parse_int64, {"type": "string", "pattern": "^-?[0-9]+$"})
_TEXT = {"type": "string"}

Int32 = Annotated[int, _INT32]
OptionalInt32 = Annotated[int | None, _INT32]
Positive = Annotated[int, _POSITIVE]
OptionalPositive = Annotated[int | None, _POSITIVE]
Int64 = Annotated[int, _INT64]
OptionalInt64 = Annotated[int | None, _INT64]
Flag = Annotated[bool, Converter(parse_flag, {"type": "boolean"})]
Hash = Annotated[bytes, _HASH]
OptionalHash = Annotated[bytes | None, _HASH]
Hashes = Annotated[tuple[bytes, ...], msgspec.structs.replace(_HASH, many=True)]
AccountAddress = Annotated[
    WrittenAddress, Converter(parse_written_address, _TEXT | {"minLength": 1})
]
OptionalAccountHash = Annotated[bytes | None, Converter(parse_account_hash, _TEXT)]
Text = Annotated[str, Converter(str, _TEXT)]
Bag = Annotated[bytes, Converter(parse_bag, _TEXT | {"minLength": 1})]
CellObject = Annotated[bytes, Converter(parse_cell_object, {"type": "object"}, raw=True)]
MethodId = Annotated[int, Converter(parse_method, _TEXT)]
RawList = Annotated[tuple[Any, ...], Converter(parse_list, {"type": "array"}, raw=True)]

Q = TypeVar("Q", bound=Query)


def read_params(kind: type[Q], values: Mapping[str, Any]) -> Q:
    """Convert the values that ``kind`` declares; ignore others.

    Raises:
        RequestInvalid: a value is missing or malformed.
    """
    found: dict[str, object] = {}
    required = _list_required(kind)
    for name, converter in converters_of(kind).items():
        value = values.get(name)
        if value is None and name not in required:
            continue
        if converter.many:
            items = value if isinstance(value, list) else [value]
            found[name] = tuple(_convert(converter, name, item) for item in items)
        else:
            found[name] = _convert(converter, name, value)
    return kind(**found)


@cache
def _list_required(kind: type[Query]) -> frozenset[str]:
    """Return the names without a default; cached, as msgspec derives fields slowly."""
    return frozenset(field.name for field in msgspec.structs.fields(kind) if field.required)


def _write(name: str, value: object) -> str:
    """Convert a JSON value to text: a missing one to "", and 5.0 to "5"."""
    if value is None:
        return ""
    if not isinstance(value, str | int | float):
        raise RequestInvalid(f"failed to parse {name}")
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if is_whole else value)


def _convert(converter: Converter, name: str, value: object) -> object:
    text: Any = value if converter.raw else _write(name, value)
    try:
        return converter.parse(text)
    except ConversionError as error:
        raise RequestInvalid(str(error) or f"failed to parse {name}") from error
