"""The messages of a Tact contract out of its ABI, as constructors.

Source: the JSON file ``<contract>.abi`` that the Tact compiler writes: ``types``, of which those
with a ``header`` are messages, and their fields with ``kind``, ``type``, ``format``, ``optional``.
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
_FORMATS: dict[str, Type] = {
    "coins": _COINS,
    "varuint16": Named("VarUInteger", (Named("16"),)),
    "varuint32": Named("VarUInteger", (Named("32"),)),
}
_DEFAULT_BITS = 257
_KEY_BITS = {"int": 257, "uint": 256, "address": 267}


class _FieldType(msgspec.Struct, frozen=True):
    """``kind`` is simple, or dict with ``key`` and ``value``."""

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
    """A structure; with ``header``, its opcode, a message."""

    name: str
    fields: tuple[_AbiField, ...]
    header: int | None = None


class _Abi(msgspec.Struct, frozen=True):
    """What is read of an ABI."""

    types: tuple[_AbiType, ...]


def read_abi(text: str) -> list[Constructor]:
    """Return the messages and structures of an ABI.

    Raises:
        SignatureInvalid: it is no ABI, or has a type that is not known.
    """
    try:
        abi = msgspec.json.decode(text.encode("utf-8", "replace"), type=_Abi)
    except msgspec.DecodeError as error:
        raise SignatureInvalid(f"the signature is no ABI of a Tact contract: {error}") from error
    named = {each.name: each for each in abi.types}
    return [_convert(each, named) for each in abi.types]


def _convert(of: _AbiType, named: dict[str, _AbiType]) -> Constructor:
    bits = 0 if of.header is None else _OPCODE_BITS
    if of.header is not None and not 0 <= of.header < 1 << _OPCODE_BITS:
        raise SignatureInvalid(f"the header of {of.name[:60]} is no opcode of 32 bits")
    fields = []
    for each in of.fields:
        if not _NAME.fullmatch(each.name):
            raise SignatureInvalid(f"{each.name[:60]!r} in {of.name[:60]} is no name of a field")
        fields.append(Field(each.name, _convert_type(of, each, named)))
    return Constructor(of.name, of.header or 0, bits, tuple(fields), _name_type(of.name))


def _name_type(name: str) -> str:
    """Return the type of a structure, by a name that no shipped type has."""
    return f"Abi_{name}"


def _convert_type(of: _AbiType, field: _AbiField, named: dict[str, _AbiType]) -> Type:
    kind = field.type
    if kind.kind == "dict":
        bits = kind.key_format if isinstance(kind.key_format, int) else _KEY_BITS.get(kind.key, 0)
        # Its values are shown as cells: the ABI names their types for the contract's own code.
        return Named("Maybe", (Linked(_CELL),)) if bits else _refuse(of, field)
    found = _convert_simple(kind)
    if kind.type in named and found is None:
        found = Named(_name_type(kind.type))
    if found is None:
        return _refuse(of, field)
    if kind.optional and kind.type != "address":  # an address that is missing is addr_none
        return Named("Maybe", (found,))
    return found


def _convert_simple(kind: _FieldType) -> Type | None:
    """Return the type of a value; None of a structure or an unknown one."""
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
        f"type {field.type.type[:60]!r} of {field.name[:60]} in {of.name[:60]} is not known"
    )
