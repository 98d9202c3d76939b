"""Writers of rows: as structs in Python, and as JSON by the C extension.

The layout of a struct is compiled once: to one expression that builds it with all its parts, and to
a table for the extension.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET

from tonlake.api.chain.cells import add_checksum
from tonlake.api.text.encoding import (
    decode_currencies,
    encode_account,
    encode_bytes,
    encode_opcode,
    encode_shard,
)
from tonlake.api.text.native import NATIVE
from tonlake.api.v3.layout.field import HEX, Field, Inner, Kind, list_fields
from tonlake.api.v3.layout.transaction import EXTERNAL, MessageContent
from tonlake.ingest.derive.body.body import NOTHING, decode_message_body, name_opcode
from tonlake.ingest.derive.body.scheme import load_scheme

CACHED_BODIES = 8192
"""How many written bodies are cached: each occurs twice, where it is sent and received."""


class ShownBody(NamedTuple):
    """A body as JSON, and the name of its opcode."""

    content: MessageContent
    opcode_name: str | None


@cache
def list_opcodes() -> frozenset[int]:
    """Return the opcodes that have a name; bodies with other opcodes are not decoded."""
    return frozenset(filter(name_opcode, load_scheme().layouts))


class WrittenBody(NamedTuple):
    """JSON of a body's opcode name and of the body, and the input it was made from."""

    name: bytes
    content: bytes
    body: bytes | None


KEPT: tuple[dict[bytes, WrittenBody], dict[bytes, WrittenBody]] = {}, {}
"""Caches of written bodies by hash, the second of those of external messages.

The extension reads them before it calls ``write_body``.
"""


def write_body(body_hash: bytes, body: bytes | None, may_follow: bool) -> WrittenBody:  # noqa: FBT001 - the extension's
    """Return opcode name and body as JSON, and add them to the cache."""
    found = NOTHING if body is None else decode_message_body(body, external_in=may_follow)
    shown: Any = None if found.json is None else msgspec.Raw(found.json.encode())
    content = MessageContent(encode_bytes(body_hash), _write_bag(body), shown)
    texts = msgspec.json.encode(found.name), msgspec.json.encode(content)
    if sum(map(len, KEPT)) >= CACHED_BODIES:
        for kept in KEPT:
            kept.clear()
    KEPT[may_follow][body_hash] = written = WrittenBody(*texts, body)
    return written


@lru_cache(maxsize=CACHED_BODIES)
def read_body(body_hash: bytes, body: bytes | None, kind: str) -> ShownBody:
    """Return the decoded body, one object shared by all its messages."""
    found = NOTHING if body is None else decode_message_body(body, external_in=kind == EXTERNAL)
    shown = None if found.json is None else msgspec.json.decode(found.json, type=dict[str, object])
    return ShownBody(MessageContent(encode_bytes(body_hash), _write_bag(body), shown), found.name)


def _write_bag(body: bytes | None) -> str | None:
    return None if body is None else encode_bytes(add_checksum(body))


Payload: TypeAlias = dict[str, object]
"""A decoded body: ``@type`` and the fields of its layout."""


def decode_payload(boc: bytes) -> Payload | None:
    """Return the decoded payload; None if no layout matches."""
    return decode_message_body(boc, external_in=False).value


def decode_content(text: str | None) -> dict[str, object] | None:
    """Return the content of a token (TEP-64); None if it is unreadable."""
    return None if text is None else msgspec.json.decode(text, type=dict[str, object])


T = TypeVar("T")

_NO_INNER = Inner()
_ENCODERS: dict[Kind, Callable[[Any], Any]] = {
    Kind.TEXT_NUMBER: str,
    Kind.BASE64: encode_bytes,
    Kind.BASE64_UNLESS: encode_bytes,
    Kind.SHARD: encode_shard,
    Kind.OPCODE: encode_opcode,
    Kind.BAG: lambda value: encode_bytes(add_checksum(value)),
    Kind.JSON: msgspec.json.Decoder(dict[str, str] | None).decode,
}
"""Conversions of non-NULL values by kind; other kinds keep the value."""


def make_builder(struct: Callable[..., T], opcodes: str = HEX) -> Callable[..., T]:
    """Return the builder of a struct from rows, its own first; other fields are keywords."""
    return _compile_builder(struct, opcodes)


@cache
def _compile_builder(struct: Any, opcodes: str) -> Callable[..., Any]:  # noqa: ANN401
    names: dict[str, Any] = {
        "UNSET": UNSET,
        "encode_account": encode_account,
        "decode_currencies": decode_currencies,
        "read_body": read_body,
    }
    made = _Compiler(opcodes, names).write_struct(struct, _NO_INNER, "row", "**extra")
    exec(f"def build(sources, **extra):\n row = sources[0]\n return {made}", names)  # noqa: S102 - of fields alone
    build: Callable[..., Any] = names["build"]
    return build


