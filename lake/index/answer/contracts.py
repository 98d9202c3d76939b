"""Jettons, NFTs and their sales as of a masterchain block, from segments."""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from tonlake.lake.index.page import Declined
from tonlake.lake.index.segment.declared import INDEXED, workchain_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from tonlake.lake.account import AccountId
    from tonlake.lake.index.index import Index
    from tonlake.lake.index.segment.segment import SegmentTable


Row = dict[str, Any]
Sales = dict["AccountId", Row]
"""Sales by the account of the contract."""

MAX_ROWS = 1000
"""Most rows read one by one; SQL answers if more are needed."""


def address_of(row: Row, column: str) -> AccountId:
    """Return the address in a column of a row."""
    return row[workchain_of(column)], row[column]


def pair_accounts(parameters: Mapping[str, Any], column: str) -> set[AccountId]:
    """Return the addresses in the two list parameters for a column."""
    prefix = "" if column == "account" else f"{column}_"
    pairs = zip(parameters[f"{prefix}workchains"], parameters[f"{column}s"], strict=True)
    return set(pairs)


def _find_page(name: str, index: Index, bound: Mapping[str, Any]) -> list[Row]:
    tables = index.current.tables(name)
    columns = (column for column in INDEXED[name].hashes if f"{column}s" in bound)
    listed = {column: pair_accounts(bound, column) for column in columns}
    filters = {column: addresses for column, addresses in listed.items() if addresses}
    sales = _find_sales(index, filters, bound) if bound.get("include_on_sale") else {}
    rows = _read_history(tables, filters, sales, bound["mc_seqno"])
    states = _read_states(rows, bound["mc_seqno"])
    found = [row for row in states if _passes(row, filters, sales, bound)]
    order = ORDERS[name]
    found.sort(key=lambda row: (*order(row, sales, bound), row["workchain"], row["account"]))
    return found[bound["offset"] :][: bound["limit"]]


def _find_sales(
    index: Index, filters: Mapping[str, set[AccountId]], bound: Mapping[str, Any]
) -> Sales:
    """Return the sales of the requested owners, except items that sell themselves (telemint)."""
    tables, owners = index.current.tables("nft_sales"), filters.get("owner", set())
    known: dict[_Place, Row] = {}
    places = _find_places(tables, "nft_owner", owners)
    accounts = {
        address_of(row, "account") for row in _read_rows(places, "nft_owner", owners, known)
    }
    rows = _read_rows(_find_places(tables, "account", accounts), "account", accounts, known)
    states = _read_states((row for row in rows if row["kind"] != "telemint"), bound["mc_seqno"])
    return {
        address_of(row, "account"): row for row in states if address_of(row, "nft_owner") in owners
    }


def _read_history(
    tables: Sequence[SegmentTable],
    filters: Mapping[str, set[AccountId]],
    sales: Sales,
    mc_seqno: int | None,
) -> list[Row]:
    """Return rows of the accounts that may match: all, or only both ends of long histories."""
    if not filters:
        if sum(table.count for table in tables) > MAX_ROWS:
            raise Declined
        return [row for table in tables for row in table.read_dicts(range(table.count))]
    places = {column: _find_places(tables, column, filters[column]) for column in filters}
    column = min(places, key=lambda column: len(places[column]))
    known: dict[_Place, Row] = {}
    found, accounts = places[column], filters[column]
    if column != "account":
        rows = _read_rows(found, column, accounts, known)
        accounts = {address_of(row, "account") for row in rows}
        if column == "owner":
            accounts |= {address_of(sale, "nft") for sale in sales.values() if sale["nft"]}
        found = _find_places(tables, "account", accounts)
    if len(found) > 2 * len(accounts):
        return _read_ends(tables, accounts, mc_seqno)
    return _read_rows(found, "account", accounts, known)


