"""Operations about accounts: states, addresses, balances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from tonlake.api.chain.cells import read_cell_trees, write_depth_first
from tonlake.api.chain.fetched import find_bags, find_fetched
from tonlake.api.errors import NotCovered, RequestInvalid
from tonlake.api.request.params import (
    Addresses,
    ConversionError,
    Flag,
    Hashes,
    Int32,
    Query,
    Texts,
    parse_any_address,
)
from tonlake.api.text.address import Address, render_raw
from tonlake.api.v3.layout.build import make_builder
from tonlake.api.v3.page.book import (
    NO_CODE,
    CodeFacts,
    describe_addresses,
    read_accounts,
    read_address_book,
    read_codes,
)
from tonlake.api.v3.page.coverage import (
    check_accounts_known,
    check_mc_seqno,
    check_no_contract_missing,
    is_current,
)
from tonlake.api.v3.page.metadata import read_metadata
from tonlake.api.v3.page.operation import Page, operation
from tonlake.api.v3.resource.answer import (
    AccountBalance,
    AccountStateFull,
    AccountStates,
    AddressBook,
    AddressBookRow,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tonlake.api.request.call import Call

Row = dict[str, Any]
MAX_ACCOUNTS = 1000
"""Limit of accounts in one response, as in TON Center."""

MAX_FETCHED = 16
"""Limit of accounts fetched from lite servers for one response."""


class AccountStatesQuery(Query, frozen=True, kw_only=True):
    """Accounts, and code hashes, one of which must match."""

    address: Addresses = ()
    code_hash: Hashes = ()
    include_boc: Flag = None
    mc_seqno: Int32 = None


class AddressBookQuery(Query, frozen=True, kw_only=True):
    """Texts expected to be addresses."""

    address: Texts = ()


class TopAccountsQuery(Page, frozen=True, kw_only=True):
    """A page."""


def get_account_states(call: Call, query: AccountStatesQuery) -> AccountStates:
    """List account states, the newest or those after a masterchain block.

    Raises:
        RequestInvalid: no address.
        NotCovered: the lake does not cover the block.
    """
    accounts = find_accounts(call, query.address, query.code_hash, mc_seqno=query.mc_seqno)
    cells: Mapping[bytes, bytes] = {}
    if query.include_boc is not False:
        cells = read_bodies(call, list(accounts.values()), mc_seqno=query.mc_seqno)
    codes = read_codes(call.reader, (row["code_hash"] for row in accounts.values()))
    return AccountStates(
        accounts=[
            _render_account(address, row, cells, codes.get(row["code_hash"], NO_CODE))
            for address, row in accounts.items()
        ],
        address_book=read_address_book(call, accounts),
        metadata=read_metadata(call, accounts),
    )


def find_accounts(
    call: Call,
    addresses: Sequence[Address],
    code_hashes: Sequence[bytes] = (),
    *,
    mc_seqno: int | None = None,
) -> dict[Address, Row]:
    """Return the states of known accounts, ordered by address.

    A state from before a gap of the lake may be out of date and counts as unknown.

    Raises:
        RequestInvalid: no address.
        NotCovered: the lake does not cover the masterchain block.
    """
    if not addresses:
        raise RequestInvalid("address of account is required")
    if mc_seqno is not None:
        check_mc_seqno(call.reader, mc_seqno)
    found = {
        address: row
        for address, row in read_accounts(call, addresses, mc_seqno).items()
        if is_current(call.reader, row, mc_seqno)
    }
    unknown = sorted(set(addresses) - found.keys())
    if unknown:
        fetched = fetch_accounts(call, unknown, mc_seqno)
        brought = {address: row for address, row in fetched.items() if row is not None}
        found = dict(sorted((found | brought).items()))
        unknown = [address for address in unknown if address not in fetched]
    if unknown:
        _warn_of_unknown(call, unknown, mc_seqno)
    kept = [
        (address, row)
        for address, row in found.items()
        if not code_hashes or row["code_hash"] in code_hashes
    ]
    if len(kept) > MAX_ACCOUNTS:
        call.warn(f"only the first {MAX_ACCOUNTS} of {len(kept)} accounts are shown")
    return dict(kept[:MAX_ACCOUNTS])


def fetch_accounts(
    call: Call, addresses: Sequence[Address], mc_seqno: int | None
) -> dict[Address, Row | None]:
    """Return accounts missing from the lake, fetched from lite servers; None if nonexistent."""
    try:
        check_accounts_known(call.reader, addresses, mc_seqno)
    except NotCovered:
        at_block = call.reader.snapshot.last_mc_seqno if mc_seqno is None else mc_seqno
        asked = addresses[:MAX_FETCHED]
        found = {address: find_fetched(call, address, at_block) for address in asked}
        return {address: one.row for address, one in found.items() if one is not None}
    return {}


def _warn_of_unknown(call: Call, unknown: Sequence[Address], mc_seqno: int | None) -> None:
    """Add a warning about accounts that may exist although the lake lacks them."""
    try:
        check_accounts_known(call.reader, unknown, mc_seqno)
    except NotCovered as error:
        call.warn(str(error))


def read_bodies(
    call: Call,
    rows: Sequence[Row],
    *,
    columns: Sequence[str] = ("code_hash", "data_hash"),
    mc_seqno: int | None = None,
) -> dict[bytes, bytes]:
    """Return code and data of accounts by cell hash; add a warning about incomplete ones."""
    requested = {row[column] for row in rows for column in columns} - {None}
    cells = {name: bag for row in rows if "bags" in row for name, bag in row["bags"].items()}
    cells |= read_cell_trees(call.reader, requested - cells.keys())
    lacking = [row for row in rows if {row[name] for name in columns} - {None} - cells.keys()]
    for row in lacking[:MAX_FETCHED]:
        address = Address(row["workchain"], row["account"])
        at_block = call.reader.snapshot.last_mc_seqno if mc_seqno is None else mc_seqno
        cells |= find_bags(call, address, at_block, row["hash"])
    if missing := requested - cells.keys():
        call.warn(f"{len(missing)} cells of code or data are incomplete in the lake")
    return cells


def write_cell(cells: Mapping[bytes, bytes], cell_hash: bytes | None) -> str | None:
    """Return the bag of a cell among ``bags``, in depth-first order; None if it is not there."""
    boc = None if cell_hash is None else cells.get(cell_hash)
    return None if boc is None else write_depth_first(boc)


def get_address_book(call: Call, query: AddressBookQuery) -> AddressBook:
    """List address book entries, keyed by the address as sent.

    Raises:
        RequestInvalid: no address.
    """
    if not query.address:
        raise RequestInvalid("at least 1 address required")
    parsed = {text: _parse(text) for text in query.address}
    rows = describe_addresses(call, [item for item in parsed.values() if item is not None])
    return {
        text: AddressBookRow(user_friendly=None, domain=None, interfaces=[])
        if address is None
        else rows[address]
        for text, address in parsed.items()
    }


def get_top_accounts(call: Call, query: TopAccountsQuery) -> list[AccountBalance]:
    """List accounts by balance, largest first.

    Raises:
        NotCovered: the result is empty, and the lake does not know all accounts.
    """
    limit, offset = query.limit or 0, query.offset or 0
    rows = call.reader.rows("v3/accounts_by_balance", limit=limit, offset=offset)
    if limit and not (rows or offset):
        check_no_contract_missing(call.reader)
    return [
        AccountBalance(render_raw(row["workchain"], row["account"]), str(row["balance"]))
        for row in rows
    ]


def _parse(text: str) -> Address | None:
    try:
        return parse_any_address(text)
    except ConversionError:
        return None


def _render_account(
    address: Address, row: Row, cells: Mapping[bytes, bytes], facts: CodeFacts
) -> AccountStateFull:
    return make_builder(AccountStateFull)(
        (row,),
        address=str(address),
        contract_methods=facts.methods,
        interfaces=facts.names,
        data_boc=write_cell(cells, row["data_hash"]) or UNSET,
        code_boc=write_cell(cells, row["code_hash"]) or UNSET,
    )


routes = [
    operation("/accountStates", AccountStatesQuery, get_account_states),
    operation("/addressBook", AddressBookQuery, get_address_book),
    operation("/topAccountsByBalance", TopAccountsQuery, get_top_accounts),
]
