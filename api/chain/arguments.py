"""Parameters of the methods of version 2, some shared by version 3, and the rules between them.

A value comes from a query string or a JSON body, in which a number may also be text. So JSON values
are converted to text first, and converters read text; the error texts are those that clients of
version 2 know.
"""

import re
from collections.abc import Mapping
from functools import cache, partial
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.call import (
    ConversionError,
    Converter,
    Query,
    converters_of,
    parse_hash,
    parse_written_address,
)
from tonlake.api.text.encoding import WrittenAddress, spell_cell
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import method_id
from tonlake.ingest.errors import BocError
from tonlake.lake.account import decode_base64

_INTEGER = re.compile(r"-?[0-9]{1,20}")
_TRUE = frozenset({"y", "yes", "t", "true", "on", "1"})
_FALSE = frozenset({"n", "no", "f", "false", "off", "0"})


def parse_integer(text: str, bits: int = 32) -> int:
    """Parse a signed decimal of 32 bits, or of ``bits``."""
    if _INTEGER.fullmatch(text) is None or not -(1 << bits - 1) <= int(text) < 1 << bits - 1:
        raise ConversionError
    return int(text)


def parse_flag(text: str) -> bool:
    """Parse y, yes, t, true, on, 1 or an opposite, in any letter case."""
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ConversionError


def parse_account_hash(text: str) -> bytes:
    """Return the account id in a hash or an address."""
    try:
        return parse_hash(text)
    except ConversionError as error:
        try:
            return parse_written_address(text).address.account
        except ConversionError:
            raise error from None


def parse_method(text: str) -> int:
    """Return the id of a get-method given by number or name."""
    if _INTEGER.fullmatch(text):
        return parse_integer(text)
    if not text:
        raise ConversionError
    return method_id(text)


def parse_bag(text: str) -> bytes:
    """Decode text in either base64 alphabet; a space counts as +."""
    try:
        return decode_base64(text.replace(" ", "+"))
    except ValueError as error:  # binascii.Error, or text beyond ASCII
        raise ConversionError("the text is not base64") from error


def parse_cell_object(value: object) -> bytes:
    """Return the bag of a cell given as ``{"data": {"b64", "len"}, "refs": [...]}``."""
    tree = CellTree()
    try:
        return serialize_boc(tree, [spell_cell(tree, value)])
    except (ValueError, RecursionError, BocError) as error:
        raise ConversionError(f"the object is not a cell: {error}") from error


def parse_list(value: object) -> tuple[Any, ...]:
    """Return the items of a JSON array unchanged."""
    if not isinstance(value, list):
        raise ConversionError
    return tuple(value)


_HASH = Converter(parse_hash, {"type": "string", "pattern": "^[0-9a-fA-F]{64}$|^.{43,44}$"})
_INT32 = Converter(parse_integer, {"type": "integer", "format": "int32"})
# The rules of a method refuse values below the minimum, with their own texts.
_POSITIVE = Converter(parse_integer, {"type": "integer", "format": "int32", "minimum": 1})
_INT64 = Converter(partial(parse_integer, bits=64), {"type": "string", "pattern": "^-?[0-9]+$"})
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
    """Convert the values that ``kind`` declares; ignore others."""
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


MAX_COUNT = 10_000
"""Limit of transactions in a page of a block."""


class Params(Query, frozen=True, kw_only=True):
    """Parameters of one API method."""

    def check(self, max_limit: int, /) -> None:
        """Check rules beyond types, and raise RequestInvalid for the first that is violated."""
        seqno = getattr(self, "seqno", None)
        refuse_unless(seqno is None or seqno > 0, "seqno should be positive")
        self.check_own(max_limit)
        for name in _NATURAL:
            number = getattr(self, name, None)
            refuse_unless(number is None or number >= 0, f"{name} should be non-negative")

    def check_own(self, max_limit: int, /) -> None:
        """Check the rules of this method alone."""


_NATURAL = ("from_seqno", "lt", "unixtime", "after_lt", "created_lt", "ttl")
"""Parameters that are not negative, in any method."""


def refuse_unless(kept: bool, rule: str) -> None:  # noqa: FBT001 - the outcome of a rule
    """Raise RequestInvalid with ``rule`` unless it is ``kept``."""
    if not kept:
        raise RequestInvalid(rule)


def _check_bounds(number: int | None, most: int, name: str) -> None:
    if number is not None:
        refuse_unless(number > 0, f"{name} should be positive")
        refuse_unless(number <= most, f"{name} should be less or equal {most}")


class AccountParams(Params, frozen=True, kw_only=True):
    """An account after the masterchain block ``seqno``, or the newest one."""

    address: AccountAddress
    seqno: OptionalPositive = None


class GetMethodParams(AccountParams, frozen=True, kw_only=True):
    """A get-method of an account, and its arguments, deepest in the stack first."""

    method: MethodId
    stack: RawList = ()


class EstimateParams(Params, frozen=True, kw_only=True):
    """An external message in parts, as bags of cells; empty code or data means none."""

    address: AccountAddress
    body: Bag
    init_code: Bag = b""
    init_data: Bag = b""
    ignore_chksig: Flag = True


