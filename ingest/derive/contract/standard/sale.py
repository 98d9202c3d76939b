"""Trading contracts: sales and auctions of NFTs (Getgems, Telemint), and pools of DeDust."""

from typing import Any

from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.contract.stack import (
    Address,
    Detection,
    Finding,
    Mismatch,
    Question,
    Results,
    Trigger,
    Value,
    address_fields,
    raw_text,
)
from tonlake.ingest.derive.contract.standard.token import read_text
from tonlake.lake.schema.contract import DEX_POOLS, NFT_SALES

SALE, AUCTION, TELEMINT = "getgems_sale", "getgems_auction", "telemint"
_SALE_MAGIC, _AUCTION_MAGIC = 0x46495850, 0x415543  # "FIXP", "AUC"
_SALE_VALUES, _AUCTION_VALUES = 10, 19
_SALE_V4_VALUES, _AUCTION_V4_VALUES = 13, 26


def detect_sale(me: Address) -> Detection:
    """Ask get_sale_data: its magic distinguishes fixed-price sales from auctions."""
    stack = yield Question(me, "get_sale_data")
    magic = Results(stack, 1, more=True).integer()
    if magic == _SALE_MAGIC:
        return [_read_sale(Results(stack[1:], _SALE_VALUES))]
    if magic == _AUCTION_MAGIC:
        return [_read_auction(Results(stack[1:], _AUCTION_VALUES))]
    raise Mismatch("another kind of sale")


def detect_sale_v4(me: Address) -> Detection:
    """Ask get_fix_price_data_v4; the jetton prices at its end are ignored."""
    stack = yield Question(me, "get_fix_price_data_v4")
    return [_read_sale(Results(stack, _SALE_V4_VALUES))]


def detect_auction_v4(me: Address) -> Detection:
    """Ask get_auction_data_v4."""
    stack: list[Value] = yield Question(me, "get_auction_data_v4")
    # If it begins with three integers, the first one is the activation flag.
    leading = 1 if len(stack) == _AUCTION_V4_VALUES and isinstance(stack[2], int) else 0
    return [_read_auction(Results(stack[leading:], _AUCTION_V4_VALUES - leading))]


def detect_telemint(me: Address) -> Detection:
    """Ask a Telemint item for its name, the state and terms of its auction, and royalties."""
    name = Results((yield Question(me, "get_telemint_token_name")), 1).take()
    state = Results((yield Question(me, "get_telemint_auction_state")), 5)
    config = Results((yield Question(me, "get_telemint_auction_config")), 6)
    royalty = Results((yield Question(me, "royalty_params")), 3)
    if name is None or isinstance(name, int):
        raise Mismatch("the name is not a slice")
    details = {
        "token_name": read_text(name),
        **state.read("raw_address bidder_address, text bid bid_ts min_bid, small end_time"),
        "beneficiary_address": _take_terms_address(config),
        **config.read("text initial_min_bid max_bid min_bid_step min_extend_time duration"),
        **royalty.read(
            "small royalty_numerator royalty_denominator, raw_address royalty_destination"
        ),
    }
    return [_make_finding(TELEMINT, {**address_fields("nft", me), **details})]


def _take_terms_address(stack: Results) -> str | None:
    """Return an address, or None for the zero returned if there are no terms."""
    value = stack.take()
    return None if value == 0 else Results([value], 1).raw_address()


_SALE = (
    "boolean is_complete, small created_at, address marketplace nft nft_owner, text full_price, "
    "raw_address marketplace_fee_address, text marketplace_fee, raw_address royalty_address, "
    "take royalty_amount"
)
_AUCTION = (
    "boolean end_flag, small end_time, address marketplace nft nft_owner, text last_bid, "
    "raw_address last_member, small min_step, raw_address mp_fee_address, "
    "small mp_fee_factor mp_fee_base, raw_address royalty_fee_address, "
    "small royalty_fee_factor royalty_fee_base, text max_bid min_bid, "
    "small created_at last_bid_at, boolean is_canceled"
)


def _read_sale(stack: Results) -> Finding:
    details = stack.read(_SALE)
    amount = details["royalty_amount"]
    if amount is not None and not isinstance(amount, int):
        raise Mismatch("expected an integer or null")
    details["royalty_amount"] = None if amount is None else str(amount)
    return _make_finding(SALE, details)


def _read_auction(stack: Results) -> Finding:
    return _make_finding(AUCTION, stack.read(_AUCTION))


_COLUMNS = (
    *address_fields("nft", None),
    *address_fields("nft_owner", None),
    *address_fields("marketplace", None),
    "created_at",
)


def _make_finding(kind: str, read: dict[str, Any]) -> Finding:
    """Return a row: what has no column of its own is a detail."""
    columns = {name: read.get(name) for name in _COLUMNS}
    details = {name: value for name, value in read.items() if name not in _COLUMNS}
    return Finding(NFT_SALES.name, {"kind": kind, **columns, "details": details})


_POOL_CODES = frozenset(
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
    named = Results((yield Question(FACTORY, "get_pool_address", (int(is_stable), *slices))), 1)
    if named.address() != me:
        raise Mismatch("the factory returns another pool")
    first, second = map(_read_asset, slices)
    fields = {
        "dex": "dedust",
        "pool_type": "stable" if is_stable else "volatile",
        "asset_1": raw_text(first),
        "asset_2": raw_text(second),
        **reserves.read("amount reserve_1 reserve_2"),
        "fee": f"{fee.integer()}/{fee.integer()}",
    }
    return [Finding(DEX_POOLS.name, fields)]


def _read_asset(value: Value) -> Address | None:
    """Read native$0000 or jetton$0001 workchain_id:int8 address:uint256."""
    if not isinstance(value, CellSlice):
        raise Mismatch("expected a slice with an asset")
    start = value.copy()
    kind = start.load_uint(4)
    if kind == _NATIVE:
        return None
    if kind != _JETTON:
        raise Mismatch("the asset is neither TON nor a jetton")
    return Address(start.load_int(8), start.load_bytes(32))


TRIGGERS = (
    Trigger("get_sale_data", NFT_SALES, detect_sale),
    Trigger("get_fix_price_data_v4", NFT_SALES, detect_sale_v4),
    Trigger("get_auction_data_v4", NFT_SALES, detect_auction_v4),
    Trigger("get_telemint_token_name", NFT_SALES, detect_telemint),
    Trigger("get_assets", DEX_POOLS, detect_pool, _POOL_CODES),
)
