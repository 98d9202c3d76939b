"""Hypothesis strategies for the values of the codecs of message bodies."""

import json
from base64 import b64encode
from collections.abc import Callable
from functools import cache, partial, singledispatch
from typing import Any, TypeAlias

from hypothesis import strategies as st

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.body import codec as codecs
from tonlake.ingest.derive.body import composite
from tonlake.ingest.derive.body.record import EMPTY_CELL, End, Record, Rest, Union
from tonlake.ingest.derive.body.scheme import Use

Values: TypeAlias = "st.SearchStrategy[Any]"
MAX_LEVELS = 3
SHORT_LABEL_BITS = 8


@singledispatch
def values(codec: codecs.Codec, level: int = 0) -> Values:
    """Values of one codec; below a few levels only the smallest ones."""
    raise NotImplementedError(type(codec).__name__, level)


def _choices(union: Union, level: int = 0) -> Values:
    choices = [choice.record for choice in union.choices]
    if level > MAX_LEVELS:
        choices = [min(choices, key=lambda record: len(record.parts))]
    return st.one_of([records(record, level + 1) for record in choices])


def _maybe(codec: composite.Maybe, level: int = 0) -> Values:
    nothing: Values = st.just({"@type": codecs.NOTHING})
    if level > MAX_LEVELS:
        return nothing
    inner = st.deferred(lambda: values(codec.inner, level + 1))
    return nothing | inner.map(lambda value: {"@type": codecs.SOMETHING, "value": value})


def _either(codec: composite.Either, level: int = 0) -> Values:
    def tag(name: str, value: codecs.Value) -> codecs.Value:
        return {"@type": name, "value": value}

    return st.one_of(
        [values(side, level).map(partial(tag, name)) for name, side in codec._sides.items()]
    )


def _maybe_edges(codec: composite.MaybeHashmap, level: int = 0) -> Values:
    root = values(codec._root, level).map(lambda value: {"@type": composite.ROOT, "root": value})
    return st.just({"@type": composite.EMPTY}) | root


def _signed(codec: codecs.Signed, _level: int = 0) -> Values:
    half = 1 << codec.bits >> 1
    return st.integers(-half, half - 1).map(str)


def _var_number(codec: codecs.VarUnsigned, _level: int = 0) -> Values:
    counts = st.integers(0, codec.limit - 1)
    return counts.flatmap(partial(var_number, is_signed=codec.is_signed))


def _short_text(text: str) -> codecs.Value:
    return {"@type": "telemint_text", "len": str(len(text.encode())), "text": text}


def _chunked_text(text: str) -> codecs.Value:
    return {"@type": "text", "chunks": "1" if text else "0", "text": text}


@st.composite
def records(draw: st.DrawFn, record: Record, level: int = 0) -> codecs.Object:
    """Objects of one constructor; conditional fields follow the fields that they depend on."""
    fields: codecs.Object = {"@type": record.name} if record.name else {}
    for part in record.parts:
        if part.is_present(fields):
            fields[part.name] = draw(values(part.codec, level))
    return fields


@st.composite
def edges(draw: st.DrawFn, codec: composite.Hashmap, level: int = 0) -> codecs.Value:
    """Dictionaries of one to a few keys, with labels of all three forms."""
    left = codec._key_bits
    length = left
    if left and level <= MAX_LEVELS and draw(st.booleans()):
        length = draw(st.integers(0, left - 1))
    label = draw(labels(length))
    if length == left:
        leaf = draw(values(codec.inner, level + 1))
        return edge(label, {"@type": composite.LEAF, "value": leaf})
    child = composite.Hashmap(left - length - 1, codec.inner)
    sides = {side: draw(edges(child, level + 1)) for side in ("left", "right")}
    return edge(label, {"@type": composite.FORK, **sides})


def edge(label: codecs.Value, node: codecs.Value) -> codecs.Value:
    return {"@type": composite.EDGE, "label": label, "node": node}


@cache
def labels(length: int) -> Values:
    n = str(length)
    forms = [
        bits(length).map(lambda s: {"@type": composite.LONG, "n": n, "s": s}),
        st.sampled_from("01").map(lambda v: {"@type": composite.SAME, "v": v, "n": n}),
    ]
    if length <= SHORT_LABEL_BITS:
        forms.append(bits(length).map(lambda s: {"@type": composite.SHORT, "len": n, "s": s}))
    return st.one_of(forms)


