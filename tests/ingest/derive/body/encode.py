"""Builds bodies from the values of their fields: the opposite of the product's codecs.

Values must come from ``values``: only the checks of a cell builder apply.
"""

import json
from base64 import b64decode
from collections.abc import Callable
from functools import singledispatch
from typing import Any

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, graft
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.body import codec as codecs
from tonlake.ingest.derive.body import composite
from tonlake.ingest.derive.body.body import SIGNED, WALLET, decode_body, decode_message_body
from tonlake.ingest.derive.body.record import EMPTY_CELL, OPCODE_BITS, End, Record, Rest, Union
from tonlake.ingest.derive.body.scheme import Late, Use, load_scheme

BYTES_PER_CELL, REFS_PER_CELL = 127, 4
LENGTH_BITS = 8
ADDRESSES = (codecs.NONE, codecs.EXTERN, codecs.STD, codecs.VAR)


def rebuild(value: Any, tree: CellTree) -> int:
    """Build the cell of a decoded body or payload; return it."""
    target = CellBuilder(tree)
    for opcode, records in load_scheme().layouts.items():
        for record in records:
            if holds(record, value):
                encode(record, value, target.store_uint(opcode, OPCODE_BITS))
                return target.end()
    union = load_scheme().union(SIGNED if "request" in value else WALLET)
    encode(union, value, target)
    return target.end()


def encode_body(name: str, **fields: codecs.Value) -> tuple[CellTree, int]:
    """Build a body of the first layout with a name and these fields; return its tree and cell."""
    opcode, record = next(
        (opcode, record)
        for opcode, records in load_scheme().layouts.items()
        for record in records
        if holds(record, {"@type": name, **fields})
    )
    target = CellBuilder().store_uint(opcode, OPCODE_BITS)
    encode(record, {"@type": name, **fields}, target)
    return target.tree, target.end()


def read(codec: codecs.Codec, source: CellSlice) -> Any:
    """Decode the next value of a slice, with payloads."""
    work = codecs.Work(source.tree, load_scheme().layouts)
    return json.loads(codec.decode(source, work))


def show(tree: CellTree, cell: int) -> tuple[str | None, Any]:
    """Decode a body of unknown direction; return name and object."""
    found = decode_body(tree, cell)
    return found.name, found.value


def show_bag(boc: bytes) -> tuple[str | None, Any]:
    """Decode a body of unknown direction out of its bag; return name and object."""
    tree = parse_boc(boc)
    return show(tree, tree.roots[0])


def show_message(tree: CellTree, cell: int, *, external_in: bool) -> tuple[str | None, Any]:
    """Decode the body of a message; return name and object."""
    found = decode_message_body(serialize_boc(tree, [cell]), external_in=external_in)
    return found.name, found.value


def holds(record: Record, value: Any) -> bool:
    """Return whether a value is an object of a constructor, by its name and its keys."""
    if value.get("@type", "") != record.name:
        return False
    parts = (part.name for part in record.parts if part.is_present(value))
    return {*value, "@type"} == {*parts, "@type"}


@singledispatch
def encode(codec: codecs.Codec, value: Any, target: CellBuilder) -> None:
    """Store one value of a codec."""
    raise NotImplementedError(type(codec).__name__, value, target)


@encode.register
def _(codec: Record, value: Any, target: CellBuilder) -> None:
    for part in codec.parts:
        if part.is_present(value):
            encode(part.codec, value[part.name], target)


@encode.register
def _(codec: Union, value: Any, target: CellBuilder) -> None:
    choice = next(choice for choice in codec.choices if holds(choice.record, value))
    encode(choice.record, value, target.store_uint(choice.tag, choice.tag_bits))


encode.register(Use, lambda codec, *rest: encode(codec.union, *rest))
encode.register(Late, lambda codec, value, *rest: encode(codec._make(len(value)), value, *rest))


@encode.register
def _(codec: composite.Chunks, value: Any, target: CellBuilder) -> None:
    width = REFS_PER_CELL - (len(value) > REFS_PER_CELL)
    chunk = CellBuilder(target.tree)
    if value:
        encode(codec, value[width:], chunk)
    for item in value[:width]:
        encode(codec.inner, item, chunk)
    target.store_maybe_ref(chunk.end() if value else None)


@encode.register
def _(codec: composite.Reference, value: Any, target: CellBuilder) -> None:
    if isinstance(codec.inner, Rest):
        target.store_ref(plant(value, target.tree))
        return
    child = CellBuilder(target.tree)
    encode(codec.inner, value, child)
    target.store_ref(child.end())


@encode.register
def _(codec: composite.Wrapped, value: Any, target: CellBuilder) -> None:
    encode(codec.inner, value[composite.CELL_REFERENCE], target)


@encode.register
def _(codec: composite.Maybe, value: Any, target: CellBuilder) -> None:
    target.store_bit(value["@type"] == codecs.SOMETHING)
    if value["@type"] == codecs.SOMETHING:
        encode(codec.inner, value["value"], target)


@encode.register
def _(codec: composite.Either, value: Any, target: CellBuilder) -> None:
    target.store_bit(value["@type"] == composite.SECOND)
    encode(codec._sides[value["@type"]], value["value"], target)


@encode.register
def _(codec: composite.Hashmap, value: Any, target: CellBuilder) -> None:
    left = codec._key_bits - store_label(value["label"], codec._key_bits, target)
    if not left:
        encode(codec.inner, value["node"]["value"], target)
        return
    child = composite.Reference(composite.Hashmap(left - 1, codec.inner))
    for side in ("left", "right"):
        encode(child, value["node"][side], target)


