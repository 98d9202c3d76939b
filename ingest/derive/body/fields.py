"""Decodes single fields of bodies into Arrow columns, by layouts of the user or shipped ones.

Native code runs the compiled layout over all bodies of a batch and writes only that field; the
codecs decode the bodies that it declines.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.body.body import MAX_PAYLOADS, SIGNED, WALLET, show_fields
from tonlake.ingest.derive.body.codec import Codec, Object, Work
from tonlake.ingest.derive.body.composite import CELL_REFERENCE, Maybe, Reference, Wrapped
from tonlake.ingest.derive.body.native import NATIVE
from tonlake.ingest.derive.body.program import Program
from tonlake.ingest.derive.body.record import Union
from tonlake.ingest.derive.body.scheme import OPCODE_BITS, load_scheme
from tonlake.ingest.derive.body.signature import Layout, parse_signature
from tonlake.ingest.derive.body.simple import Address, Bits, Flag, Signed, Unsigned, VarUnsigned
from tonlake.ingest.derive.body.text import ChunkedText, ShortText, SnakeBytes, SnakeText
from tonlake.ingest.errors import BocError, BodyError
from tonlake.lake.duck.body_table import BodyField, BodyLayout, BodyTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tonlake.lake.duck.body_table import FieldKind

_INT64_BITS, _DECIMAL_BITS = 63, 126
"""Bits of numbers that fit int64 and decimal(38), without the sign."""
_WHOLE = -1
"""Instead of a field: whether the body fits."""


def read_tables(signatures: Iterable[str]) -> list[BodyTable]:
    """Return the tables that signatures define, one for each name.

    Raises:
        SignatureInvalid: a signature cannot be parsed.
    """
    layouts = [layout for text in signatures for layout in parse_signature(text)]
    if not layouts:
        return []
    bodies = _Bodies(layouts)
    tables: dict[str, list[BodyLayout]] = {}
    for layout in layouts:
        tables.setdefault(layout.name, []).append(bodies.describe(layout))
    return [BodyTable(name, tuple(found)) for name, found in tables.items()]


class _Bodies:
    """Decodes bodies by layouts; not thread-safe."""

    def __init__(self, layouts: Iterable[Layout]) -> None:
        """Compile the layouts together with the shipped ones, which decode payloads."""
        self._nodes: dict[int, int] = {}
        self._native: Any = None
        if NATIVE is None:
            return
        program, shipped = Program(), load_scheme()
        self._nodes = {id(each.record): program.add(each.record) for each in layouts}
        unions = (shipped.union(SIGNED), shipped.union(WALLET))
        self._native = NATIVE.make(*program.link(shipped.layouts, unions))

    def describe(self, layout: Layout) -> BodyLayout:
        """Return the layout with the functions that decode its fields."""
        fields = []
        for place, part in enumerate(layout.record.parts):
            kind, path = _classify(part.codec)
            name = part.name or f"field_{place + 1}"
            is_plain = not path and kind not in {"json", "string", "address"}
            decode = partial(self._decode, layout, place, is_plain=is_plain)
            fields.append(BodyField(name, kind, path, decode))
        return BodyLayout(layout.opcode, tuple(fields), partial(self._fit, layout))

    def _fit(self, layout: Layout, bodies: pa.Array) -> pa.Array:
        _texts, fits = self._read(layout, _WHOLE, bodies, is_plain=True)
        return fits

    def _decode(self, layout: Layout, field: int, bodies: pa.Array, *, is_plain: bool) -> pa.Array:
        texts, _fits = self._read(layout, field, bodies, is_plain=is_plain)
        return texts

    def _read(
        self, layout: Layout, field: int, bodies: pa.Array, *, is_plain: bool
    ) -> tuple[pa.Array, pa.Array]:
        """Return the JSON of a field (NULL if absent), and whether each body fits."""
        if self._native is None:
            return _join(
                [_read_by_codecs(layout, field, each.as_py(), is_plain=is_plain) for each in bodies]
            )
        count = len(bodies)
        _valid, offsets, data = bodies.buffers()
        offsets = offsets.slice(4 * bodies.offset)
        ends, texts, valid, declined = NATIVE.fields(
            self._native,
            self._nodes[id(layout.record)],
            layout.opcode,
            field,
            is_plain,
            offsets,
            data or b"",
            count,
        )
        bits = pa.py_buffer(valid)
        found = pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(texts), bits)
        fits = pa.Array.from_buffers(pa.bool_(), count, [None, bits])
        if not declined:
            return found, fits
        values = list(zip(found.to_pylist(), fits.to_pylist(), strict=True))
        for at in declined:
            values[at] = _read_by_codecs(layout, field, bodies[at].as_py(), is_plain=is_plain)
        return _join(values)


def _join(values: list[tuple[str | None, bool]]) -> tuple[pa.Array, pa.Array]:
    return (
        pa.array([text for text, _fits in values], pa.string()),
        pa.array([fits for _text, fits in values], pa.bool_()),
    )


def _read_by_codecs(
    layout: Layout, field: int, body: bytes | None, *, is_plain: bool
) -> tuple[str | None, bool]:
    """Decode one body as native code does."""
    value = None if body is None else _decode_whole(layout, body)
    if value is None:
        return None, False
    if field == _WHOLE:
        return None, True
    name = layout.record.parts[field].name
    if name not in value:
        return None, False
    text = msgspec.json.encode(value[name]).decode()
    return text.strip('"') if is_plain else text, True


def _decode_whole(layout: Layout, body: bytes) -> Object | None:
    try:
        tree = parse_boc(body)
        source = tree.slice(tree.roots[0])
        if source.load_uint(OPCODE_BITS) != layout.opcode:
            return None
        work = Work(tree)
        return show_fields(layout.record.decode(source, work), work, MAX_PAYLOADS)
    except (BocError, BodyError, RecursionError):
        return None


def _classify(codec: Codec) -> tuple[FieldKind, tuple[str, ...]]:
    """Return the SQL type of a field, and the path of its value in the JSON."""
    for types, kind in _KINDS:
        if isinstance(codec, types):
            return kind(codec)
    return "json", ()


def _classify_number(codec: Any) -> tuple[FieldKind, tuple[str, ...]]:  # noqa: ANN401 - of two types
    size = codec.bits - isinstance(codec, Signed)
    return ("int" if size <= _INT64_BITS else "amount" if size <= _DECIMAL_BITS else "text"), ()


def _classify_var(codec: Any) -> tuple[FieldKind, tuple[str, ...]]:  # noqa: ANN401 - VarUnsigned
    return "amount" if 8 * (codec.limit - 1) <= _DECIMAL_BITS else "text", ("value",)


def _classify_bits(codec: Any) -> tuple[FieldKind, tuple[str, ...]]:  # noqa: ANN401 - Bits
    return "text" if codec.bits % 8 else "bytes", ()


def _classify_inside(codec: Any, *names: str) -> tuple[FieldKind, tuple[str, ...]]:  # noqa: ANN401
    kind, path = _classify(codec.inner)
    return (kind, ()) if kind == "json" else (kind, (*names, *path))


def _classify_union(codec: Any) -> tuple[FieldKind, tuple[str, ...]]:  # noqa: ANN401 - Union
    """Unwrap a type of one constructor with one field, such as Coins."""
    parts = codec.choices[0].record.parts
    is_wrapper = len(codec.choices) == len(parts) == 1 and isinstance(parts[0].codec, VarUnsigned)
    if not is_wrapper:
        return "json", ()
    kind, path = _classify(parts[0].codec)
    return kind, (parts[0].name, *path)


_KINDS: tuple[tuple[Any, Callable[[Any], tuple[FieldKind, tuple[str, ...]]]], ...] = (
    (Flag, lambda _codec: ("bool", ())),
    ((Unsigned, Signed), _classify_number),
    (VarUnsigned, _classify_var),
    (Bits, _classify_bits),
    (SnakeBytes, lambda _codec: ("bytes", ())),
    (SnakeText, lambda _codec: ("string", ())),
    ((ShortText, ChunkedText), lambda _codec: ("string", ("text",))),
    (Address, lambda _codec: ("address", ())),
    (Reference, _classify_inside),
    (Wrapped, lambda codec: _classify_inside(codec, CELL_REFERENCE)),
    (Maybe, lambda codec: _classify_inside(codec, "value")),
    (Union, _classify_union),
)
