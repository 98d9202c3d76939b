"""Interfaces of the accounts of a trace: jetton wallets, NFT items, sales, auctions, pools.

Facts of an account are keyed by the name of the interface and hold the results of its get-methods,
as of the time of the trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

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