def _read_ends(
    tables: Sequence[SegmentTable], accounts: Collection[AccountId], mc_seqno: int | None
) -> list[Row]:
    """Return the first row of each account, and the last one up to a block."""
    if len(accounts) > MAX_ROWS:
        raise Declined
    first = (islice(_iter_rows(tables, each), 1) for each in accounts)
    last = (islice(_iter_rows(tables, each, mc_seqno, newest_first=True), 1) for each in accounts)
    return [*chain.from_iterable(first), *chain.from_iterable(last)]


def _iter_rows(
    tables: Sequence[SegmentTable],
    account: AccountId,
    mc_seqno: int | None = None,
    *,
    newest_first: bool = False,
) -> Iterator[Row]:
    """Yield the rows of an account up to a block, reading each on demand."""
    step = -1 if newest_first else 1
    for table in tables[::step]:
        numbers = table.find("account", account[1])
        if mc_seqno is not None:
            seqnos = table.numbers["mc_seqno"]
            numbers = numbers[: bisect_right(numbers, mc_seqno, key=seqnos.__getitem__)]
        for number in numbers[::step]:
            (row,) = table.read_dicts([number])
            if address_of(row, "account") == account:
                yield row


_Place = tuple["SegmentTable", int]
"""A table of a segment, and the number of a row in it."""


def _find_places(
    tables: Sequence[SegmentTable], column: str, addresses: Iterable[AccountId]
) -> list[_Place]:
    """Return rows that have one of the addresses in a column, and a few others.

    For a column other than ``account``, at least one row per account and address.
    """
    hashes = list({account for _, account in addresses})
    return [
        (table, number)
        for table in tables
        for number in dict.fromkeys(
            number for each in hashes for number in table.find(column, each)
        )
    ]


def _read_rows(
    places: Sequence[_Place],
    column: str,
    addresses: Collection[AccountId],
    known: dict[_Place, Row],
) -> list[Row]:
    """Return the rows with one of the addresses in a column; ``known`` caches rows."""
    if len(places) > MAX_ROWS:
        raise Declined
    for table, number in places:
        if (table, number) not in known:
            (known[table, number],) = table.read_dicts([number])
    return [row for row in map(known.__getitem__, places) if address_of(row, column) in addresses]


def _read_states(rows: Iterable[Row], mc_seqno: int | None) -> list[Row]:
    """Return the last row of each account at a block, with its first logical time up to there."""
    states: dict[AccountId, Row] = {}
    first_lts: dict[AccountId, int] = {}
    for row in rows:
        if mc_seqno is None or row["mc_seqno"] <= mc_seqno:
            account = address_of(row, "account")
            known = states.get(account)
            if known is None or row["mc_seqno"] > known["mc_seqno"]:
                states[account] = row
            first_lts[account] = min(row["lt"], first_lts.get(account, row["lt"]))
    return [{**row, "first_lt": first_lts[account]} for account, row in states.items()]


def _passes(
    row: Row, filters: Mapping[str, set[AccountId]], sales: Sales, bound: Mapping[str, Any]
) -> bool:
    if bound.get("indexes") and row["item_index"] not in bound["indexes"]:
        return False
    if bound.get("exclude_zero") and row["balance"] <= 0:
        return False
    if bound.get("domain") is not None and row["domain"] != bound["domain"]:
        return False
    if bound.get("members") and not _has_any(bound["members"], row["signers"], row["proposers"]):
        return False
    if bound.get("owners") and "whitelist" in row and not _is_vested(row, bound):
        return False
    return all(
        address_of(row, column) in addresses
        or (column == "owner" and _find_sale(row, sales) is not None)
        for column, addresses in filters.items()
    )


def _has_any(addresses: Iterable[str], *lists: Iterable[str] | None) -> bool:
    wanted = set(addresses)
    return any(not wanted.isdisjoint(listed or ()) for listed in lists)


def _is_vested(row: Row, bound: Mapping[str, Any]) -> bool:
    """Whether a vesting wallet names one of the addresses."""
    owners = pair_accounts(bound, "owner")
    ends = (address_of(row, "owner"), address_of(row, "sender"))
    return not owners.isdisjoint(ends) or _has_any(bound["listed"], row["whitelist"])


