"""Reads the messages of a contract from the ABI of the Tact or the Tolk compiler, as constructors.

Tact's JSON file ``<contract>.abi`` has ``types``, of which those with a ``header`` are messages,
and their fields with ``kind``, ``type``, ``format``, ``optional``. What does not fit into a cell
is in its last reference, and the ABI does not say so: the compiler (storage/allocator) counts the
largest size of each field.

Tolk's, with ``abi_schema_version``, has ``declarations`` of structures, aliases and enums, whose
types are numbers of ``unique_types``. Structures with a prefix of 32 bits are messages.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from tonlake.ingest.derive.body.grammar import Constructor, Field, Group, Linked, Named, Type, apply
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
    f"{name}{limit}": apply(kind, limit)
    for name, kind in (("varuint", "VarUInteger"), ("varint", "VarInteger"))
    for limit in (16, 32)
}
"""Types of numbers with a length, by their names in the ABIs."""
_FORMATS: dict[str, Type] = {"coins": _COINS, **VARIABLE}
_DEFAULT_BITS = 257
_SIZES = {
    "coins": 124,
    "varuint16": 124,
    "varuint32": 253,
    "varint16": 124,
    "varint32": 253,
    "bool": 1,
    "address": 267,
}
_ROOM, _RESERVED = (1023, 4), (1, 1)
"""Bits and references of a cell, and those of the first that the compiler leaves free."""

_Size = tuple[int, int]
"""The most bits, and references, that something takes."""
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


def _convert(of: _AbiType, named: dict[str, _AbiType], sizes: dict[str, _Size]) -> Constructor:
    if of.header is not None and not 0 <= of.header < 1 << _OPCODE_BITS:
        raise SignatureInvalid(f"the header of {of.name[:60]} is not a 32-bit opcode")
    fields = [make_field(of.name, each.name, _convert_type(of, each, named)) for each in of.fields]
    needs = [_measure(field.type, named, sizes) for field in of.fields]
    held = _fill_cell(of.name, fields, needs, _find_room(of))
    return Constructor(of.name, of.header or 0, _count_tag(of), held, name_type(of.name))


def _count_tag(of: _AbiType) -> int:
    return 0 if of.header is None else _OPCODE_BITS


def _find_room(of: _AbiType) -> _Size:
    """Return the room for fields in the first cell of a structure."""
    return _ROOM[0] - _RESERVED[0] - _count_tag(of), _ROOM[1] - _RESERVED[1]


def _fill_cell(
    name: str, fields: list[Field], needs: list[_Size], room: _Size
) -> tuple[Field, ...]:
    """Return the fields of a cell; the last of them is a reference to those without room."""
    count = _count_fitting(needs, room)
    if count == len(fields):
        return tuple(fields)
    if not count and room == _ROOM:
        raise SignatureInvalid(f"{fields[0].name[:60]} in {name[:60]} does not fit into a cell")
    rest = _fill_cell(name, fields[count:], needs[count:], _ROOM)
    return (*fields[:count], Field("", Linked(Group(rest))))


def _count_fitting(needs: list[_Size], room: _Size) -> int:
    """Return how many fields fit into a cell, besides a reference if they are not all."""
    bits, refs = map(sum, zip((0, 0), *needs, strict=True))
    if bits <= room[0] and refs <= room[1]:
        return len(needs)
    bits_left, refs_left = room[0], room[1] - 1
    for count, (bits, refs) in enumerate(needs):
        bits_left, refs_left = bits_left - bits, refs_left - refs
        if bits_left < 0 or refs_left < 0:
            return count
    return len(needs)


def _measure(kind: _FieldType, named: dict[str, _AbiType], sizes: dict[str, _Size]) -> _Size:
    """Return the size of a value; ``sizes`` has those of structures that were measured before."""
    if kind.kind == "dict":
        return 1, 1
    if kind.format == "remainder":
        return 0, 0
    flag = int(bool(kind.optional))
    if kind.type in named and kind.format != "ref":
        bits, refs = _measure_structure(named[kind.type], named, sizes)
        return bits + flag, refs
    if kind.type in {"int", "uint", "fixed-bytes", "bool", "address"}:
        known = _SIZES.get(str(kind.format)) or _SIZES.get(kind.type)
        number = kind.format if isinstance(kind.format, int) else _KEY_BITS.get(kind.type, 0)
        bits = known or number * (8 if kind.type == "fixed-bytes" else 1)
        return bits + flag * (kind.type != "address"), 0
    return flag, 1


def _measure_structure(of: _AbiType, named: dict[str, _AbiType], sizes: dict[str, _Size]) -> _Size:
    if of.name not in sizes:
        sizes[of.name] = (0, 0)  # one that contains itself is refused later
        needs = [_measure(field.type, named, sizes) for field in of.fields]
        count = _count_fitting(needs, _find_room(of))
        bits, refs = map(
            sum, zip((_count_tag(of), int(count < len(needs))), *needs[:count], strict=True)
        )
        sizes[of.name] = bits, refs
    return sizes[of.name]


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
        found = Linked(found) if kind.format == "ref" else found
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
        return apply(kind.type, _DEFAULT_BITS if kind.format is None else int(kind.format))
    if kind.type == "fixed-bytes" and isinstance(kind.format, int):
        return apply("bits", 8 * kind.format)
    return _SIMPLE.get(kind.type)


def _refuse(of: _AbiType, field: _AbiField) -> Type:
    raise SignatureInvalid(
        f"unknown type {field.type.type[:60]!r} of {field.name[:60]} in {of.name[:60]}"
    )


_VERSION = '"abi_schema_version"'
_SIZED = {"uintN": "uint", "intN": "int", "bitsN": "bits"}
_VARIABLE = {
    **dict.fromkeys(("varuintN", "varuint"), "VarUInteger"),
    **dict.fromkeys(("varintN", "varint"), "VarInteger"),
}
_TOLK_SIMPLE: dict[str, Type] = {
    "coins": Named("Coins"),
    "bool": Named("Bool"),
    "cell": Linked(_CELL),
    "remaining": _CELL,
    "string": Linked(Named("SnakeText")),
    **dict.fromkeys(
        ("address", "addressOpt", "addressInt", "addressExt", "addressAny"), Named("MsgAddress")
    ),
    **VARIABLE,
}
_ADDRESSES = ("address", "addressInt")


class _Kind(msgspec.Struct, frozen=True):
    """A type by its kind, and the numbers of types that it is made of."""

    kind: str
    n: int = 0
    inner: int | None = msgspec.field(default=None, name="inner_ty_idx")
    struct_name: str | None = None
    alias_name: str | None = None
    enum_name: str | None = None


class _Prefix(msgspec.Struct, frozen=True):
    """The opcode or tag of a structure."""

    prefix_num: int
    prefix_len: int


class _TolkField(msgspec.Struct, frozen=True):
    """A field of a structure."""

    name: str
    ty_idx: int


class _Declaration(msgspec.Struct, frozen=True):
    """A structure, an alias (of ``target``) or an enum (encoded as ``encoded``)."""

    kind: str
    name: str
    prefix: _Prefix | None = None
    fields: tuple[_TolkField, ...] = ()
    target: int | None = msgspec.field(default=None, name="target_ty_idx")
    encoded: int | None = msgspec.field(default=None, name="encoded_as_ty_idx")


class _TolkAbi(msgspec.Struct, frozen=True):
    """The parts of an ABI that are read."""

    unique_types: tuple[_Kind, ...]
    declarations: tuple[_Declaration, ...]


def read_abi(text: str) -> list[Constructor]:
    """Return the messages and structures of an ABI of either compiler.

    A type of Tolk that has no layout of its own here (unions, maps, generic structures) is shown
    raw, with all that follows it. Raises SignatureInvalid if ``text`` is not such an ABI, or has a
    type number that does not exist.
    """
    name = "Tolk" if _VERSION in text else "Tact"
    kind: type[_TolkAbi | _Abi] = _TolkAbi if name == "Tolk" else _Abi
    try:
        abi = msgspec.json.decode(text.encode("utf-8", "replace"), type=kind)
    except msgspec.DecodeError as error:
        raise SignatureInvalid(f"the signature is not a {name} ABI: {error}") from error
    if isinstance(abi, _TolkAbi):
        reader = _AbiReader(abi)
        return [reader.convert(each) for each in abi.declarations if each.kind == "struct"]
    named = {each.name: each for each in abi.types}
    sizes: dict[str, _Size] = {}
    return [_convert(each, named, sizes) for each in abi.types]


class _AbiReader:
    def __init__(self, abi: _TolkAbi) -> None:
        self._types = abi.unique_types
        self._named = {(each.kind, each.name): each for each in abi.declarations}

    def convert(self, of: _Declaration) -> Constructor:
        """Return the constructor of a structure."""
        fields = []
        for each in of.fields:
            found = self._find(each.ty_idx, of.name)
            fields.append(make_field(of.name, each.name, found or _CELL))
            if found is None:
                break
        tag, bits = (0, 0) if of.prefix is None else msgspec.structs.astuple(of.prefix)
        if tag < 0 or tag.bit_length() > bits:
            raise SignatureInvalid(f"the prefix of {of.name[:60]} does not have {bits} bits")
        return Constructor(of.name, tag, bits, tuple(fields), name_type(of.name))

    def _find(self, number: int | None, owner: str, depth: int = 0) -> Type | None:
        """Return the type of a number; None if it has no layout here."""
        if number is None or depth > len(self._types):
            return None
        if not 0 <= number < len(self._types):
            raise SignatureInvalid(f"{owner[:60]} has no type {number}")
        of = self._types[number]
        if of.kind == "StructRef" and ("struct", of.struct_name) in self._named:
            return Named(name_type(str(of.struct_name)))
        if of.kind in {"AliasRef", "EnumRef"}:
            return self._follow(of, owner, depth)
        if of.kind in {"nullable", "cellOf"}:
            inner = self._find(of.inner, owner, depth + 1)
            return None if inner is None else self._wrap(of, inner)
        return _make_simple(of)

    def _follow(self, of: _Kind, owner: str, depth: int) -> Type | None:
        """Return the type that an alias or an enum is stored as."""
        is_alias = of.kind == "AliasRef"
        key = ("alias", of.alias_name or "") if is_alias else ("enum", of.enum_name or "")
        found = self._named.get(key)
        if found is None:
            return None
        return self._find(found.target if is_alias else found.encoded, owner, depth + 1)

    def _wrap(self, of: _Kind, inner: Type) -> Type:
        if of.kind == "cellOf":
            return Linked(inner)
        is_address = of.inner is not None and self._types[of.inner].kind in _ADDRESSES
        # A missing address is addr_none.
        return inner if is_address else Named("Maybe", (inner,))


def _make_simple(of: _Kind) -> Type | None:
    """Return the type of a simple value; None for other kinds."""
    if of.kind in _SIZED:
        return apply(_SIZED[of.kind], of.n)
    if of.kind in _VARIABLE:
        return apply(_VARIABLE[of.kind], of.n)
    return _TOLK_SIMPLE.get(of.kind)
