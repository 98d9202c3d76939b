"""Names (TEP-81): how domains are written, and the records of a domain."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.derive.contract.detection import address_fields
from tonlake.ingest.derive.contract.stack import Address, Cell, Mismatch, load_address
from tonlake.ingest.derive.contract.standard.content import load_snake
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.slice import CellSlice

TON_SUFFIX = ".ton"
MAIN_NETWORK, TEST_NETWORK = -239, -3
ROOTS: dict[int, frozenset[Address]] = {
    MAIN_NETWORK: frozenset(
        Address(0, bytes.fromhex(account))
        for account in (
            "b774d95eb20543f186c06b371ab88ad704f7e256130caf96189368a7d0cb6ccf",  # .ton
            "80d78a35f955a14b679faa887ff4cd5bfc0f43b4a4eea2a7e6927f3701b273c2",  # t.me
        )
    ),
    TEST_NETWORK: frozenset(
        {
            Address(
                0, bytes.fromhex("e33ed33a42eb2032059f97d90c706f8400bb256d32139ca707f1564ad699c7dd")
            )
        }
    ),
}
"""Collections whose items are domains, by global id of the network."""

_KEY_BITS = 256
_NEXT_RESOLVER, _SMC_ADDRESS, _ADNL_ADDRESS, _STORAGE = 0xBA93, 0x9FD3, 0xAD01, 0x7473
_COLUMNS = {
    "dns_next_resolver": ("next_resolver", _NEXT_RESOLVER),
    "wallet": ("wallet", _SMC_ADDRESS),
    "site": ("site_adnl", _ADNL_ADDRESS),
    "storage": ("storage_bag_id", _STORAGE),
}
_CATEGORIES = {
    int.from_bytes(sha256(category.encode()).digest(), "big"): found
    for category, found in _COLUMNS.items()
}
_ADDRESSES = (_NEXT_RESOLVER, _SMC_ADDRESS)
NO_RECORDS: dict[str, Any] = {
    **address_fields("next_resolver", None),
    **address_fields("wallet", None),
    "site_adnl": None,
    "storage_bag_id": None,
}


def read_text(start: CellSlice) -> str:
    """Return the text of a slice, and of the chain of cells after it.

    Raises:
        Mismatch: it is no UTF-8.
    """
    try:
        return load_snake(start.copy()).decode("utf-8").replace("\0", "")
    except UnicodeDecodeError as error:
        raise Mismatch("a name that is no UTF-8") from error


def join_labels(start: CellSlice) -> str:
    """Return ``name.t.me`` for the labels ``me``, ``t``, ``name``, each ended by a zero byte.

    Raises:
        Mismatch: it is no UTF-8.
    """
    try:
        text = load_snake(start.copy()).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Mismatch("a domain that is no UTF-8") from error
    return ".".join(reversed([label for label in text.split("\0") if label]))


def read_records(records: Cell | None) -> dict[str, Any]:
    """Return the columns of the records of a domain (HashmapE 256 ^DNSRecord).

    A record of another kind than its category has is left out.
    """
    found = dict(NO_RECORDS)
    if records is None:
        return found
    try:
        for key, value in iter_hashmap(records.tree, records.root, _KEY_BITS):
            if key in _CATEGORIES:
                found |= _read_record(*_CATEGORIES[key], value)
    except BocError:
        return found
    return found


def _read_record(column: str, tag: int, value: CellSlice) -> dict[str, Any]:
    try:
        record = value.tree.slice(value.load_ref()) if value.refs_left else value
        if record.load_uint(16) != tag:
            return {}
        if tag in _ADDRESSES:
            return address_fields(column, load_address(record))
        return {column: record.load_bytes(32)}
    except (BocError, Mismatch):
        return {}