class EstimateCellParams(EstimateParams, frozen=True, kw_only=True):
    """As ``EstimateParams``, with each cell as an object of data and references."""

    body: CellObject
    init_code: CellObject = b""
    init_data: CellObject = b""


class TextParams(Params, frozen=True, kw_only=True):
    """An address to convert to other forms."""

    address: AccountAddress


class HashParams(Params, frozen=True, kw_only=True):
    """A hash to convert to other forms."""

    hash: Hash


class ProofParams(Params, frozen=True, kw_only=True):
    """A shard block, and the masterchain block that the reader trusts."""

    workchain: Int32
    shard: Int64
    seqno: Positive
    from_seqno: OptionalInt32 = None


class HistoryParams(Params, frozen=True, kw_only=True):
    """Transactions of an account, backwards from one of them, down to ``to_lt`` exclusive."""

    address: AccountAddress
    limit: OptionalPositive = None
    lt: OptionalInt64 = None
    hash: OptionalHash = None
    to_lt: Int64 = 0
    archival: Flag = False

    zero_is_newest: ClassVar[bool] = False
    """Whether ``lt`` 0 means no ``lt``."""

    @property
    def start_lt(self) -> int | None:
        """The logical time to begin at; None begins at the newest transaction."""
        return self.lt or None if self.zero_is_newest else self.lt

    def check_own(self, max_limit: int, /) -> None:
        """Require a limit within bounds, and lt and hash together."""
        _check_bounds(self.limit, max_limit, "limit")
        is_pair = (self.start_lt is None) == (self.hash is None)
        refuse_unless(is_pair, "lt and hash should be used together")


class HistoryParamsZero(HistoryParams, frozen=True, kw_only=True):
    """The same, but ``lt`` 0 means no ``lt``."""

    zero_is_newest: ClassVar[bool] = True


class MasterParams(Params, frozen=True, kw_only=True):
    """A masterchain block."""

    seqno: Positive


class BlockParams(Params, frozen=True, kw_only=True):
    """A block, by seqno or, with both hashes, by its full identity."""

    workchain: Int32
    shard: Int64
    seqno: Positive
    root_hash: OptionalHash = None
    file_hash: OptionalHash = None


class BlockPageParams(BlockParams, frozen=True, kw_only=True):
    """Transactions of a block, optionally after one of them."""

    after_lt: OptionalInt64 = None
    after_hash: OptionalAccountHash = None
    count: OptionalPositive = None

    def check_own(self, _max_limit: int, /) -> None:
        """Require a count within bounds, and after_lt and after_hash together."""
        _check_bounds(self.count, MAX_COUNT, "count")
        is_pair = (self.after_lt is None) == (self.after_hash is None)
        refuse_unless(is_pair, "after_lt and after_hash should be used together")


class LookupParams(Params, frozen=True, kw_only=True):
    """A block by seqno, or the first one at or after a logical time or a time."""

    workchain: Int32
    shard: Int64
    seqno: OptionalPositive = None
    lt: OptionalInt64 = None
    unixtime: OptionalInt64 = None

    def check(self, max_limit: int, /) -> None:
        """Require exactly one of the three."""
        chosen = [self.seqno, self.lt, self.unixtime]
        is_one = chosen.count(None) == len(chosen) - 1
        refuse_unless(is_one, "exactly one of seqno, lt, unixtime should be specified")
        super().check(max_limit)


class ConfigParams(Params, frozen=True, kw_only=True):
    """The entire configuration as of a masterchain block."""

    seqno: OptionalPositive = None


class ConfigParamParams(ConfigParams, frozen=True, kw_only=True):
    """One parameter of the configuration, under either of its two names."""

    param: OptionalInt32 = None
    config_id: OptionalInt32 = None

    @property
    def number(self) -> int:
        """The number of the parameter."""
        return (self.config_id if self.param is None else self.param) or 0

    def check_own(self, _max_limit: int, /) -> None:
        """Require exactly one of the names."""
        is_one = (self.param is None) != (self.config_id is None)
        refuse_unless(is_one, "only one of config_id or param should be specified")
        refuse_unless(self.number >= 0, "param should be non-negative")


class LibraryParams(Params, frozen=True, kw_only=True):
    """Public libraries by the hashes of their cells."""

    libraries: Hashes


class LocateParams(Params, frozen=True, kw_only=True):
    """A message between two accounts."""

    source: AccountAddress
    destination: AccountAddress
    created_lt: Int64


class BagParams(Params, frozen=True, kw_only=True):
    """A message to send, as a bag of cells."""

    boc: Bag

    def check_own(self, _max_limit: int, /) -> None:
        """Require a bag that is not empty."""
        refuse_unless(bool(self.boc), "empty boc")


class CellParams(Params, frozen=True, kw_only=True):
    """A message to send, as a JSON object with data and references."""

    cell: CellObject


class ResolveParams(AccountParams, frozen=True, kw_only=True):
    """A name, the resolver to start from, and how many further resolvers may be called."""

    name: Text = ""
    category: OptionalHash = None
    ttl: Int32 = 0
