"""Converts interface records of recorded traces to rows: their accounts when recorded.

A record is a JSON object: account to kind to fields, with the names of TON Center's tables. Its
numbers went through floating point, so large ones are not exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.ingest.derive.contract.record import make_table
from tonlake.ingest.derive.contract.stack import Address, address_fields, parse_address, raw_text
from tonlake.ingest.derive.contract.standard.sale import AUCTION, SALE
from tonlake.ingest.errors import DecodeError
from tonlake.lake.schema.contract import DEX_POOLS, JETTON_WALLETS, NFT_ITEMS, NFT_SALES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from tonlake.ingest.derive.contract.record import Row
    from tonlake.lake.schema import Table

RECORDED_TABLES: tuple[Table, ...] = (JETTON_WALLETS, NFT_ITEMS, NFT_SALES, DEX_POOLS)


def make_recorded(
    records: Mapping[str, Mapping[str, Any]], mc_seqno: int, lt: int, utime: int
) -> dict[str, pa.Table]:
    """Return the rows of the contracts recorded with a trace.

    They belong to its first masterchain block, with logical time and Unix time of its root.

    Raises:
        ValueError: an address or a number cannot be parsed.
        DecodeError: the type of a field does not match its column.
    """
    rows: dict[str, list[Row]] = {table.name: [] for table in RECORDED_TABLES}
    for address, kinds in sorted(records.items()):
        workchain, account = parse_address(address)
        head = {
            "workchain": workchain,
            "account": account,
            "mc_seqno": mc_seqno,
            "lt": lt,
            "utime": utime,
            "code_hash": None,
            "data_hash": None,
        }
        for kind, fields in kinds.items():
            if kind in _READERS and isinstance(fields, dict):
                table, read = _READERS[kind]
                try:
                    rows[table.name].append(head | read(fields))
                except (AttributeError, TypeError) as error:
                    raise DecodeError(f"{kind} of {address}: {error}") from error
    return {table.name: make_table(table, rows[table.name]) for table in RECORDED_TABLES}


def _read_address(fields: Row, name: str) -> Address | None:
    text = fields.get(name)
    return None if text is None else parse_address(text)


def _read_integer(value: float | str | None) -> str | None:
    return None if value is None else str(int(value))


def _read_jetton_wallet(fields: Row) -> Row:
    return {
        "balance": int(fields["balance"]),
        **address_fields("owner", _read_address(fields, "owner")),
        **address_fields("jetton", parse_address(fields["jetton"])),
        "is_claimed": None,
    }


def _read_item(fields: Row) -> Row:
    return {
        "init": bool(fields.get("init", True)),
        "item_index": str(int(fields["index"])),
        **address_fields("collection", _read_address(fields, "collection_address")),
        **address_fields("owner", _read_address(fields, "owner_address")),
        "content": fields.get("content"),
    }


def _read_sale(fields: Row) -> Row:
    details = {
        "is_complete": fields.get("is_complete"),
        "full_price": _read_integer(fields.get("full_price")),
    }
    return {
        "kind": SALE,
        **address_fields("nft", _read_address(fields, "nft_address")),
        **address_fields("nft_owner", _read_address(fields, "nft_owner_address")),
        **address_fields("marketplace", _read_address(fields, "marketplace_address")),
        "created_at": None,
        "details": details,
    }


def _read_auction(fields: Row) -> Row:
    return {
        "kind": AUCTION,
        **address_fields("nft", _read_address(fields, "nft_addr")),
        **address_fields("nft_owner", _read_address(fields, "nft_owner")),
        **address_fields("marketplace", _read_address(fields, "mp_addr")),
        "created_at": None,
        "details": {"last_bid": _read_integer(fields.get("last_bid"))},
    }


def _read_pool(fields: Row) -> Row:
    first, second = (
        None if asset["is_ton"] else raw_text(parse_address(asset["address"]))
        for asset in fields["assets"]
    )
    unknown = dict.fromkeys(("pool_type", "reserve_1", "reserve_2", "fee"))
    return {"dex": "dedust", "asset_1": first, "asset_2": second, **unknown}


_READERS: dict[str, tuple[Table, Callable[[Row], Row]]] = {
    "JettonWallet": (JETTON_WALLETS, _read_jetton_wallet),
    "NftItem": (NFT_ITEMS, _read_item),
    "NftSale": (NFT_SALES, _read_sale),
    "NftAuction": (NFT_SALES, _read_auction),
    "DedustPool": (DEX_POOLS, _read_pool),
}
