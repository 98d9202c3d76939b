"""Jettons, NFTs, their sales and transfers as of a masterchain block, from segments."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from tonlake.lake.account import AccountId
from tonlake.lake.file.rows import Row
from tonlake.lake.index.index import Index
from tonlake.lake.index.page import (
    Declined,
    bound,
    cut_walk,
    has_other_bounds,
    is_within,
    merge_walks,
    read_rows,
    walk,
)
from tonlake.lake.index.segment.declared import INDEXED, workchain_of
from tonlake.lake.index.segment.segment import SegmentTable

Sales = dict[AccountId, Row]
"""Sales by the account of the contract."""

MAX_ROWS = 1000
"""Most rows read for the filter on an address; SQL answers if more are needed."""


@cache
def address_of(column: str) -> Callable[[Any], AccountId]:
    """Return the function that reads the address in a column of a row."""
    return itemgetter(workchain_of(column), column)


_ACCOUNT, _OWNER = address_of("account"), address_of("owner")


def pair_accounts(parameters: Mapping[str, Any], column: str) -> set[AccountId]:
    """Return the addresses in the two list parameters for a column."""
    prefix = "" if column == "account" else f"{column}_"
    pairs = zip(parameters[f"{prefix}workchains"], parameters[f"{column}s"], strict=True)
    return set(pairs)


def _find_page(name: str, index: Index, asked: Mapping[str, Any]) -> list[Row]:
    tables = index.current.tables(name)
    columns = (column for column in INDEXED[name].hashes if f"{column}s" in asked)
    listed = {column: pair_accounts(asked, column) for column in columns}
    filters = {column: addresses for column, addresses in listed.items() if addresses}
    sales = _find_sales(index, filters, asked) if asked.get("include_on_sale") else {}
    rows = _read_history(tables, filters, sales, asked["mc_seqno"])
    found = _read_states(rows, asked["mc_seqno"])
    if filters or any(asked.get(each) not in _NONE for each in _FURTHER):
        found = [row for row in found if _passes(row, filters, sales, asked)]
    found.sort(key=_ACCOUNT)
    for key, backwards in reversed(ORDERS[name](sales, asked)):
        found.sort(key=key, reverse=backwards)
    return found[asked["offset"] :][: asked["limit"]]


_FURTHER = ("indexes", "exclude_zero", "domain", "members", "owners")
"""Parameters that filter rows, besides addresses."""

_NONE: tuple[Any, ...] = (None, False, [])
"""Their values that filter nothing."""


def _find_sales(
    index: Index, filters: Mapping[str, set[AccountId]], asked: Mapping[str, Any]
) -> Sales:
    """Return the sales of the requested owners, except items that sell themselves (telemint)."""
    tables, owners = index.current.tables("nft_sales"), filters.get("owner", set())
    found = _find_rows(tables, "nft_owner", owners)
    accounts = set(map(_ACCOUNT, _read_rows(found, "nft_owner", owners)))
    rows = _read_rows(_find_rows(tables, "account", accounts), "account", accounts)
    states = _read_states((row for row in rows if row["kind"] != "telemint"), asked["mc_seqno"])
    seller = address_of("nft_owner")
    return {_ACCOUNT(row): row for row in states if seller(row) in owners}


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
        return [row for table in tables for row in table.read(range(table.count))]
    listed = {column: _find_rows(tables, column, filters[column]) for column in filters}
    column = min(listed, key=lambda column: _count(listed[column]))
    found, accounts = listed[column], filters[column]
    if column != "account":
        accounts = set(map(_ACCOUNT, _read_rows(found, column, accounts)))
        if column == "owner":
            accounts |= {address_of("nft")(sale) for sale in sales.values() if sale["nft"]}
        found = _find_rows(tables, "account", accounts)
    if _count(found) > 2 * len(accounts):
        return _read_ends(tables, accounts, mc_seqno)
    return _read_rows(found, "account", accounts)


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
        numbers = table.postings["account"].find(account[1])
        if mc_seqno is not None:
            seqnos = table.numbers["mc_seqno"]
            numbers = numbers[: bisect_right(numbers, mc_seqno, key=seqnos.__getitem__)]
        for number in numbers[::step]:
            (row,) = table.read([number])
            if _ACCOUNT(row) == account:
                yield row


_Found = list[tuple["SegmentTable", Collection[int]]]
"""Tables of segments, each with the numbers of rows in it."""


def _find_rows(
    tables: Sequence[SegmentTable], column: str, addresses: Iterable[AccountId]
) -> _Found:
    """Return rows with one of the addresses in a column, one per account at least, and others."""
    hashes = list({account for _, account in addresses})
    finds = [(table, map(table.postings[column].find, hashes)) for table in tables]
    return [(table, dict.fromkeys(chain.from_iterable(lists))) for table, lists in finds]


def _count(found: _Found) -> int:
    return sum(len(numbers) for _, numbers in found)


def _read_rows(found: _Found, column: str, addresses: Collection[AccountId]) -> list[Row]:
    """Return the rows with one of the addresses in a column."""
    if _count(found) > MAX_ROWS:
        raise Declined
    address = address_of(column)
    rows = (row for table, numbers in found for row in table.read(numbers))
    return [row for row in rows if address(row) in addresses]


def _read_states(rows: Iterable[Any], mc_seqno: int | None) -> list[Row]:
    """Return the last row of each account at a block, with its first logical time up to there."""
    states: dict[AccountId, Any] = {}
    first_lts: dict[AccountId, int] = {}
    for row in rows:
        if mc_seqno is None or row["mc_seqno"] <= mc_seqno:
            account = _ACCOUNT(row)
            known = states.get(account)
            if known is None or row["mc_seqno"] > known["mc_seqno"]:
                states[account] = row
            first_lts[account] = min(row["lt"], first_lts.get(account, row["lt"]))
    names = next(iter(states.values())).keys() if states else ()  # all are of one table
    return [
        dict(zip(names, row, strict=True), first_lt=first_lts[account])
        for account, row in states.items()
    ]


def _passes(
    row: Row, filters: Mapping[str, set[AccountId]], sales: Sales, asked: Mapping[str, Any]
) -> bool:
    if asked.get("indexes") and row["item_index"] not in asked["indexes"]:
        return False
    if asked.get("exclude_zero") and row["balance"] <= 0:
        return False
    if asked.get("domain") is not None and row["domain"] != asked["domain"]:
        return False
    if asked.get("members") and not _has_any(asked["members"], row["signers"], row["proposers"]):
        return False
    if asked.get("owners") and "whitelist" in row and not _is_vested(row, asked):
        return False
    return all(
        address_of(column)(row) in addresses
        or (column == "owner" and _find_sale(row, sales) is not None)
        for column, addresses in filters.items()
    )


def _has_any(addresses: Iterable[str], *lists: Iterable[str] | None) -> bool:
    return not set(addresses).isdisjoint(chain.from_iterable(listed or () for listed in lists))


def _is_vested(row: Row, asked: Mapping[str, Any]) -> bool:
    """Whether a vesting wallet names one of the addresses."""
    owners = pair_accounts(asked, "owner")
    ends = (_OWNER(row), address_of("sender")(row))
    return not owners.isdisjoint(ends) or _has_any(asked["listed"], row["whitelist"])


def _find_sale(item: Row, sales: Sales) -> Row | None:
    """Return the sale that owns an item and is for that item."""
    sale = sales.get(_OWNER(item)) if sales else None
    named = sale is not None and address_of("nft")(sale) == _ACCOUNT(item)
    return sale if named else None


Order = list[tuple["Callable[[Row], Any]", bool]]
"""Keys by which rows are sorted, each with whether it descends; then workchain and account."""

_FIRST, _BALANCE = itemgetter("first_lt"), itemgetter("balance")


def _by_appearance(_sales: Sales, _asked: Mapping[str, Any]) -> Order:
    return [(_FIRST, False)]


def _by_age(_sales: Sales, asked: Mapping[str, Any]) -> Order:
    descending = asked["descending"]
    return [(_FIRST, descending), (_ACCOUNT, descending)]


def _order_wallets(_sales: Sales, asked: Mapping[str, Any]) -> Order:
    order: Order = []
    if asked["by_owner"]:
        order.append((lambda row: _null_last(*_OWNER(row)), False))
    if asked["by_balance"]:
        order.append((_BALANCE, asked["descending"]))
    if not asked["by_account"]:
        order.append((_FIRST, False))
    return order


def _order_items(sales: Sales, asked: Mapping[str, Any]) -> Order:
    def own(row: Row) -> tuple[Any, ...]:
        sale = _find_sale(row, sales)
        return _null_last(*(_OWNER(row) if sale is None else address_of("nft_owner")(sale)))

    def place(row: Row) -> tuple[Any, ...]:
        index = row["item_index"]
        return *_null_last(*address_of("collection")(row)), len(index), index

    order: Order = []
    if asked["by_lt"]:
        order.append((itemgetter("lt"), True))
    if asked["by_owner"]:
        order.append((own, False))
    if asked["by_owner"] or asked["by_collection"]:
        order.append((place, False))
    if asked["by_first"]:
        order.append((_FIRST, False))
    return order


def _null_last(*values: Any) -> tuple[Any, ...]:  # noqa: ANN401 - columns
    return tuple((value is None, value) for value in values)


ORDERS: dict[str, Callable[[Sales, Mapping[str, Any]], Order]] = {
    "jetton_masters": _by_appearance,
    "jetton_wallets": _order_wallets,
    "nft_collections": _by_appearance,
    "nft_items": _order_items,
    "nft_sales": lambda _sales, _asked: [],
    "dns_records": lambda *_: [(lambda row: (len(row["domain"]), row["domain"]), False)],
    "multisig_wallets": _by_age,
    "multisig_orders": _by_age,
    "vesting_contracts": _by_appearance,
}
"""The order of each query's rows."""