def _find_sale(item: Row, sales: Sales) -> Row | None:
    """Return the sale that owns an item and is for that item."""
    sale = sales.get(address_of(item, "owner")) if sales else None
    named = sale is not None and address_of(sale, "nft") == address_of(item, "account")
    return sale if named else None


def _by_appearance(row: Row, _sales: Sales, _bound: Mapping[str, Any]) -> tuple[Any, ...]:
    return (row["first_lt"],)


def _by_account(_row: Row, _sales: Sales, _bound: Mapping[str, Any]) -> tuple[Any, ...]:
    return ()


def _by_name(row: Row, _sales: Sales, _bound: Mapping[str, Any]) -> tuple[Any, ...]:
    return len(row["domain"]), row["domain"]


def _by_age(row: Row, _sales: Sales, bound: Mapping[str, Any]) -> tuple[Any, ...]:
    if not bound["descending"]:
        return (row["first_lt"],)
    backwards = bytes(255 - byte for byte in row["account"])
    return -row["first_lt"], -row["workchain"], backwards


def _order_wallet(row: Row, _sales: Sales, bound: Mapping[str, Any]) -> tuple[Any, ...]:
    sign = -1 if bound["descending"] else 1
    return (
        *(_null_last(row["owner_workchain"], row["owner"]) if bound["by_owner"] else ()),
        sign * row["balance"] if bound["by_balance"] else 0,
        0 if bound["by_account"] else row["first_lt"],
    )


def _order_item(row: Row, sales: Sales, bound: Mapping[str, Any]) -> tuple[Any, ...]:
    key: tuple[Any, ...] = (-row["lt"],) if bound["by_lt"] else ()
    if bound["by_owner"]:
        seller = _find_sale(row, sales)
        owner = address_of(row, "owner") if seller is None else address_of(seller, "nft_owner")
        key += _null_last(*owner)
    if bound["by_owner"] or bound["by_collection"]:
        index = row["item_index"]
        key += (*_null_last(row["collection_workchain"], row["collection"]), len(index), index)
    return (*key, row["first_lt"]) if bound["by_first"] else key


def _null_last(*values: Any) -> tuple[Any, ...]:  # noqa: ANN401 - columns
    return tuple((value is None, value) for value in values)


ORDERS: dict[str, Callable[[Row, Sales, Mapping[str, Any]], tuple[Any, ...]]] = {
    "jetton_masters": _by_appearance,
    "jetton_wallets": _order_wallet,
    "nft_collections": _by_appearance,
    "nft_items": _order_item,
    "nft_sales": _by_account,
    "dns_records": _by_name,
    "multisig_wallets": _by_age,
    "multisig_orders": _by_age,
    "vesting_contracts": _by_appearance,
}
"""Sort key of each query's rows; ties by workchain and account."""


def _find_newest(name: str, index: Index, asked: Mapping[str, Any]) -> list[Row]:
    tables = index.current.tables(name)
    accounts = sorted(set(zip(asked["workchains"], asked["accounts"], strict=True)))
    found: dict[AccountId, Row] = {}
    for table in reversed(tables):
        left = [account for account in accounts if account not in found]
        for account in (each for each in left if table.has("account", each[1])):
            row = next(_iter_rows([table], account, newest_first=True), None)
            if row is not None:
                found[account] = row
    return [found[account] for account in accounts if account in found]


ANSWERS: dict[str, Callable[[Index, Mapping[str, Any]], list[Row]]] = {
    **{f"v3/{name}": partial(_find_page, name) for name in ORDERS},
    "v3/token_collections": partial(_find_newest, "nft_collections"),
    "v3/token_items": partial(_find_newest, "nft_items"),
    "v3/token_masters": partial(_find_newest, "jetton_masters"),
    "v3/token_wallets": partial(_find_newest, "jetton_wallets"),
}
