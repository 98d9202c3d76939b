"""Reads the messages of a Tact contract from its ABI, as constructors.

Source: the JSON file ``<contract>.abi`` of the Tact compiler: ``types``, of which those with a
``header`` are messages, and their fields with ``kind``, ``type``, ``format``, ``optional``.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from tonlake.ingest.derive.body.grammar import Constructor, Field, Linked, Named, Type
from tonlake.ingest.errors import SignatureInvalid

_OPCODE_BITS = 32
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_COINS, _CELL = Named("Coins"), Named("Cell")
_SIMPLE: dict[str, Type] = {
    "bool": Named("Bool"),
    "address": Named("MsgAddress"),
    "cell": Linked(_CELL),
    "slice": Linked(_CELL),
    "builder": Linked(_CELL),
    "string": Linked(Named("SnakeText")),
}
VARIABLE: dict[str, Type] = {
    f"varuint{limit}": Named("VarUInteger", (Named(str(limit)),)) for limit in (16, 32)
}
"""Types of numbers with a length, by their names in the ABIs."""
_FORMATS: dict[str, Type] = {"coins": _COINS, **VARIABLE}
_DEFAULT_BITS = 257
_KEY_BITS = {"int": 257, "uint": 256, "address": 267}


class _FieldType(msgspec.Struct, frozen=True):
    """Type of a field; ``kind`` is simple, or dict with ``key`` and ``value``."""

    kind: Literal["simple", "dict"]
    type: str = ""
    optional: bool | None = None
    format: int | str | bool | None = None
    key: str = ""
    key_format: int | str | None = msgspec.field(default=None, name="keyFormat")


class _AbiField(msgspec.Struct, frozen=True):
    """A field of a message or structure."""

    name: str
    type: _FieldType


class _AbiType(msgspec.Struct, frozen=True):
    """A structure; a message if it has a ``header``, its opcode."""

    name: str
    fields: tuple[_AbiField, ...]
    header: int | None = None


class _Abi(msgspec.Struct, frozen=True):
    """The parts of an ABI that are read."""

    types: tuple[_AbiType, ...]


def read_abi(text: str) -> list[Constructor]:
    """Return the messages and structures of an ABI.

    Raises:
        SignatureInvalid: ``text`` is not an ABI, or has an unknown type.
    """
    try:
        abi = msgspec.json.decode(text.encode("utf-8", "replace"), type=_Abi)
    except msgspec.DecodeError as error:
        raise SignatureInvalid(f"the signature is not a Tact ABI: {error}") from error
    named = {each.name: each for each in abi.types}
    return [_convert(each, named) for each in abi.types]


def _convert(of: _AbiType, named: dict[str, _AbiType]) -> Constructor:
    bits = 0 if of.header is None else _OPCODE_BITS
    if of.header is not None and not 0 <= of.header < 1 << _OPCODE_BITS:
        raise SignatureInvalid(f"the header of {of.name[:60]} is not a 32-bit opcode")
    fields = [make_field(of.name, each.name, _convert_type(of, each, named)) for each in of.fields]
    return Constructor(of.name, of.header or 0, bits, tuple(fields), name_type(of.name))


def make_field(owner: str, name: str, of: Type) -> Field:
    """Return a field of a structure; raise SignatureInvalid if its name is not valid."""
    if not _NAME.fullmatch(name):
        raise SignatureInvalid(f"{name[:60]!r} in {owner[:60]} is not a valid field name")
    return Field(name, of)


def name_type(name: str) -> str:
    """Return the type name of a structure; no shipped type has that name."""
    return f"Abi_{name}"


def _convert_type(of: _AbiType, field: _AbiField, named: dict[str, _AbiType]) -> Type:
    kind = field.type
    if kind.kind == "dict":
        bits = kind.key_format if isinstance(kind.key_format, int) else _KEY_BITS.get(kind.key, 0)
        # Maps are shown as cells: the ABI gives the types of their values as Tact names them.
        return Named("Maybe", (Linked(_CELL),)) if bits else _refuse(of, field)
    found = _convert_simple(kind)
    if kind.type in named and found is None:
        found = Named(name_type(kind.type))
    if found is None:
        return _refuse(of, field)
    if kind.optional and kind.type != "address":  # a missing address is addr_none
        return Named("Maybe", (found,))
    return found


def _convert_simple(kind: _FieldType) -> Type | None:
    """Return the type of a simple value; None for structures and unknown types."""
    if kind.format == "remainder":
        return _CELL
    if kind.type in {"int", "uint"}:
        if isinstance(kind.format, str):
            return _FORMATS.get(kind.format)
        return Named(f"{kind.type}{_DEFAULT_BITS if kind.format is None else int(kind.format)}")
    if kind.type == "fixed-bytes" and isinstance(kind.format, int):
        return Named(f"bits{8 * kind.format}")
    return _SIMPLE.get(kind.type)


def _refuse(of: _AbiType, field: _AbiField) -> Type:
    raise SignatureInvalid(
        f"unknown type {field.type.type[:60]!r} of {field.name[:60]} in {of.name[:60]}"
    )
