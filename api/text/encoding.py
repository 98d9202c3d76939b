"""Converts values to and from text: addresses, hashes, numbers, shards, opcodes, ranges, stacks.

Addresses are raw or user-friendly (TEP-2). Stacks of get-methods are read in any mix of three
notations: ``["num", "0x1"]`` (v2), ``{"@type": "tvm.stackEntryNumber", ...}`` (v2, typed) and
``{"type": "num", "value": "0x1"}`` (v3); each has its own function to write it.
"""

import base64
import binascii
import re
from binascii import b2a_base64
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import msgspec

from tonlake.api.errors import AddressInvalid, RequestInvalid, StackTypeUnknown
from tonlake.api.text.native import NATIVE
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import ORDINARY, CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.contract import stack as parsed
from tonlake.ingest.derive.contract.program import to_tvm
from tonlake.ingest.derive.tvm.call import (
    INTEGER_BITS,
    NAN_TEXT,
    StackValue,
    TvmBuilder,
    TvmCell,
    TvmNan,
    TvmSlice,
    fits_integer,
)
from tonlake.ingest.derive.tvm.pool import STACK_DEPTH, STACK_ENTRIES
from tonlake.ingest.errors import BocError
from tonlake.lake.account import decode_base64, read_friendly_address, read_raw_address

_BOUNCEABLE, _NON_BOUNCEABLE, _TEST_ONLY = 0x11, 0x51, 0x80  # TEP-2, tag byte
TAGS = {
    (bounceable, test_only): tag | (_TEST_ONLY if test_only else 0)
    for bounceable, tag in ((True, _BOUNCEABLE), (False, _NON_BOUNCEABLE))
    for test_only in (True, False)
}
"""The tag byte of the user-friendly form by its flags: bounceable, test-only."""


Address = parsed.AddrStd
"""A standard address: workchain and 32-byte account id."""


class WrittenAddress(msgspec.Struct, frozen=True):
    """An address with the flags of its user-friendly form; raw addresses have none."""

    address: Address
    friendly: bool
    bounceable: bool = False
    test_only: bool = False


def read_address(text: str) -> WrittenAddress:
    """Parse a raw or friendly address, in any case and alphabet, or raise AddressInvalid."""
    try:
        raw = read_raw_address(text)
        if raw is not None:
            return WrittenAddress(Address(*raw), friendly=False)
        data = read_friendly_address(text)
    except ValueError as error:
        raise AddressInvalid(text, str(error)) from error
    return WrittenAddress(
        Address(int.from_bytes(data[1:2], "big", signed=True), data[2:]),
        friendly=True,
        bounceable=data[0] & ~_TEST_ONLY == _BOUNCEABLE,
        test_only=bool(data[0] & _TEST_ONLY),
    )


def parse_address(text: str) -> Address:
    """Parse an address in any notation; see ``read_address``."""
    return read_address(text).address


def render_raw(workchain: int, account: bytes) -> str:
    """Return ``workchain:HEX``, the notation of API v3."""
    return f"{workchain}:{account.hex().upper()}"


def render_friendly(address: Address, *, bounceable: bool, test_only: bool) -> str:
    """Return the friendly form (TEP-2); AddressInvalid: the workchain does not fit in 8 bits."""
    if not -128 <= address.workchain <= 127:  # noqa: PLR2004
        raise AddressInvalid(str(address), "its workchain has no friendly form")
    tag = TAGS[bounceable, test_only]
    if NATIVE is not None:
        return str(NATIVE.write_friendly(tag, address.workchain, address.account))
    body = bytes((tag, address.workchain & 0xFF)) + address.account
    data = body + binascii.crc_hqx(body, 0).to_bytes(2, "big")
    return base64.urlsafe_b64encode(data).decode("ascii")


def name_workchain(name: str) -> str:
    """Return the workchain column that belongs to a column of account ids.

    ``account`` belongs to ``workchain``, ``tx_account`` to ``tx_workchain``, and any other
    ``owner`` or ``owner_id`` to ``owner_workchain``.
    """
    if name.endswith("account"):
        return name.removesuffix("account") + "workchain"
    return name.removesuffix("_id") + "_workchain"


_UINT32, _UINT64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def encode_bytes(data: bytes | memoryview) -> str:
    """Return standard base64 with padding, as used for hashes and bags of cells."""
    return b2a_base64(data, newline=False).decode("ascii")


def encode_number(number: object | None) -> str | None:
    """Return a number as text, as JSON numbers lose precision; None for None."""
    return None if number is None else str(number)


def encode_account(workchain: int | None, account: bytes | None) -> str | None:
    """Return the raw address; None without a workchain or an account."""
    return None if account is None or workchain is None else f"{workchain}:{account.hex().upper()}"


