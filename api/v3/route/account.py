"""Operations about accounts and wallets: states, addresses, balances."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET

from tonlake.api.chain.account import WALLETS, find_bags, find_fetched, read_wallet_data
from tonlake.api.chain.cells import read_cell_trees, write_depth_first
from tonlake.api.errors import AnswerConflict, CredentialMissing, NotCovered, RequestInvalid
from tonlake.api.request.call import (
    Addresses,
    Call,
    Flag,
    Hashes,
    Int32,
    OneAddress,
    Query,
    Texts,
    parse_if_address,
)
from tonlake.api.text.encoding import Address, render_raw
from tonlake.api.v3.layout.build import make_builder
from tonlake.api.v3.page.book import describe_addresses, read_accounts, read_codes
from tonlake.api.v3.page.listed import describe
from tonlake.api.v3.page.operation import (
    Page,
    check_accounts_known,
    check_mc_seqno,
    check_no_contract_missing,
    is_current,
    operation,
)
from tonlake.api.v3.resource.answer import (
    AccountBalance,
    AccountStateFull,
    AccountStates,
    AddressBook,
    AddressBookRow,
    AddressInformation,
    WalletInformation,
    WalletState,
    WalletStates,
)
from tonlake.queries.reader import Row

MAX_ACCOUNTS = 1000
"""Limit of accounts in one response, as in TON Center."""

MAX_FETCHED = 16
"""Limit of accounts fetched from lite servers for one response."""


class AccountStatesQuery(Query, frozen=True, kw_only=True):
    """Accounts, and code hashes, one of which must match."""

    mandatory = ("address",)

    address: Addresses = ()
    code_hash: Hashes = ()
    include_boc: Flag = None
    mc_seqno: Int32 = None


class AddressBookQuery(Query, frozen=True, kw_only=True):
    """Texts expected to be addresses."""

    mandatory = ("address",)

    address: Texts = ()


def get_account_states(call: Call, query: AccountStatesQuery) -> AccountStates:
    """List account states, the newest or those after a masterchain block."""
    accounts = find_accounts(call, query.address, query.code_hash, mc_seqno=query.mc_seqno)
    cells: Mapping[bytes, bytes] = {}
    if query.include_boc is not False:
        cells = read_bodies(call, list(accounts.values()), mc_seqno=query.mc_seqno)
    codes = read_codes(call.reader, (row["code_hash"] for row in accounts.values()))
    build = make_builder(AccountStateFull)
    return AccountStates(
        accounts=[
            build(
                (row,),
                address=str(address),
                contract_methods=codes[row["code_hash"]].methods,
                interfaces=codes[row["code_hash"]].names,
                data_boc=write_cell(cells, row["data_hash"]) or UNSET,
                code_boc=write_cell(cells, row["code_hash"]) or UNSET,
            )
            for address, row in accounts.items()
        ],
        **describe(call, accounts),
    )


def find_accounts(
    call: Call,
    addresses: Sequence[Address],
    code_hashes: Sequence[bytes] = (),
    *,
    mc_seqno: int | None = None,
) -> dict[Address, Row]:
    """Return the states of known accounts, by address; one from before a gap counts as unknown."""
    if not addresses:
        raise RequestInvalid("address of account is required")
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
        try:
            check_accounts_known(call.reader, unknown, mc_seqno)
        except NotCovered as error:  # they may exist
            call.warn(str(error))
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
    """List address book entries, keyed by the address as sent."""
    if not query.address:
        raise RequestInvalid("at least 1 address required")
    parsed = {text: parse_if_address(text) for text in query.address}
    rows = describe_addresses(call, [item for item in parsed.values() if item is not None])
    return {
        text: AddressBookRow(user_friendly=None, domain=None, interfaces=[])
        if address is None
        else rows[address]
        for text, address in parsed.items()
    }


def get_top_accounts(call: Call, query: Page) -> list[AccountBalance]:
    """List accounts by balance, largest first."""
    limit, offset = query.limit or 0, query.offset or 0
    rows = call.reader.rows("v3/accounts_by_balance", limit=limit, offset=offset)
    if limit and not (rows or offset):
        check_no_contract_missing(call.reader)
    return [
        AccountBalance(render_raw(row["workchain"], row["account"]), str(row["balance"]))
        for row in rows
    ]


UNKNOWN: Row = {
    "account_status": "uninit",
    "balance": 0,
    "last_trans_lt": 0,
    "last_trans_hash": bytes(32),
    "code_hash": None,
    "data_hash": None,
}
"""The state reported for an account that does not exist, as in TON Center."""


class WalletStatesQuery(Query, frozen=True, kw_only=True):
    """Accounts, and the masterchain block as of which they are read (default: newest)."""

    mandatory = ("address",)

    address: Addresses = ()
    mc_seqno: Int32 = None


class InformationQuery(Query, frozen=True, kw_only=True):
    """One account; ``use_v2`` selects one of two sources in TON Center and has no effect here."""

    mandatory = ("address",)

    address: OneAddress = None
    use_v2: Flag = None
    mc_seqno: Int32 = None


def get_wallet_states(call: Call, query: WalletStatesQuery) -> WalletStates:
    """List wallet states decoded from their data."""
    accounts = find_accounts(call, query.address, mc_seqno=query.mc_seqno)
    wallets = [row for row in accounts.values() if row["code_hash"] in WALLETS]
    cells = read_bodies(call, wallets, columns=("data_hash",), mc_seqno=query.mc_seqno)
    build = make_builder(WalletState)
    return WalletStates(
        wallets=[
            build(
                (row,),
                address=str(address),
                is_wallet=row["code_hash"] in WALLETS,
                **_read_fields(row, cells),
            )
            for address, row in accounts.items()
        ],
        **describe(call, accounts),
    )


def get_address_information(call: Call, query: InformationQuery) -> AddressInformation:
    """Show an account."""
    row = _read_account(call, query)
    cells = read_bodies(call, [row], mc_seqno=query.mc_seqno)
    return make_builder(AddressInformation)(
        (row,),
        code=write_cell(cells, row["code_hash"]),
        data=write_cell(cells, row["data_hash"]),
        frozen_hash=None,
    )


def get_wallet_information(call: Call, query: InformationQuery) -> WalletInformation:
    """Show a wallet's balance and type."""
    row = _read_account(call, query)
    if row["code_hash"] not in WALLETS and row["account_status"] != "uninit":
        raise AnswerConflict("not a wallet")
    fields = _read_fields(
        row, read_bodies(call, [row], columns=("data_hash",), mc_seqno=query.mc_seqno)
    )
    fields.pop("is_signature_allowed", None)
    return make_builder(WalletInformation)((row,), **fields)


