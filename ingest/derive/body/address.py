"""``MsgAddress`` with its four constructors. TL-B: block.tlb, MsgAddressExt and MsgAddressInt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.body.bits import load_bits
from tonlake.ingest.derive.body.codec import Codec, Object, Value, Work
from tonlake.ingest.derive.body.composite import NOTHING, SOMETHING
from tonlake.ingest.derive.body.program import Op
from tonlake.ingest.errors import BodyError

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.slice import CellSlice

NONE, EXTERN, STD, VAR = "addr_none", "addr_extern", "addr_std", "addr_var"
_CONSTRUCTORS = (NONE, EXTERN, STD, VAR)
_MAX_ANYCAST_BITS = 30


class Address(Codec):
    """Any message address, as the object of its constructor."""

    op = Op.ADDRESS

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


def _load_anycast(source: CellSlice) -> Value:
    """Read ``Maybe Anycast``: 1 to 30 bits that rewrite the head of the address."""
    if not source.load_bit():
        return {"@type": NOTHING}
    depth = source.load_uint(5)
    if not 0 < depth <= _MAX_ANYCAST_BITS:
        raise BodyError(f"anycast of {depth} bits")
    info: Object = {"@type": "anycast_info", "depth": str(depth)}
    info["rewrite_pfx"] = load_bits(source, depth)
    return {"@type": SOMETHING, "value": info}
