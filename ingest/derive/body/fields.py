"""Decodes single fields of bodies into Arrow columns, by layouts of the user or shipped ones.

A statement asks for the fields of a body one after another, so the last decoded bodies are kept.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.body import codec as codecs
from tonlake.ingest.derive.body import composite
from tonlake.ingest.derive.body.record import OPCODE_BITS, Condition, Record, RecordField, Union
from tonlake.ingest.derive.body.scheme import load_scheme
from tonlake.ingest.derive.body.signature import NESTED, Layout, parse_signature
from tonlake.ingest.errors import BocError, BodyError, BodyLimit, SignatureInvalid
from tonlake.lake.duck.body_table import BodyField, BodyLayout, BodyTable, FieldKind

_INT64_BITS, _DECIMAL_BITS = 63, 126
"""Bits of numbers that fit int64 and decimal(38), without the sign."""
MAX_KEPT = 8192
"""How many decoded bodies of a layout are kept: more than DuckDB passes at once in four threads."""


def read_tables(signatures: Iterable[str]) -> list[BodyTable]:
    """Return the tables that signatures define, by name, or raise SignatureInvalid."""
    layouts = [layout for text in signatures for layout in parse_signature(text)]
    if not layouts:
        return []
    tables: dict[str, list[BodyLayout]] = {}
    try:
        for layout in layouts:
            tables.setdefault(layout.name, []).append(describe_layout(layout))
    except RecursionError as error:
        raise SignatureInvalid(NESTED) from error
    return [BodyTable(name, tuple(found)) for name, found in tables.items()]


def describe_layout(layout: Layout) -> BodyLayout:
    """Return the layout with the functions that decode its fields."""
    decode = lru_cache(MAX_KEPT)(partial(_decode_fields, layout))

    def fit(bodies: pa.Array) -> pa.Array:
        return pa.array([decode(body) is not None for body in bodies.to_pylist()], pa.bool_())

    def read(place: int, bodies: pa.Array, *, is_plain: bool) -> pa.Array:
        texts = []
        for body in bodies.to_pylist():
            found = decode(body)
            text = found[place] if found else ""
            shown = text.strip('"') if is_plain else text
            texts.append(shown if text else None)
        return pa.array(texts, pa.string())

    fields: dict[str, BodyField] = {}
    for place, part in enumerate(layout.record.parts):
        if isinstance(part.codec, Condition):
            continue
        kind, path = _classify(part.codec)
        name = part.name or f"field_{place + 1}"
        is_plain = not path and kind not in {"json", "string", "address"}
        fields[name] = BodyField(name, kind, path, partial(read, place, is_plain=is_plain))
    for place, part in enumerate(layout.record.parts):
        for inner in _list_inside(part.codec):
            kind, path = _classify(inner.codec)
            if inner.name not in fields:
                decode_group = partial(read, place, is_plain=False)
                fields[inner.name] = BodyField(inner.name, kind, (inner.name, *path), decode_group)
    return BodyLayout(layout.opcode, tuple(fields.values()), fit)


def _list_inside(codec: codecs.Codec) -> Iterator[RecordField]:
    """Yield the fields of a group in brackets, in its own cell or not, which have columns, too.

    A group without a name has its fields in the object around it.
    """
    group = codec.inner if isinstance(codec, composite.Reference) else codec
    for part in group.parts if isinstance(group, Record) and not group.name else ():
        if part.name:
            yield part
        else:
            yield from _list_inside(part.codec)


def _decode_fields(layout: Layout, body: bytes | None) -> list[str] | None:
    """Return the JSON of each field, empty where it is absent; None for a body that misfits."""
    if body is None:
        return None
    try:
        tree = parse_boc(body)
        source = tree.slice(tree.roots[0])
        if source.load_uint(OPCODE_BITS) != layout.opcode:
            return None
        work = codecs.Work(tree, load_scheme().layouts)
        found = layout.record.decode_fields(source, work)
        if layout.record.is_whole:
            composite.check_end(source)
        return [work.assemble(text) for text in found]
    except (BocError, BodyError, BodyLimit, RecursionError):  # the last: types of types of types
        return None


def _classify(codec: codecs.Codec) -> tuple[FieldKind, tuple[str, ...]]:
    """Return the SQL type of a field, and the path of its value in the JSON."""
    for types, kind in _KINDS:
        if isinstance(codec, types):
            return kind(codec)
    return "json", ()


def _name_number(bits: int, int_bits: int = _INT64_BITS) -> FieldKind:
    """Return the SQL type of a number, by its bits without the sign."""
    return "int" if bits <= int_bits else "amount" if bits <= _DECIMAL_BITS else "text"


def _classify_inside(codec: Any, *names: str) -> tuple[FieldKind, tuple[str, ...]]:  # noqa: ANN401
    kind, path = _classify(codec.inner)
    return (kind, ()) if kind == "json" else (kind, (*names, *path))


def _classify_union(codec: Any) -> tuple[FieldKind, tuple[str, ...]]:  # noqa: ANN401 - Union
    """Unwrap a type of one constructor with one field, such as Coins."""
    parts = codec.choices[0].record.parts
    is_single = len(codec.choices) == len(parts) == 1
    if not is_single or not isinstance(parts[0].codec, codecs.VarUnsigned):
        return "json", ()
    kind, path = _classify(parts[0].codec)
    return kind, (parts[0].name, *path)


_KINDS: tuple[tuple[Any, Callable[[Any], tuple[FieldKind, tuple[str, ...]]]], ...] = (
    (codecs.Flag, lambda _codec: ("bool", ())),
    (codecs.Unsigned, lambda codec: (_name_number(codec.bits), ())),
    (codecs.Signed, lambda codec: (_name_number(codec.bits - 1), ())),
    (codecs.VarUnsigned, lambda codec: (_name_number(8 * codec.limit - 8, 0), ("value",))),
    (codecs.Bits, lambda codec: ("text" if codec.bits % 8 else "bytes", ())),
    (codecs.SnakeBytes, lambda _codec: ("bytes", ())),
    ((codecs.SnakeText, codecs.CommentText), lambda _codec: ("string", ())),
    ((codecs.ShortText, codecs.ChunkedText), lambda _codec: ("string", ("text",))),
    (codecs.Address, lambda _codec: ("address", ())),
    (composite.Reference, _classify_inside),
    (composite.Wrapped, lambda codec: _classify_inside(codec, composite.CELL_REFERENCE)),
    (composite.Maybe, lambda codec: _classify_inside(codec, "value")),
    (Union, _classify_union),
)
