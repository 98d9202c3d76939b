"""The address book of a response: friendly form, domain and interfaces of each address.

Interfaces are facts about codes: ids of their get-methods, and names of what they implement.
"""

import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import starmap
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tonlake.api.chain.account import WALLETS
from tonlake.api.errors import AddressInvalid
from tonlake.api.request.call import Call
from tonlake.api.text.encoding import TAGS, Address, render_friendly
from tonlake.api.text.native import NATIVE
from tonlake.api.v3.resource.answer import AddressBookRow
from tonlake.ingest.derive.contract.record import load_interfaces
from tonlake.queries.reader import Reader, Row

Domains = dict[tuple[int, bytes], str]
"""The shortest domain by workchain and account id."""

MAX_DOMAINS_KEPT = 2


def find_domains(reader: Reader) -> Domains:
    """Return the domains of a snapshot: few, and reread only if a commit changed them."""
    files = reader.snapshot.files["dns_records"]
    if not files:
        return {}
    key = (str(reader.snapshot.lake_dir), *(file.path for file in files))
    with _LOCK:
        found = _DOMAINS.get(key)
    if found is None:
        rows = reader.rows("v3/domains")
        found = {(row["workchain"], row["account"]): row["domain"] for row in rows}
        with _LOCK:
            while len(_DOMAINS) >= MAX_DOMAINS_KEPT:
                _DOMAINS.pop(next(iter(_DOMAINS)))
            _DOMAINS[key] = found
    return found


_LOCK = threading.Lock()
_DOMAINS: dict[tuple[str, ...], Domains] = {}


def read_accounts(
    call: Call, addresses: Iterable[Address], mc_seqno: int | None = None
) -> dict[Address, Row]:
    """Return the newest states of known accounts, or those after a masterchain block."""
    requested = pair_addresses(sorted(set(addresses)))
    if not requested["accounts"]:
        return {}
    rows = call.reader.rows("v3/accounts", **requested, mc_seqno=mc_seqno)
    return {Address(row["workchain"], row["account"]): row for row in rows}


def pair_addresses(accounts: Iterable[tuple[int, bytes]]) -> dict[str, list[Any]]:
    """Return the two list parameters by which queries take accounts."""
    listed = list(accounts)
    return {
        "workchains": [workchain for workchain, _account in listed],
        "accounts": [account for _workchain, account in listed],
    }


def write_address_book(call: Call, accounts: Iterable[tuple[int, bytes]]) -> Any:  # noqa: ANN401
    """Return the address book of workchains and account ids; {} if the request opts out of it.

    With the C extension it is ``msgspec.Raw``: JSON written without a struct for each address.
    """
    if call.no_address_book:
        return {}
    if NATIVE is None:
        described = describe_addresses(call, starmap(Address, accounts))
        return {str(address): row for address, row in described.items()}
    # By workchain and id: in two steps that compare numbers and bytes, not pairs.
    requested = sorted(sorted(accounts, key=itemgetter(1)), key=itemgetter(0))
    code_hashes = list_codes(call, requested)
    codes = read_codes(call.reader, code_hashes)
    tags = [TAGS[bounceable, call.test_only] for bounceable in (False, True)]
    facts = {
        code_hash: (tags[_is_bounceable(code_hash)], code.written)
        for code_hash, code in codes.items()
    }
    domains = find_domains(call.reader)
    known = [pair for pair in requested if pair in domains] if domains else []
    named = {pair: msgspec.json.encode(domains[pair]) for pair in known}
    listed = list(map(facts.__getitem__, code_hashes))
    return msgspec.Raw(NATIVE.write_book(requested, listed, named))


UNKNOWN = b""
"""In place of the code hash of an account unknown to the lake."""


