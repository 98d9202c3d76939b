"""Liquidity pools of DeDust, which swap two assets for one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.contract.detection import Finding, Question, raw_text
from tonlake.ingest.derive.contract.stack import Address, Mismatch, Results
from tonlake.lake.schema.contract import DEX_POOLS

if TYPE_CHECKING:
    from tonlake.ingest.derive.contract.detection import Detection
    from tonlake.ingest.derive.contract.stack import Value

CODE_HASHES = frozenset(
    map(
        bytes.fromhex,
        (
            "1275095b6da3911292406f4f4386f9e780099b854c6dee9ee2895ddce70927c1",
            "778f0d3fe6482c50888970df5e787f40f3a4ab282170c035a5920877058c99d3",
            "c0f9d14fbc8e14f0d72cba2214165eee35836ab174130912baf9dbfa43ead562",
        ),
    )
)
FACTORY = Address(
    0, bytes.fromhex("5f0564fb5f604783db57031ce1cf668a88d4d4d6da6de4db222b4b920d6fd800")
)
_NATIVE, _JETTON = 0b0000, 0b0001


def detect_pool(me: Address) -> Detection:
    """Ask a pool for its assets, type, reserves and fee, and the factory for its address."""
    assets = Results((yield Question(me, "get_assets")), 2)
    slices = (assets.take(), assets.take())
    is_stable = Results((yield Question(me, "is_stable")), 1).boolean()
    reserves = Results((yield Question(me, "get_reserves")), 2)
    fee = Results((yield Question(me, "get_trade_fee")), 2)
    told = Results((yield Question(FACTORY, "get_pool_address", (int(is_stable), *slices))), 1)
    if told.address() != me:
        raise Mismatch("the factory names another pool")
    first, second = map(_read_asset, slices)
    fields = {
        "dex": "dedust",
        "pool_type": "stable" if is_stable else "volatile",
        "asset_1": raw_text(first),
        "asset_2": raw_text(second),
        "reserve_1": reserves.amount(),
        "reserve_2": reserves.amount(),
        "fee": f"{fee.integer()}/{fee.integer()}",
    }
    return [Finding(DEX_POOLS.name, fields)]


def _read_asset(value: Value) -> Address | None:
    """Read native$0000 or jetton$0001 workchain_id:int8 address:uint256."""
    if not isinstance(value, CellSlice):
        raise Mismatch("no slice where an asset is expected")
    start = value.copy()
    kind = start.load_uint(4)
    if kind == _NATIVE:
        return None
    if kind != _JETTON:
        raise Mismatch("an asset that is neither TON nor a jetton")
    return Address(start.load_int(8), start.load_bytes(32))