@cache
def bits(count: int) -> Values:
    """Bit strings of one length."""
    return st.integers(0, (1 << count) - 1).map(lambda number: codecs.show_bits(number, count))


@cache
def var_number(count: int, *, is_signed: bool) -> Values:
    """Numbers in a fixed number of bytes, leading zeroes allowed."""
    least = -(1 << 8 * count >> 1) if is_signed else 0
    numbers = st.integers(least, least + (1 << 8 * count) - 1)
    kind = "var_int" if is_signed else "var_uint"
    return numbers.map(lambda n: {"@type": kind, "len": str(count), "value": str(n)})


@cache
def addresses() -> Values:
    """Addresses of all four constructors."""
    anycast = st.just({"@type": codecs.NOTHING}) | st.integers(1, 30).flatmap(
        lambda depth: bits(depth).map(
            lambda prefix: {
                "@type": codecs.SOMETHING,
                "value": {"@type": "anycast_info", "depth": str(depth), "rewrite_pfx": prefix},
            }
        )
    )
    std = st.fixed_dictionaries(
        {
            "@type": st.just(codecs.STD),
            "anycast": anycast,
            "workchain_id": st.integers(-128, 127).map(str),
            "address": bits(256),
        }
    )
    var = st.integers(0, 60).flatmap(
        lambda length: st.fixed_dictionaries(
            {
                "@type": st.just(codecs.VAR),
                "anycast": anycast,
                "addr_len": st.just(str(length)),
                "workchain_id": st.integers(-(1 << 31), (1 << 31) - 1).map(str),
                "address": bits(length),
            }
        )
    )
    extern = st.integers(0, 60).flatmap(
        lambda length: bits(length).map(
            lambda text: {"@type": codecs.EXTERN, "len": str(length), "external_address": text}
        )
    )
    return st.just({"@type": codecs.NONE}) | std | var | extern


@st.composite
def _raw_cells(draw: st.DrawFn) -> codecs.Value:
    """Cells too short to begin with an opcode, in base64; or the empty cell."""
    count = draw(st.integers(0, 31))
    cell = CellBuilder().store_uint(draw(st.integers(0, (1 << count) - 1)), count)
    children = draw(st.integers(0, 1))
    for _ in range(children):
        cell.store_ref(CellBuilder(cell.tree).store_uint(draw(st.integers(0, 255)), 8).end())
    if not count and not children:
        return dict(json.loads(EMPTY_CELL))
    return b64encode(serialize_boc(cell.tree, [cell.end()])).decode()


RAW_CELLS = _raw_cells()


def _wrapped(codec: composite.Wrapped, level: int = 0) -> Values:
    return values(codec.inner, level).map(lambda value: {composite.CELL_REFERENCE: value})


OF_CODEC: dict[type[codecs.Codec], Callable[..., Values]] = {
    Record: records,
    Union: _choices,
    Use: lambda codec, level=0: values(codec.union, level),
    composite.Reference: lambda codec, level=0: st.deferred(lambda: values(codec.inner, level + 1)),
    composite.Wrapped: _wrapped,
    composite.Maybe: _maybe,
    composite.Either: _either,
    composite.Hashmap: edges,
    composite.MaybeHashmap: _maybe_edges,
    codecs.Unsigned: lambda codec, *_: st.integers(0, (1 << codec.bits) - 1).map(str),
    codecs.Signed: _signed,
    codecs.Flag: lambda *_: st.booleans(),
    codecs.Bits: lambda codec, *_: bits(codec.bits),
    codecs.VarUnsigned: _var_number,
    codecs.Address: lambda *_: addresses(),
    Rest: lambda *_: RAW_CELLS,
    End: lambda *_: st.just(json.loads(EMPTY_CELL)),
    codecs.CommentText: lambda *_: st.text(max_size=200),
    codecs.SnakeText: lambda *_: st.text(max_size=200),
    codecs.SnakeBytes: lambda *_: st.binary(max_size=300).map(lambda data: data.hex().upper()),
    codecs.ShortText: lambda *_: st.text(max_size=20).map(_short_text),
    codecs.ChunkedText: lambda *_: st.text(max_size=2).map(_chunked_text),
}
for _type, _make in OF_CODEC.items():
    values.register(_type, _make)