@encode.register
def _(codec: composite.MaybeHashmap, value: Any, target: CellBuilder) -> None:
    target.store_bit(value["@type"] == composite.ROOT)
    if value["@type"] == composite.ROOT:
        encode(codec._root, value["root"], target)


def store_label(label: Any, key_bits: int, target: CellBuilder) -> int:
    """Store HmLabel and return its length."""
    name = label["@type"]
    length = int(label["len" if name == composite.SHORT else "n"])
    if name == composite.SHORT:
        target.store_bit(0).store_uint((1 << length) - 1, length).store_bit(0)
    elif name == composite.LONG:
        target.store_uint(0b10, 2).store_uint(length, key_bits.bit_length())
    else:
        target.store_uint(0b11, 2).store_uint(int(label["v"]), 1)
        target.store_uint(length, key_bits.bit_length())
        return length
    store_bits(label["s"], length, target)
    return length


def store_bits(text: str, bits: int, target: CellBuilder) -> None:
    """Store bits in the notation of ``show_bits``."""
    target.store_uint(int(text.removesuffix("_") or "0", 16) >> -bits % 4, bits)


@encode.register
def _(codec: codecs.VarUnsigned, value: Any, target: CellBuilder) -> None:
    target.store_uint(int(value["len"]), codec._length_bits)
    bits = int(value["len"]) * 8
    target.store_uint(int(value["value"]) & (1 << bits) - 1, bits)


def store_address(value: Any, target: CellBuilder) -> None:
    """Store an address of any of the four constructors."""
    name = value["@type"]
    target.store_uint(ADDRESSES.index(name), 2)
    if name == codecs.EXTERN:
        store_bits(value["external_address"], store_length(value["len"], target), target)
    if name in {codecs.STD, codecs.VAR}:
        store_anycast(value["anycast"], target)
        bits = 256 if name == codecs.STD else store_length(value["addr_len"], target)
        target.store_int(int(value["workchain_id"]), 8 if name == codecs.STD else 32)
        store_bits(value["address"], bits, target)


def store_length(length: str, target: CellBuilder) -> int:
    """Store the length of an address in bits and return it."""
    target.store_uint(int(length), 9)
    return int(length)


def store_anycast(value: Any, target: CellBuilder) -> None:
    target.store_bit(value["@type"] == codecs.SOMETHING)
    if value["@type"] == codecs.SOMETHING:
        depth = int(value["value"]["depth"])
        store_bits(value["value"]["rewrite_pfx"], depth, target.store_uint(depth, 5))


def plant(value: Any, tree: CellTree) -> int:
    """Build the cell of a value in a tree: a payload, base64 or the empty cell."""
    if value == json.loads(EMPTY_CELL):
        return CellBuilder(tree).end()
    if isinstance(value, dict):
        return rebuild(value, tree)
    return graft(tree, parse_boc(b64decode(value)))


def store_snake(data: bytes, target: CellBuilder) -> None:
    """Store bytes: as many as fit into the cell, the rest in a chain of children."""
    room = (BYTES_PER_CELL * 8 - target.bits) // 8
    target.store_bytes(data[:room])
    if data[room:]:
        child = CellBuilder(target.tree)
        store_snake(data[room:], child)
        target.store_ref(child.end())


def store_short_text(value: Any, target: CellBuilder) -> None:
    """Store a text after its length."""
    target.store_uint(int(value["len"]), LENGTH_BITS).store_bytes(value["text"].encode())


def store_chunked_text(value: Any, target: CellBuilder) -> None:
    """Store the number of chunks, then the first chunk and its successors."""
    target.store_uint(int(value["chunks"]), LENGTH_BITS)
    if int(value["chunks"]):
        store_chunks(value["text"].encode(), target)


def store_chunks(data: bytes, target: CellBuilder) -> None:
    """Store a chunk as long as possible, the rest in a chain of children."""
    room = (BYTES_PER_CELL * 8 - target.bits) // 8 - 1
    chunk = data[:room]
    target.store_uint(len(chunk), LENGTH_BITS).store_bytes(chunk)
    if data[room:]:
        child = CellBuilder(target.tree)
        store_chunks(data[room:], child)
        target.store_ref(child.end())


SIMPLE: dict[type[codecs.Codec], Callable[..., Any]] = {
    codecs.Bits: lambda codec, value, target: store_bits(value, codec.bits, target),
    codecs.Flag: lambda codec, value, target: target.store_uint(int(value), codec.bits),
    codecs.Unsigned: lambda codec, value, target: target.store_uint(int(value), codec.bits),
    codecs.Signed: lambda codec, value, target: target.store_int(int(value), codec.bits),
    codecs.Address: lambda _, value, target: store_address(value, target),
    Rest: lambda _, value, target: target.store_slice(target.tree.slice(plant(value, target.tree))),
    End: lambda *_: None,
    codecs.CommentText: lambda _, value, target: store_snake(value.encode(), target),
    codecs.SnakeText: lambda _, value, target: store_snake(value.encode(), target),
    codecs.SnakeBytes: lambda _, value, target: store_snake(bytes.fromhex(value), target),
    codecs.ShortText: lambda _, value, target: store_short_text(value, target),
    codecs.ChunkedText: lambda _, value, target: store_chunked_text(value, target),
}
for _type, _store in SIMPLE.items():
    encode.register(_type, _store)