def _read_account(call: Call, query: InformationQuery) -> Row:
    address, mc_seqno = query.address, query.mc_seqno
    if address is None:
        raise CredentialMissing("address of account is required")
    check_mc_seqno(call.reader, mc_seqno)
    row = read_accounts(call, [address], mc_seqno).get(address)
    if row is None or not is_current(call.reader, row, mc_seqno):
        fetched = fetch_accounts(call, [address], mc_seqno)
        if address in fetched:
            return fetched[address] or UNKNOWN
        check_accounts_known(call.reader, [address], mc_seqno)
    return row or UNKNOWN


def _read_fields(row: Row, cells: Mapping[bytes, bytes]) -> dict[str, Any]:
    """Return the type of a wallet and the fields of its data; {} for other contracts."""
    name, data = WALLETS.get(row["code_hash"]), cells.get(row["data_hash"])
    if name is None:
        return {}
    return {"wallet_type": name, **read_wallet_data(row["code_hash"], data)}


routes = [
    operation("/accountStates", AccountStatesQuery, get_account_states),
    operation("/addressBook", AddressBookQuery, get_address_book),
    operation("/topAccountsByBalance", Page, get_top_accounts),
    operation("/walletStates", WalletStatesQuery, get_wallet_states),
    operation("/addressInformation", InformationQuery, get_address_information),
    operation("/account", InformationQuery, get_address_information),
    operation("/walletInformation", InformationQuery, get_wallet_information),
    operation("/wallet", InformationQuery, get_wallet_information),
]
