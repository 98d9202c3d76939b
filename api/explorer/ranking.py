"""Renders the lists of top accounts, jettons and NFT collections."""

from __future__ import annotations

from itertools import count
from typing import Any

from tonlake.api.explorer.frame import Question, Shown, choose, list_page, read_offset
from tonlake.api.text.encoding import Address
from tonlake.api.v3.page.book import describe_addresses
from tonlake.api.v3.page.history import check_derived
from tonlake.api.v3.page.metadata import read_metadata
from tonlake.api.v3.page.operation import check_no_contract_missing
from tonlake.lake.schema.contract import (
    JETTON_MASTERS,
    JETTON_WALLETS,
    NFT_COLLECTIONS,
    NFT_ITEMS,
)

ROWS = 50
JETTON_SORTS = {"holders": "Holders", "transfers": "Transfers", "volume": "Volume"}
COLLECTION_SORTS = {"owners": "Owners", "items": "Items"} | {
    name: JETTON_SORTS[name] for name in ("transfers", "volume")
}


def show_accounts(question: Question) -> Shown:
    """List the accounts with the highest balances.

    Raises:
        NotCovered: none is found, and the lake may not have all accounts.
    """
    offset = read_offset(question)
    rows = question.call.reader.rows("v3/accounts_by_balance", limit=ROWS, offset=offset)
    if not (rows or offset):
        check_no_contract_missing(question.call.reader)
    return _show(question, "accounts", "Accounts by balance", rows)


def show_jettons(question: Question) -> Shown:
    """List jettons by holders, transfers or volume.

    Raises:
        NotDerived, NotCovered: none is found, and the lake may not have all contracts.
    """
    check_derived(question.call, JETTON_MASTERS.name, JETTON_WALLETS.name)
    return _rank(question, "jettons", "Jettons", JETTON_SORTS)


def show_collections(question: Question) -> Shown:
    """List NFT collections by owners, items, transfers or volume.

    Raises:
        NotDerived, NotCovered: none is found, and the lake may not have all contracts.
    """
    check_derived(question.call, NFT_COLLECTIONS.name, NFT_ITEMS.name)
    return _rank(question, "collections", "NFT collections", COLLECTION_SORTS)


def _rank(question: Question, name: str, title: str, sorts: dict[str, str]) -> Shown:
    sort = choose(question, "sort", sorts)
    rows = question.call.reader.rows(
        f"explorer/{name}", sort=sort, limit=ROWS, offset=read_offset(question)
    )
    if not rows:
        check_no_contract_missing(question.call.reader)
    return _show(question, name, title, rows, sort=sort, sorts=sorts)


def _show(
    question: Question, name: str, title: str, rows: list[dict[str, Any]], **values: object
) -> Shown:
    """Return a list; its rows become (place from 1, raw address, row)."""
    addresses = [Address(row["workchain"], row["account"]) for row in rows]
    book = describe_addresses(question.call, addresses)
    metadata = read_metadata(question.call, set(addresses))
    question.names.learn({str(address): book[address] for address in addresses}, metadata)
    places = count(read_offset(question) + 1)
    ranked = list(zip(places, map(str, addresses), rows, strict=False))
    listed = list_page(question, f"/{name}", ranked, ROWS, sort=values.get("sort"))
    return Shown(f"{name}.html", title, {**values, "listed": listed})
