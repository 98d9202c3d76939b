"""Shared parts of the rules for NFTs: items, marketplaces, and the messages of auctions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from tonlake.ingest.derive.action.interface import DNS_ITEM, NftItem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tonlake.ingest.derive.action.block import Block
    from tonlake.ingest.derive.action.interface import Interfaces

GETGEMS, FRAGMENT = "getgems", "fragment"
FILL_UP = 0x370FEC51
"""Payment by the auction of an item: telemint and DNS items, op::fill_up."""
OUTBID = 0x557CEA20
CANCEL_AUCTION, FINISH_AUCTION = 0x5616C572, 0xB95616B6
CLOSE_AUCTION = 0x20C9EB18
"""Auctions of Getgems, version 4; 20c9eb18 ends one either way."""

DNS_COLLECTION = "0:B774D95EB20543F186C06B371AB88AD704F7E256130CAF96189368A7D0CB6CCF"
"""Collection of the domains under .ton."""
DNS_ITEM_CODE = "i1/8nr/TkGTY1fVuRlnIJrt1k5I/XKSHKL5NYK9vUfk="
"""Code hash of the items of that collection; other collections may use it too."""

_TELEGRAM_HOST = "nft.fragment.com"


def find_item(interfaces: Interfaces, account: str | None) -> NftItem:
    """Return the item at an account; an unknown one has no collection."""
    known = interfaces.nft_item(account)
    return known or NftItem(account or "", None, None, None, {})


def is_telegram_item(item: NftItem) -> bool:
    """Return whether the metadata of an item are those of a Telegram username or number."""
    uri = item.content.get("uri")
    return isinstance(uri, str) and urlsplit(uri).hostname == _TELEGRAM_HOST


def is_domain(interfaces: Interfaces, item: NftItem) -> bool:
    """Return whether an item is a domain with its own auction, by its collection or code."""
    facts = interfaces.find(item.address, "NftItem") or {}
    return (
        item.collection == DNS_COLLECTION
        or interfaces.has(item.address, DNS_ITEM)
        or facts.get("code_hash") == DNS_ITEM_CODE
    )


class FillUps(NamedTuple):
    """Payments of an auction: to the beneficiary, and as royalty."""

    payout: Block | None
    royalty: Block | None


def split_fill_ups(blocks: Iterable[Block]) -> FillUps:
    """Return the payments of an auction by kind; of several, the first one sent is the royalty."""
    found = [block for block in blocks if block.opcode == FILL_UP]
    found.sort(key=lambda block: block.message.created_lt or 0)
    if len(found) > 1:
        return FillUps(found[1], found[0])
    return FillUps(found[0] if found else None, None)
