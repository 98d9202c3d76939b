"""The address book of a response: friendly form, domain and interfaces of each address."""

from __future__ import annotations

import threading
from itertools import starmap
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.chain.account import WALLETS
from tonlake.api.errors import AddressInvalid
from tonlake.api.text.address import Address, find_tag, render_friendly
from tonlake.api.text.native import NATIVE
from tonlake.api.v3.page.interface import NO_CODE, read_codes
from tonlake.api.v3.resource.answer import AddressBook, AddressBookRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tonlake.api.request.call import Call
    from tonlake.queries.reader import Reader

Domains = dict[tuple[int, bytes], str]
"""The shortest domain by workchain and account id."""

KEPT = 2


def find_domains(reader: Reader) -> Domains:
    """Return the domains of a snapshot.

    They are few and change rarely, so they are reread only when a commit changed them.
    """
    files = reader.snapshot.files["dns_records"]
    if not files:
        return {}
    key = (str(reader.snapshot.lake_dir), *(file.path for file in files))
    with _LOCK:
        found = _KEPT.get(key)
    if found is None:
        rows = reader.rows("v3/domains")
        found = {(row["workchain"], row["account"]): row["domain"] for row in rows}
        with _LOCK:
            while len(_KEPT) >= KEPT:
                _KEPT.pop(next(iter(_KEPT)))
            _KEPT[key] = found
    return found


_LOCK = threading.Lock()
_KEPT: dict[tuple[str, ...], Domains] = {}


Row = dict[str, Any]


def read_accounts(
    call: Call, addresses: Iterable[Address], mc_seqno: int | None = None
) -> dict[Address, Row]:
    """Return the states of the accounts that the lake knows, by workchain and account.

    The state is the newest one, or that after a masterchain block.
    """
    requested = sorted(set(addresses))
    if requested and mc_seqno is not None:
        rows = call.reader.rows("v3/accounts", **pair_addresses(requested), mc_seqno=mc_seqno)
        return {Address(row["workchain"], row["account"]): row for row in rows}
    states = _list_states(call, [(each.workchain, each.account) for each in requested])
    found = zip(requested, states, strict=True)
    return {address: state for address, state in found if state is not None}


def pair_addresses(addresses: Iterable[Address]) -> dict[str, list[Any]]:
    """Return the two list parameters by which queries take accounts."""
    listed = list(addresses)
    return {
        "workchains": [address.workchain for address in listed],
        "accounts": [address.account for address in listed],
    }


def read_address_book(call: Call, addresses: Iterable[Address]) -> AddressBook:
    """Return the address book, keyed by raw address; {} if the request opts out of it."""
    if call.no_address_book:
        return {}
    rows = describe_addresses(call, addresses)
    return {str(address): row for address, row in rows.items()}


def write_address_book(call: Call, accounts: Iterable[tuple[int, bytes]]) -> Any:  # noqa: ANN401
    """Return the address book of workchains and account ids, for sending only.

    With the C extension it is ``msgspec.Raw``: JSON written without a struct for each address.
    """
    if NATIVE is None or call.no_address_book:
        return read_address_book(call, starmap(Address, accounts))
    # By workchain and id: in two steps that compare numbers and bytes, not pairs.
    requested = sorted(sorted(accounts, key=itemgetter(1)), key=itemgetter(0))
    states = _list_states(call, requested)
    code_hashes = {state["code_hash"] for state in states if state is not None}
    codes = read_codes(call.reader, code_hashes)
    test_only = call.test_only
    tags = [find_tag(bounceable=bounceable, test_only=test_only) for bounceable in (False, True)]
    facts: dict[bytes | None, tuple[int, bytes]] = {
        code_hash: (tags[code_hash not in WALLETS], code.written)
        for code_hash, code in codes.items()
    }
    facts[None] = tags[False], NO_CODE.written
    domains = find_domains(call.reader)
    known = [pair for pair in requested if pair in domains] if domains else []
    named = {pair: msgspec.json.encode(domains[pair]) for pair in known}
    unknown = tags[False], b"[]"
    return msgspec.Raw(NATIVE.write_book(requested, states, facts, unknown, named))


def _list_states(call: Call, accounts: Sequence[tuple[int, bytes]]) -> list[Row | None]:
    """Return the newest states of the sorted accounts; None for accounts unknown to the lake."""
    states, missing = call.states, [account for account in accounts if account not in call.states]
    if missing:
        workchains, ids = zip(*missing, strict=True)
        rows = call.reader.rows("v3/accounts", workchains=list(workchains), accounts=list(ids))
        if len(rows) == len(missing):  # both are sorted
            states.update(zip(missing, rows, strict=True))
        else:
            states.update(dict.fromkeys(missing))
            states.update({(row["workchain"], row["account"]): row for row in rows})
    return [states[account] for account in accounts]


def _is_bounceable(code_hash: bytes | None) -> bool:
    """Return whether the friendly form is bounceable: not for wallets and accounts without code."""
    return code_hash is not None and code_hash not in WALLETS


def describe_addresses(call: Call, addresses: Iterable[Address]) -> dict[Address, AddressBookRow]:
    """Return the rows of the addresses, in their order."""
    requested = sorted(set(addresses))
    states = _list_states(call, [(item.workchain, item.account) for item in requested])
    code_hashes = [None if state is None else state["code_hash"] for state in states]
    codes = read_codes(call.reader, code_hashes)
    domains = find_domains(call.reader)
    test_only = call.test_only
    described = {}
    for address, state, code_hash in zip(requested, states, code_hashes, strict=True):
        facts = NO_CODE if code_hash is None else codes[code_hash]
        described[address] = AddressBookRow(
            user_friendly=_write_friendly(
                address, bounceable=_is_bounceable(code_hash), test_only=test_only
            ),
            domain=domains.get((address.workchain, address.account)) if domains else None,
            interfaces=[] if state is None else facts.listed,
        )
    return described


def _write_friendly(address: Address, *, bounceable: bool, test_only: bool) -> str | None:
    """Return the friendly form, or the raw one if the workchain exceeds 8 bits."""
    try:
        return render_friendly(address, bounceable=bounceable, test_only=test_only)
    except AddressInvalid:
        return None