def list_codes(call: Call, accounts: Sequence[tuple[int, bytes]]) -> list[bytes | None]:
    """Return the newest code hashes of accounts: None without code, ``UNKNOWN`` without a state."""
    codes = call.codes
    missing = [account for account in accounts if account not in codes]
    if missing:
        codes.update(dict.fromkeys(missing, UNKNOWN))
        workchains, ids = zip(*missing, strict=True)
        for row in call.reader.rows("v3/account_codes", workchains=workchains, accounts=ids):
            codes[row["workchain"], row["account"]] = row["code_hash"]
    return list(map(codes.__getitem__, accounts))


def _is_bounceable(code_hash: bytes | None) -> bool:
    """Return whether the friendly form is bounceable: not for wallets and accounts without code."""
    return bool(code_hash) and code_hash not in WALLETS


def describe_addresses(call: Call, addresses: Iterable[Address]) -> dict[Address, AddressBookRow]:
    """Return the rows of the addresses, in their order."""
    requested = sorted(set(addresses))
    code_hashes = list_codes(call, requested)
    codes = read_codes(call.reader, code_hashes)
    domains = find_domains(call.reader)
    test_only = call.test_only
    return {
        address: AddressBookRow(
            user_friendly=_write_friendly(
                address, bounceable=_is_bounceable(code_hash), test_only=test_only
            ),
            domain=domains.get((address.workchain, address.account)) if domains else None,
            interfaces=codes[code_hash].listed,
        )
        for address, code_hash in zip(requested, code_hashes, strict=True)
    }


def _write_friendly(address: Address, *, bounceable: bool, test_only: bool) -> str | None:
    """Return the friendly form, or the raw one if the workchain exceeds 8 bits."""
    try:
        return render_friendly(address, bounceable=bounceable, test_only=test_only)
    except AddressInvalid:
        return None


KEPT_CODES = 8192
"""How many codes are cached; almost all accounts share the same few codes."""


class CodeFacts(NamedTuple):
    """Facts about one code.

    ``methods`` are the ids of its get-methods, None if it has no readable method table; ``names``
    are its interfaces, None if none matches; ``listed`` are those in address books, [] for code
    without methods; ``written`` is ``listed`` as JSON.
    """

    methods: list[int] | None
    names: list[str] | None
    listed: list[str] | None
    written: bytes


def _make_facts(methods: list[int] | None, names: list[str] | None) -> CodeFacts:
    listed = names or [] if methods is None else names
    return CodeFacts(methods, names, listed, msgspec.json.encode(listed))


_WITHOUT_CODE = {None: CodeFacts(None, [], None, b"null"), UNKNOWN: _make_facts(None, [])}
"""Of accounts without code, null in address books as in TON Center, and of unknown ones."""

_CODES: dict[Path, dict[bytes, CodeFacts]] = {}
"""Facts by lake and code hash; they depend only on the code, so all snapshots share them."""


def read_codes(
    reader: Reader, code_hashes: Iterable[bytes | None]
) -> dict[bytes | None, CodeFacts]:
    """Return the facts about codes by hash, and about accounts without one.

    A code unknown to contract detection has the interface that its hash is known for, or none: [].
    """
    requested = {code_hash for code_hash in code_hashes if code_hash}
    found: dict[bytes | None, CodeFacts] = dict(_WITHOUT_CODE)
    if not reader.snapshot.files["interfaces"]:
        return found | {code_hash: _guess(code_hash) for code_hash in requested}
    kept = _CODES.setdefault(reader.snapshot.lake_dir, {})
    found |= {code_hash: facts for code_hash in requested if (facts := kept.get(code_hash))}
    missing = sorted(requested - found.keys())
    if missing:
        rows = reader.rows("v3/codes", hashes=missing)
        read = {row["code_hash"]: _make_facts(row["methods"], row["names"]) for row in rows}
        if len(kept) > KEPT_CODES:
            kept.clear()
        kept.update(read)
        found |= {code_hash: _guess(code_hash) for code_hash in missing} | read
    return found


@lru_cache(KEPT_CODES)
def _guess(code_hash: bytes) -> CodeFacts:
    name = load_interfaces().by_code.get(code_hash)
    return _make_facts(None, [] if name is None else [name])