class _Compiler:
    """Writes the expressions of structs and their fields.

    In an expression ``sources`` are the rows of a resource; ``names`` maps names to objects.
    """

    def __init__(self, opcodes: str, names: dict[str, Any]) -> None:
        self._opcodes = opcodes
        self._names = names

    def write_struct(self, struct: Any, made: Inner, row: str, extra: str = "") -> str:  # noqa: ANN401 - any struct
        fields = list_fields(struct, made, self._opcodes)
        parts = [
            f"{field.name}={self._write_field(field, row)}"
            for field in fields
            if field.kind not in {Kind.CONSTANT, Kind.EXTRA}
        ]
        return f"{self._name(struct)}({', '.join([*parts, extra])})"

    def _name(self, value: object) -> str:
        """Return the name of an object in expressions."""
        name = f"_{len(self._names)}"
        self._names[name] = value
        return name

    def _write_field(self, field: Field, row: str) -> str:
        if field.kind in {Kind.OBJECT, Kind.LIST}:
            return self._write_part(field, row)
        row = row if field.source < 0 else f"sources[{field.source}]"
        value = self._write_value(field, row)
        encode = field.read or _ENCODERS.get(field.kind)
        missing = "None" if field.is_nullable else "UNSET"
        if field.kind is Kind.JSON and not field.is_optional:
            missing = "{}"
        if isinstance(field.default, str):
            missing = repr(field.default)
        if encode is None and missing == "None":
            return value
        encoded = "value" if encode is None else f"{self._name(encode)}(value)"
        return f"{missing} if (value := {value}) is None else {encoded}"

    def _write_value(self, field: Field, row: str) -> str:
        """Return the expression of a field's value, which is None if its columns hold nothing."""
        name, beside, equals = field.column
        body = f"read_body({row}['body_hash'], {row}['body'], {row}['kind'])"
        match field.kind:
            case Kind.ACCOUNT | Kind.NAMED_ACCOUNT:
                return f"encode_account({row}[{name!r}], {row}[{beside!r}])"
            case Kind.OPCODE_NAME:
                return f"{body}.opcode_name"
            case Kind.BODY:
                return f"{body}.content"
            case Kind.CURRENCIES:
                decoded = f"decode_currencies({row}[{name!r}])"
                return f"({decoded} if {row}[{beside!r}] == {equals!r} else None)"
            case Kind.BASE64_UNLESS:
                return f"(None if {row}[{name!r}] == {row}[{beside!r}] else {row}[{name!r}])"
        # The column of an optional field may be missing.
        may_lack = field.is_optional and not field.is_nullable
        return f"{row}.get({name!r})" if may_lack else f"{row}[{name!r}]"

    def _write_part(self, field: Field, row: str) -> str:
        """Return the expression of an object, or of a list of them."""
        at, when = field.inner.source, field.inner.when
        if field.kind is Kind.LIST:
            each = self.write_struct(field.struct, field.inner, "each")
            return f"[{each} for each in sources[{at}]]"
        place = row if at < 0 else f"sources[{at}]"
        lacks = [f"{place} is None"] if at >= 0 else []
        if when:
            lacks.append(" is ".join([*(f"{place}[{name!r}]" for name in when), "None"]))
        part = self.write_struct(field.struct, field.inner, place)
        missing = "None" if field.is_nullable else "UNSET"
        return f"{missing} if {' or '.join(lacks)} else {part}" if lacks else part


_BESIDE = frozenset({Kind.ACCOUNT, Kind.NAMED_ACCOUNT, Kind.BASE64_UNLESS})


def compile_struct(
    struct: Any,  # noqa: ANN401
    opcodes: str = HEX,
    lists: Sequence[Sequence[str]] = (),
    made: Inner = _NO_INNER,
    current: int = 0,
) -> Any:  # noqa: ANN401 - the extension's
    """Return the layout of a struct whose row is the source ``current``.

    ``lists`` are the columns of the sources that are lists; ``made``: it is part of another struct.
    """
    fields = list_fields(struct, made, opcodes)
    return NATIVE.compile_layout(tuple(_describe(each, opcodes, lists, current) for each in fields))


def place_column(name: str, columns: Sequence[str]) -> tuple[str, int]:
    """Return a column with its place in rows that are lists; -1 if they lack it."""
    return name, columns.index(name) if name in columns else -1


def _describe(
    field: Field, opcodes: str, lists: Sequence[Sequence[str]], current: int
) -> tuple[Any, ...]:
    """Return a field as (kind, source, columns, prefix, missing, other)."""
    prefix = f'"{field.name}":'.encode()
    source, other = field.source, None
    names: tuple[str, ...] = (field.column.name,)
    missing = b"null" if field.is_nullable else None
    if isinstance(field.default, str):
        missing = msgspec.json.encode(field.default)
    _, beside, equals = field.column
    match field.kind:
        case Kind.CONSTANT:
            prefix, names = prefix + msgspec.json.encode(field.default), ()
        case Kind.OBJECT | Kind.LIST | Kind.BODY:
            source, names = field.inner.source, field.inner.when
    at = current if source < 0 else source
    place = partial(place_column, columns=lists[at] if lists else ())
    match field.kind:
        case Kind.OBJECT | Kind.LIST | Kind.BODY:
            other = compile_struct(field.struct, opcodes, lists, field.inner, at)
        case Kind.CURRENCIES:
            other = place(beside), equals
        case Kind.OPCODE_NAME:
            other = place(beside), equals, list_opcodes(), write_body, KEPT, place("body_hash")
        case Kind.JSON if not field.is_optional:
            missing = b"{}"
        case kind if kind in _BESIDE:
            other = place(beside)
    return field.kind.value, source, tuple(map(place, names)), prefix, missing, other


@cache
def make_row_writer(struct: Any, opcodes: str = HEX) -> Callable[[tuple[Any, ...]], Any]:  # noqa: ANN401 - any struct
    """Return the writer of the first row of a tuple, for sending only: JSON, or the struct."""
    if NATIVE is None:
        return make_builder(struct, opcodes)
    write = partial(NATIVE.write_row, compile_struct(struct, opcodes))
    return lambda sources: msgspec.Raw(write(sources))