def encode_shard(shard: int) -> str:
    """Return a signed shard id as upper-case hex of its 64 bits, without padding."""
    return f"{shard & _UINT64:X}"


def encode_opcode(opcode: int) -> str:
    """Return a signed opcode as ``0x%08x``."""
    return f"0x{opcode & _UINT32:08x}"


def decode_currencies(text: str | None) -> dict[str, str]:
    """Parse extra currencies, as text amounts by id; {} for None."""
    return {} if text is None else msgspec.json.decode(text, type=dict[str, str])


MAX_RANGES = 5
"""Maximum ranges in a message; ``tonlake status`` lists all."""


def name_ranges(ranges: Sequence[tuple[int, int]]) -> str:
    """Return ranges as ``1..3, 7..9``; beyond ``MAX_RANGES`` only their number."""
    text = ", ".join(f"{first}..{last}" for first, last in ranges[:MAX_RANGES]) or "nothing"
    more = len(ranges) - MAX_RANGES
    return f"{text} and {more} more ranges" if more > 0 else text


_INTEGER = re.compile(r"(-?)(?:0[xX]([0-9a-fA-F]{1,65})|([0-9]{1,78}))")
_TUPLE_ENTRIES = 255
_TAGS = {
    **dict.fromkeys(("num", "int", "number", "integer"), "number"),
    **dict.fromkeys(("cell", "tvm.Cell"), "cell"),
    **dict.fromkeys(("slice", "tvm.Slice"), "slice"),
    **dict.fromkeys(("builder", "tvm.Builder"), "builder"),
    **dict.fromkeys(("tuple", "tvm.Tuple"), "tuple"),
    **dict.fromkeys(("list", "tvm.List"), "list"),
    "null": "null",
}
_TYPED = "tvm.stackEntry"


def decode_stack(items: Sequence[Any]) -> tuple[StackValue, ...]:
    """Parse the arguments of a get-method, deepest in the stack first.

    Raises RequestInvalid if an entry does not fit its type, or there are too many entries;
    StackTypeUnknown if an entry has an unknown type.
    """
    numbers = count()
    return tuple(_read_entry(item, 0, numbers) for item in items)


_BAGS = {"cell": TvmCell, "slice": TvmSlice, "builder": TvmBuilder}


def _read_entry(item: object, depth: int, numbers: Iterator[int]) -> StackValue:
    """Parse an entry; ``numbers`` count all of them, nested ones included."""
    if next(numbers) >= STACK_ENTRIES or depth >= STACK_DEPTH:
        raise RequestInvalid("the stack has too many entries, or is nested too deeply")
    kind, value = _name_type(item)
    if kind == "null":
        return None
    if kind == "number":
        return read_number(_open(value, kind))
    if kind in _BAGS:
        return _BAGS[kind](_read_bag(value, ordinary=kind != "cell"))
    if kind not in {"tuple", "list"}:
        raise StackTypeUnknown(kind)
    items = _open(value, "elements")
    if not isinstance(items, list):
        raise RequestInvalid("a tuple or list of the stack has no elements")
    read = [_read_entry(each, depth + 1, numbers) for each in items]
    if kind == "list":
        return read or None
    if len(read) > _TUPLE_ENTRIES:
        raise RequestInvalid(f"a tuple of the stack has more than {_TUPLE_ENTRIES} elements")
    return tuple(read)


def _name_type(item: object) -> tuple[str, object]:
    """Return the type of an entry in any notation, and its value."""
    if isinstance(item, dict) and isinstance(name := item.get("@type"), str):
        key = name.removeprefix(_TYPED).lower()
        return (_TAGS.get(key, name), item.get(key)) if name.startswith(_TYPED) else (name, None)
    if isinstance(item, dict) and isinstance(name := item.get("type"), str):
        return _TAGS.get(name, name), item.get("value")
    if isinstance(item, list) and item and isinstance(name := item[0], str):
        return _TAGS.get(name, name), item[1] if len(item) > 1 else None
    raise RequestInvalid("an entry of the stack is not a pair of a type and a value")


