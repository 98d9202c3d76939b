"""Reads interfaces of accounts from rows of the contract tables and of account states."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tonlake.ingest.derive.action.interface import DNS_ITEM, Facts
from tonlake.lake.schema.contract import (
    DEX_POOLS,
    JETTON_WALLETS,
    MULTISIG_ORDERS,
    NFT_ITEMS,
    NFT_SALES,
)
from tonlake.lake.schema.transaction import ACCOUNT_STATES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Row = dict[str, Any]

NAMES_BY_CODE = {
    bytes.fromhex("9a3ec14bc098f6b44064c305222caea2800f17dda85ee6a8198a7095ede10dcf"): (
        "NominatorPool"
    ),
    bytes.fromhex("8b5ffc9ebfd39064d8d5f56e4659c826bb7593923f5ca48728be4d60af6f51f9"): DNS_ITEM,
}
"""Interfaces identified by the hash of the code alone."""


@lru_cache(maxsize=1 << 16)
def show_address(workchain: int | None, account: bytes | None) -> str | None:
    """Return a raw address; None if ``account`` is None."""
    return None if account is None else f"{workchain}:{account.hex().upper()}"


def _read_jetton_wallet(row: Row, address: str) -> Iterator[tuple[str, Facts]]:
    yield (
        "JettonWallet",
        {
            "address": address,
            "owner": show_address(row["owner_workchain"], row["owner"]),
            "jetton": show_address(row["jetton_workchain"], row["jetton"]),
        },
    )


def _read_nft_item(row: Row, address: str) -> Iterator[tuple[str, Facts]]:
    yield (
        "NftItem",
        {
            "address": address,
            "init": row["init"],
            "index": row["item_index"],
            "collection_address": show_address(row["collection_workchain"], row["collection"]),
            "owner_address": show_address(row["owner_workchain"], row["owner"]),
            "content": json.loads(row["content"]) if row["content"] else None,
        },
    )


def _read_nft_sale(row: Row, address: str) -> Iterator[tuple[str, Facts]]:
    yield from show_sale(row, json.loads(row["details"]), address)


def show_sale(
    row: Mapping[str, Any], details: Mapping[str, Any], address: str
) -> Iterator[tuple[str, Facts]]:
    """Yield the interface of a sale or an auction; ``row`` is one of ``nft_sales``."""
    nft = show_address(row["nft_workchain"], row["nft"])
    owner = show_address(row["nft_owner_workchain"], row["nft_owner"])
    marketplace = show_address(row["marketplace_workchain"], row["marketplace"])
    if row["kind"] == "getgems_sale":
        names = {"nft_address": nft, "nft_owner_address": owner, "marketplace_address": marketplace}
        yield "NftSale", {**details, **names, "address": address}
    elif row["kind"] == "getgems_auction":
        names = {
            "nft_addr": nft,
            "nft_owner": owner,
            "mp_addr": marketplace,
            "mp_fee_addr": details.get("mp_fee_address"),
            "royalty_fee_addr": details.get("royalty_fee_address"),
        }
        yield "NftAuction", {**details, **names, "address": address}


def _read_pool(row: Row, _address: str) -> Iterator[tuple[str, Facts]]:
    if row["dex"] == "dedust":
        assets = [
            {"is_ton": row[name] is None, "address": row[name]} for name in ("asset_1", "asset_2")
        ]
        yield "DedustPool", {"assets": assets}


def _read_order(row: Row, address: str) -> Iterator[tuple[str, Facts]]:
    yield "MultisigOrder", {"address": address, "signers": row["signers"] or []}


def _read_state(row: Row, address: str) -> Iterator[tuple[str, Facts]]:
    yield NAMES_BY_CODE[row["code_hash"]], {"address": address}


READERS: Mapping[str, Callable[[Row, str], Iterator[tuple[str, Facts]]]] = {
    JETTON_WALLETS.name: _read_jetton_wallet,
    NFT_ITEMS.name: _read_nft_item,
    NFT_SALES.name: _read_nft_sale,
    DEX_POOLS.name: _read_pool,
    MULTISIG_ORDERS.name: _read_order,
    ACCOUNT_STATES.name: _read_state,
}
"""Readers of the interfaces in a row, by table; account states only have known codes."""
