"""Reads the messages of a contract from the ABI of the Tolk compiler, as constructors.

Source: the JSON with ``abi_schema_version``: ``declarations`` of structures, aliases and enums,
whose types are numbers of ``unique_types``. Structures with a prefix of 32 bits are messages.
"""

from __future__ import annotations

import msgspec

from tonlake.ingest.derive.body.abi import VARIABLE, make_field, name_type
from tonlake.ingest.derive.body.grammar import Constructor, Linked, Named, Type, apply
from tonlake.ingest.errors import SignatureInvalid

_VERSION = '"abi_schema_version"'
_CELL = Named("Cell")
_SIZED = {"uintN": "uint", "intN": "int", "bitsN": "bits"}
_VARIABLE = {
    **dict.fromkeys(("varuintN", "varuint"), "VarUInteger"),
    **dict.fromkeys(("varintN", "varint"), "VarInteger"),
}
_SIMPLE: dict[str, Type] = {
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


def is_tolk(text: str) -> bool:
    """Return whether a JSON text is an ABI of Tolk."""
    return _VERSION in text


def read_tolk_abi(text: str) -> list[Constructor]:
    """Return the structures of an ABI, of which those with 32-bit prefixes are messages.

    A type that has no layout of its own here (unions, maps, generic structures) is shown raw, with
    all that follows it. Raises SignatureInvalid if ``text`` is not such an ABI, or has a type
    number that does not exist.
    """
    try:
        abi = msgspec.json.decode(text.encode("utf-8", "replace"), type=_TolkAbi)
    except msgspec.DecodeError as error:
        raise SignatureInvalid(f"the signature is not a Tolk ABI: {error}") from error
    reader = _Reader(abi)
    return [reader.convert(each) for each in abi.declarations if each.kind == "struct"]


class _Reader:
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
    return _SIMPLE.get(of.kind)