def _find_newest(name: str, index: Index, asked: Mapping[str, Any]) -> list[Row]:
    accounts = sorted(set(zip(asked["workchains"], asked["accounts"], strict=True)))
    found: dict[AccountId, Row] = {}
    for table in reversed(index.current.tables(name)):
        find, last = table.postings["account"].find, dict[AccountId, int]()
        for account in accounts:
            if account not in found and (rows := find(account[1])):
                last[account] = rows[-1]
        for account, row in zip(last, table.read(last.values()), strict=True):
            # The last row may be of another account with the same key.
            own = row if _ACCOUNT(row) == account else None
            own = own or next(_iter_rows([table], account, newest_first=True), None)
            if own is not None:
                found[account] = own
    return [found[account] for account in accounts if account in found]


_JETTON = {"account": ("account",), "jetton": ("jetton",)}
_ITEM = {"account": ("account",), "collection": ("collection",)}
COLUMNS: dict[str, dict[str, tuple[str, ...]]] = {
    "jetton_transfers": {**_JETTON, "owner": ("source", "destination")},
    "jetton_burns": {**_JETTON, "owner": ("owner",)},
    "nft_transfers": {**_ITEM, "owner": ("old_owner", "new_owner")},
}
"""The columns that each query filters on, of which one must match."""

