"""Builds structs from rows in Python: the objects that the C extension writes as JSON.

The layout of a struct is compiled once into one expression that builds it with all its parts.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

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
from tonlake.api.v3.layout.body import read_body
from tonlake.api.v3.layout.field import Inner, Kind
from tonlake.api.v3.layout.table import HEX, Field, list_fields

T = TypeVar("T")

if TYPE_CHECKING:
    from collections.abc import Callable

_NO_INNER = Inner()
_ENCODERS: dict[Kind, Callable[[Any], Any]] = {
    Kind.TEXT_NUMBER: str,
    Kind.BASE64: encode_bytes,
    Kind.BASE64_UNLESS: encode_bytes,
    Kind.SHARD: encode_shard,
    Kind.OPCODE: lambda value: encode_opcode(value, HEX),
    Kind.BAG: lambda value: encode_bytes(add_checksum(value)),
    Kind.JSON: msgspec.json.Decoder(dict[str, str] | None).decode,
}
"""Conversions of non-NULL values by kind; other kinds keep the value."""


def make_builder(
    struct: Callable[..., T], opcodes: str = HEX, made: Inner = _NO_INNER
) -> Callable[..., T]:
    """Return the function that builds a struct from the rows of a resource, its own row first.

    Values of fields without a column are passed as keyword arguments.
    """
    return _compile_builder(struct, opcodes, made)


@cache
def _compile_builder(struct: Any, opcodes: str, made: Inner) -> Callable[..., Any]:  # noqa: ANN401
    names: dict[str, Any] = {
        "UNSET": UNSET,
        "encode_account": encode_account,
        "decode_currencies": decode_currencies,
        "read_body": read_body,
    }
    row = f"sources[{max(made.source, 0)}]"
    made_struct = _Compiler(opcodes, names).write_struct(struct, made, "row", "**extra")
    exec(f"def build(sources, **extra):\n row = {row}\n return {made_struct}", names)  # noqa: S102 - of fields alone
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
