"""Interfaces of the accounts of a trace: jetton wallets, NFT items, sales, auctions, pools.

Facts of an account are keyed by the name of the interface and hold the results of its get-methods,
as of the time of the trace. They are read from rows of the contract tables and of account states.
"""

from __future__ import annotations

import base64
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.ingest.derive.action.body import Body, read_body
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


Facts = dict[str, Any]

DNS_ITEM = "DnsItem"
"""Interface of domains that run their own auction."""


class JettonWallet(NamedTuple):
    """A jetton wallet: its owner and the master of its jetton."""

    owner: str
    jetton: str


class NftItem(NamedTuple):
    """An NFT item; ``content`` has the fields of its metadata."""

    address: str
    item_index: int | None
    collection: str | None
    owner: str | None
    content: Facts


class NftSale(NamedTuple):
    """A fixed-price sale."""

    address: str
    marketplace: str | None
    nft: str | None
    owner: str | None
    price: int | None


class NftAuction(NamedTuple):
    """An auction."""

    address: str
    marketplace: str | None
    nft: str | None
    owner: str | None
    last_bid: int | None


class Interfaces:
    """Facts of accounts, by account and then by interface."""

    def __init__(self, facts: Mapping[str, Facts] | None = None) -> None:
        """Store known facts; an account without interfaces may have empty facts."""
        self._facts = facts or {}
        self.missed: set[str] = set()
        """Accounts that were looked up, but are not among the facts."""

    def find(self, account: str | None, name: str) -> Facts | None:
        """Return the fields of an interface of the account; None if it does not have it."""
        if account is None:
            return None
        known = self._facts.get(account)
        if known is None:
            self.missed.add(account)
            return None
        facts = known.get(name)
        return facts if isinstance(facts, dict) else None

    def join(self, facts: Mapping[str, Facts]) -> Interfaces:
        """Return these facts, and those of accounts that were missed."""
        return Interfaces({**facts, **self._facts})

    def has(self, account: str | None, name: str) -> bool:
        """Return whether the account has an interface."""
        return self.find(account, name) is not None

    def jetton_wallet(self, account: str | None) -> JettonWallet | None:
        """Return the jetton wallet at an account, if it is one."""
        facts = self.find(account, "JettonWallet")
        if facts is None or not facts.get("owner") or not facts.get("jetton"):
            return None
        return JettonWallet(facts["owner"], facts["jetton"])

    def jetton_of(self, account: str | None) -> str | None:
        """Return the master of the jetton wallet at an account; None if it is none."""
        wallet = self.jetton_wallet(account)
        return None if wallet is None else wallet.jetton

    def data(self, account: str | None) -> Body | None:
        """Return a reader of the root cell of an account's data, as far as it is known."""
        facts = self.find(account, "data_boc") or {}
        return read_body(base64.b64decode(facts["data_boc"])) if facts.get("data_boc") else None

    def nft_item(self, account: str | None) -> NftItem | None:
        """Return the NFT item at an account, if it is one."""
        facts = self.find(account, "NftItem")
        if facts is None or account is None:
            return None
        content = facts.get("content")
        return NftItem(
            address=account,
            item_index=exact(facts.get("index")),
            collection=facts.get("collection_address"),
            owner=facts.get("owner_address"),
            content=content if isinstance(content, dict) else {},
        )

    def nft_sale(self, account: str | None) -> NftSale | None:
        """Return the fixed-price sale at an account, if it is one."""
        facts = self.find(account, "NftSale")
        if facts is None or account is None:
            return None
        return NftSale(
            address=account,
            marketplace=facts.get("marketplace_address"),
            nft=facts.get("nft_address"),
            owner=facts.get("nft_owner_address"),
            price=exact(facts.get("full_price")),
        )

    def nft_auction(self, account: str | None) -> NftAuction | None:
        """Return the auction at an account, if it is one."""
        facts = self.find(account, "NftAuction")
        if facts is None or account is None:
            return None
        return NftAuction(
            address=account,
            marketplace=facts.get("mp_addr"),
            nft=facts.get("nft_addr"),
            owner=facts.get("nft_owner"),
            last_bid=exact(facts.get("last_bid")),
        )


def exact(number: object) -> int | None:
    """Return an integer that may be stored as a float or as text."""
    return int(number) if isinstance(number, int | float | str) else None


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
