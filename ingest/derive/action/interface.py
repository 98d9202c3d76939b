"""Interfaces of the accounts of a trace: jetton wallets, NFT items, sales, auctions, pools.

Facts of an account are keyed by the name of the interface and hold the results of its get-methods,
as of the time of the trace. They are read from rows of the contract tables and of account states.
"""

import base64
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from tonlake.ingest.derive.action.body import Body, read_body
from tonlake.lake.schema import (
    ACCOUNT_STATES,
    DEX_POOLS,
    JETTON_WALLETS,
    MULTISIG_ORDERS,
    NFT_ITEMS,
    NFT_SALES,
)

Facts = dict[str, Any]

DNS_ITEM = "DnsItem"
"""Interface of domains that run their own auction."""


class WalletParties(NamedTuple):
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

    def show(self) -> Facts:
        """Return the columns that name the item."""
        return {"asset": self.collection, "asset_secondary": self.address}


class Listing(NamedTuple):
    """A fixed-price sale or an auction of an item; ``price`` is the last bid of an auction."""

    owner: str | None
    marketplace: str | None
    price: int | None
    nft: str | None


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

    def join(self, facts: Mapping[str, Facts]) -> "Interfaces":
        """Return these facts, and those of accounts that were missed."""
        return Interfaces({**facts, **self._facts})

    def has(self, account: str | None, name: str) -> bool:
        """Return whether the account has an interface."""
        return self.find(account, name) is not None

    def jetton_wallet(self, account: str | None) -> WalletParties | None:
        """Return the jetton wallet at an account, if it is one."""
        facts = self.find(account, "JettonWallet")
        if facts is None or not facts.get("owner") or not facts.get("jetton"):
            return None
        return WalletParties(facts["owner"], facts["jetton"])

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

    def nft_sale(self, account: str | None) -> Listing | None:
        """Return the fixed-price sale at an account, if it is one."""
        names = ("nft_owner_address", "marketplace_address", "full_price", "nft_address")
        return self._listing(account, "NftSale", names)

    def nft_auction(self, account: str | None) -> Listing | None:
        """Return the auction at an account, if it is one."""
        names = ("nft_owner", "mp_addr", "last_bid", "nft_addr")
        return self._listing(account, "NftAuction", names)

    def _listing(self, account: str | None, name: str, names: tuple[str, ...]) -> Listing | None:
        facts = self.find(account, name)
        if facts is None:
            return None
        owner, marketplace, price, nft = map(facts.get, names)
        return Listing(owner, marketplace, exact(price), nft)


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


def _show(row: Mapping[str, Any], name: str) -> str | None:
    """Return the raw address in a column and its workchain."""
    return show_address(row[f"{name}_workchain"], row[name])


def _read_nft_item(row: Row, address: str) -> Facts:
    fields = {
        "address": address,
        "init": row["init"],
        "index": row["item_index"],
        "collection_address": _show(row, "collection"),
        "owner_address": _show(row, "owner"),
        "content": json.loads(row["content"]) if row["content"] else None,
    }
    return {"NftItem": fields}


def show_sale(row: Mapping[str, Any], details: Facts, address: str) -> Facts:
    """Return the interface of a sale or an auction; ``row`` is one of ``nft_sales``."""
    nft, owner, marketplace = (_show(row, name) for name in ("nft", "nft_owner", "marketplace"))
    if row["kind"] == "getgems_sale":
        names = {"nft_address": nft, "nft_owner_address": owner, "marketplace_address": marketplace}
        return {"NftSale": {**details, **names, "address": address}}
    if row["kind"] != "getgems_auction":
        return {}
    names = {
        "nft_addr": nft,
        "nft_owner": owner,
        "mp_addr": marketplace,
        "mp_fee_addr": details.get("mp_fee_address"),
        "royalty_fee_addr": details.get("royalty_fee_address"),
    }
    return {"NftAuction": {**details, **names, "address": address}}


def _read_pool(row: Row, _address: str) -> Facts:
    addresses = row["asset_1"], row["asset_2"]
    assets = [{"is_ton": address is None, "address": address} for address in addresses]
    return {"DedustPool": {"assets": assets}} if row["dex"] == "dedust" else {}


READERS: Mapping[str, Callable[[Row, str], Facts]] = {
    JETTON_WALLETS.name: lambda row, address: {
        "JettonWallet": {
            "address": address,
            **{name: _show(row, name) for name in ("owner", "jetton")},
        }
    },
    NFT_ITEMS.name: _read_nft_item,
    NFT_SALES.name: lambda row, address: show_sale(row, json.loads(row["details"]), address),
    DEX_POOLS.name: _read_pool,
    MULTISIG_ORDERS.name: lambda row, address: {
        "MultisigOrder": {"address": address, "signers": row["signers"] or []}
    },
    ACCOUNT_STATES.name: lambda row, address: {
        NAMES_BY_CODE[row["code_hash"]]: {"address": address}
    },
}
"""Readers of the interfaces in a row, by table; account states only have known codes."""