def _open(value: object, key: str) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return the value under ``key`` if ``value`` is an object, else ``value`` itself."""
    return value.get(key) if isinstance(value, dict) else value


def read_number(value: object) -> int:
    """Parse a TVM integer: a JSON number, or decimal or hex text; else RequestInvalid."""
    number = value if isinstance(value, int) and not isinstance(value, bool) else None
    if isinstance(value, str) and (match := _INTEGER.fullmatch(value)):
        sign, hexadecimal, decimal = match.groups()
        number = int(hexadecimal, 16) if hexadecimal else int(decimal)
        number = -number if sign else number
    if number is None or not fits_integer(number):
        raise RequestInvalid(f"{str(value)[:80]!r} is not an integer of the stack")
    return number


def _read_bag(value: object, *, ordinary: bool = False) -> bytes:
    """Return a cell given as base64 or as a JSON object as a bag of cells."""
    text = value.get("bytes") if isinstance(value, dict) else value
    try:
        if isinstance(text, str):
            tree = parse_boc(decode_base64(text))
            tree.hash_all(tree.roots)  # Merkle cells may store wrong hashes
        else:
            tree = CellTree()
            tree.roots = [spell_cell(tree, value)]
    except (BocError, ValueError, RecursionError) as error:
        raise RequestInvalid(f"a cell of the stack cannot be read: {error}") from error
    if len(tree.roots) != 1 or tree.level_mask(tree.roots[0]):
        raise RequestInvalid("a cell of the stack is pruned, or does not have one root")
    if ordinary and tree.kind(tree.roots[0]) != ORDINARY:
        raise RequestInvalid("an exotic cell cannot be a slice or builder of the stack")
    return serialize_boc(tree, tree.roots, crc32c=True)


def spell_cell(tree: CellTree, value: object) -> int:
    """Append a ``{"data": {"b64", "len"}, "refs", "special"}``. Raises ValueError, BocError."""
    data = value.get("data") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(data, dict):
        raise ValueError("it is neither base64 nor an object")  # noqa: TRY004 - one kind of error
    bits, refs = data.get("len", 0), value.get("refs") or []
    raw = decode_base64(str(data.get("b64", "")))
    if type(bits) is not int or not 0 <= bits <= len(raw) * 8 or not isinstance(refs, list):
        raise ValueError("its length or its references are wrong")
    kids = [spell_cell(tree, kid) for kid in refs]
    builder = CellBuilder(tree)
    builder.store_uint(int.from_bytes(raw, "big") >> len(raw) * 8 - bits, bits)
    for kid in kids:
        builder.store_ref(kid)
    return builder.end(exotic=value.get("special") is True)


def encode_legacy(value: StackValue) -> list[Any]:
    """Write an entry as ``runGetMethod`` of v2 does: slices are tagged as cells."""
    if isinstance(value, int | TvmNan):
        return ["num", _write_hex(value)]
    if isinstance(value, TvmCell | TvmSlice):
        return ["cell", {"bytes": encode_bytes(value.boc)}]
    if value is None or isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return [kind, {"@type": f"tvm.{kind}", "elements": [encode_typed(v) for v in value or ()]}]
    return ["unsupported", ""]


def encode_typed(value: StackValue) -> dict[str, Any]:
    """Write an entry as ``runGetMethodStd`` does, and all v2 methods in tuples and lists."""
    if isinstance(value, int | TvmNan):
        number = NAN_TEXT if isinstance(value, TvmNan) else str(value)
        return _write_typed("number", {"@type": "tvm.numberDecimal", "number": number})
    if isinstance(value, TvmCell | TvmSlice):
        kind = "cell" if isinstance(value, TvmCell) else "slice"
        return _write_typed(kind, {"@type": f"tvm.{kind}", "bytes": encode_bytes(value.boc)})
    if value is None or isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        elements = [encode_typed(item) for item in value or ()]
        return _write_typed(kind, {"@type": f"tvm.{kind}", "elements": elements})
    return {"@type": f"{_TYPED}Unsupported"}


def encode_v3(value: StackValue, *, nested: bool = False) -> dict[str, Any]:
    """Write an entry as v3 does: slices are tagged as such only in tuples and lists."""
    if isinstance(value, int | TvmNan):
        return {"type": "num", "value": _write_hex(value)}
    if isinstance(value, TvmCell | TvmSlice):
        kind = "slice" if nested and isinstance(value, TvmSlice) else "cell"
        return {"type": kind, "value": encode_bytes(value.boc)}
    if value is None or isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {"type": kind, "value": [encode_v3(item, nested=True) for item in value or ()]}
    return {"type": "unsupported", "value": ""}


def _write_typed(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"@type": f"{_TYPED}{kind.capitalize()}", kind: value}


def _write_hex(value: int | TvmNan) -> str:
    return NAN_TEXT if isinstance(value, TvmNan) else f"{value:#x}"


def read_argument(value: object) -> StackValue:
    """Return an argument. Raises TypeError, AddressInvalid, RequestInvalid."""
    if isinstance(value, str):
        return to_tvm(parse_address(value).slice())
    if isinstance(value, bytes):
        return TvmCell(value)
    if isinstance(value, tuple | list):
        return type(value)(map(read_argument, value))
    if isinstance(value, int) and not fits_integer(value):
        raise RequestInvalid(f"{value:#x} has more than the {INTEGER_BITS} bits of a TVM integer")
    if value is None or isinstance(value, int | TvmCell | TvmSlice | TvmBuilder):
        return value
    raise TypeError(
        f"a get-method does not take {type(value).__name__}: pass an int, None, an address as "
        "text, a bag of cells as bytes, or a stack value"
    )
