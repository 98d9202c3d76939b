"""``MsgAddress`` with its four constructors. TL-B: block.tlb, MsgAddressExt and MsgAddressInt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.body.bits import load_bits, store_bits
from ingest.body.codec import Codec, Object, Value, Work, expect_number, expect_object
from ingest.errors import BodyError

if TYPE_CHECKING:
    from ingest.cell.build import CellBuilder
    from ingest.cell.slice import CellSlice

NONE, EXTERN, STD, VAR = "addr_none", "addr_extern", "addr_std", "addr_var"
_CONSTRUCTORS = (NONE, EXTERN, STD, VAR)
_KEYS = {
    NONE: (),
    EXTERN: ("len", "external_address"),
    STD: ("anycast", "workchain_id", "address"),
    VAR: ("anycast", "addr_len", "workchain_id", "address"),
}
_MAX_ANYCAST_BITS = 30
_NOTHING, _SOMETHING = "nothing_from_maybe", "something_from_maybe"


class Address(Codec):
    """Any message address, as the object of its constructor."""

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read an object whose ``@type`` is the constructor."""
        del work
        name = _CONSTRUCTORS[source.load_uint(2)]
        value: Object = {"@type": name}
        if name == EXTERN:
            bits = source.load_uint(9)
            value |= {"len": str(bits), "external_address": load_bits(source, bits)}
        if name not in {STD, VAR}:
            return value
        value["anycast"] = _load_anycast(source)
        bits = 256
        if name == VAR:
            bits = source.load_uint(9)
            value["addr_len"] = str(bits)
        value["workchain_id"] = str(source.load_int(32 if name == VAR else 8))
        value["address"] = load_bits(source, bits)
        return value

    def encode(self, value: Value, target: CellBuilder) -> None:
        """Store such an object."""
        name = value.get("@type") if isinstance(value, dict) else None
        if not isinstance(name, str) or name not in _CONSTRUCTORS:
            raise BodyError(f"{value!r} is no address")
        fields = expect_object(value, *_KEYS[name])
        target.store_uint(_CONSTRUCTORS.index(name), 2)
        if name == EXTERN:
            bits = expect_number(fields["len"])
            target.store_uint(bits, 9)
            store_bits(fields["external_address"], bits, target)
        if name not in {STD, VAR}:
            return
        _store_anycast(fields["anycast"], target)
        bits = 256
        if name == VAR:
            bits = expect_number(fields["addr_len"])
            target.store_uint(bits, 9)
        target.store_int(expect_number(fields["workchain_id"]), 32 if name == VAR else 8)
        store_bits(fields["address"], bits, target)


def _load_anycast(source: CellSlice) -> Value:
    """Read ``Maybe Anycast``: 1 to 30 bits that rewrite the head of the address."""
    if not source.load_bit():
        return {"@type": _NOTHING}
    depth = source.load_uint(5)
    if not 0 < depth <= _MAX_ANYCAST_BITS:
        raise BodyError(f"anycast of {depth} bits")
    info: Object = {"@type": "anycast_info", "depth": str(depth)}
    info["rewrite_pfx"] = load_bits(source, depth)
    return {"@type": _SOMETHING, "value": info}


def _store_anycast(value: Value, target: CellBuilder) -> None:
    """Store what ``_load_anycast`` gives."""
    if value == {"@type": _NOTHING}:
        target.store_bit(0)
        return
    info = expect_object(expect_object(value, "value")["value"], "depth", "rewrite_pfx")
    depth = expect_number(info["depth"])
    if not 0 < depth <= _MAX_ANYCAST_BITS:
        raise BodyError(f"anycast of {depth} bits")
    target.store_bit(1).store_uint(depth, 5)
    store_bits(info["rewrite_pfx"], depth, target)