_DIRECTIONS = {
    **dict.fromkeys(("source", "old_owner"), "outgoing"),
    **dict.fromkeys(("destination", "new_owner"), "incoming"),
}
"""Columns that are used only if a parameter is true."""


_Filter = tuple[list[str], set[AccountId]]
"""Columns of which one must have one of the addresses."""


def _find_transfers(name: str, index: Index, asked: Mapping[str, Any]) -> list[Any]:
    filters, descending = _list_filters(name, asked), asked["descending"]
    moment, unit = ("now", "utime") if asked["by_time"] else ("lt", "lt")
    span = bound(asked[f"start_{unit}"], asked[f"end_{unit}"])
    walks = [
        (table, walk(table, moment, span, _list_rows(table, filters), descending=descending))
        for table in index.current.tables(name)
    ]
    is_filtered = bool(filters) or name == "jetton_transfers" or has_other_bounds(asked)
    sign = -1 if descending else 1
    return cut_walk(
        merge_walks(walks, descending=descending),
        lambda part: [
            row for row in read_rows(part) if _passes_transfer(row, name, filters, asked)
        ],
        lambda rows: rows.sort(key=lambda row: (sign * row[moment], sign * row.lt, *_ACCOUNT(row))),
        asked,
        count=None if is_filtered else len,
    )


def _list_rows(table: SegmentTable, filters: Sequence[_Filter]) -> list[Sequence[int]]:
    """Return the rows that may pass each filter, in order."""
    return [
        sorted(
            {
                row
                for column in columns
                for account in {account for _, account in addresses}
                for row in table.postings[column].find(account)
            }
        )
        for columns, addresses in filters
    ]


def _list_filters(name: str, asked: Mapping[str, Any]) -> list[_Filter]:
    return [
        ([each for each in columns if asked.get(_DIRECTIONS.get(each, ""), True)], addresses)
        for prefix, columns in COLUMNS[name].items()
        if (addresses := pair_accounts(asked, prefix))
    ]


def _passes_transfer(
    row: Any,  # noqa: ANN401 - a row
    name: str,
    filters: Sequence[_Filter],
    asked: Mapping[str, Any],
) -> bool:
    return (
        (name != "jetton_transfers" or not row["aborted"])
        and is_within(row["now"], asked["start_utime"], asked["end_utime"])
        and is_within(row["lt"], asked["start_lt"], asked["end_lt"])
        and all(
            any(address_of(each)(row) in addresses for each in columns)
            for columns, addresses in filters
        )
    )


ANSWERS: dict[str, Callable[[Index, Mapping[str, Any]], list[Any]]] = {
    **{f"v3/{name}": partial(_find_page, name) for name in ORDERS},
    **{f"v3/{name}": partial(_find_transfers, name) for name in COLUMNS},
    "v3/token_collections": partial(_find_newest, "nft_collections"),
    "v3/token_items": partial(_find_newest, "nft_items"),
    "v3/token_masters": partial(_find_newest, "jetton_masters"),
    "v3/token_wallets": partial(_find_newest, "jetton_wallets"),
}
