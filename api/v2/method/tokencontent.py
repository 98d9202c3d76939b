"""Content of tokens and of domain items, in the form of getTokenData."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.v2.method.dns import ACCOUNT_TAG, ADNL_TAG, RESOLVER_TAG, STORAGE_TAG, load_account
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.derive.contract.standard.content import OFF_CHAIN, load_snake, read_content
from tonlake.ingest.errors import BocError, DecodeError

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.derive.tvm.stack import TvmSlice

ZONE = ".ton"
_KEY_BITS = 256
_CATEGORIES = {
    bytes.fromhex(digest): name
    for name, digest in {
        "dns_next_resolver": "19f02441ee588fdb26ee24b2568dd035c3c9206e11ab979be62e55558a1d17ff",
        "wallet": "e8d44050873dba865aa7c170ab4cce64d90839a34dcfd6cf71d14e0205443b1b",
        "site": "fbae041b02c41ed0fd8a4efb039bc780dd6af4a1f0c420f42561ae705dda43fe",
        "storage": "49a25f9feefaffecad0fcd30c50dc9331cff8b55ece53def6285c09e17e6f5d7",
    }.items()
}
"""TEP-81: categories are SHA-256 of their names."""


def render_content(boc: bytes) -> dict[str, Any]:
    """Return token content (TEP-64): an off-chain URI, or the on-chain values."""
    tree = parse_boc(boc)
    content = read_content(tree, tree.roots[0])
    if content is None:
        return {"type": "onchain", "data": {}}
    start = tree.slice(tree.roots[0])
    if start.load_uint(8) == OFF_CHAIN:
        return {"type": "offchain", "data": content["uri"]}
    return {"type": "onchain", "data": content}


def render_domain(label: TvmSlice, records: bytes | None) -> dict[str, Any]:
    """Return the content of a domain item: its name, and its records by category.

    Raises:
        BocError, UnicodeDecodeError: the label is not text, or the records not a dictionary.
    """
    tree = parse_boc(label.boc)
    name = load_snake(tree.slice(tree.roots[0])).decode()
    return {"domain": name + ZONE, "data": {} if records is None else _render_records(records)}


def _render_records(boc: bytes) -> dict[str, Any]:
    tree = parse_boc(boc)
    found = {}
    for key, value in iter_hashmap(tree, tree.roots[0], _KEY_BITS):
        category = key.to_bytes(32, "big")
        record = _render_record(tree.slice(value.load_ref()))
        if record is not None:
            found[_CATEGORIES.get(category, category.hex())] = record
    return found


def _render_record(start: CellSlice) -> dict[str, Any] | None:
    """Return a DNSRecord with its TL-B names; None for another constructor."""
    try:
        tag = start.load_uint(16)
        if tag == RESOLVER_TAG:
            return {"@type": "dns_next_resolver", "resolver": _render_account(start)}
        if tag == ACCOUNT_TAG:
            return {"@type": "dns_smc_address", "smc_addr": _render_account(start)}
        if tag == ADNL_TAG:
            return {"@type": "dns_adnl_address", "adnl_addr": start.load_bytes(32).hex().upper()}
        if tag == STORAGE_TAG:
            return {"@type": "dns_storage_address", "bag_id": start.load_bytes(32).hex().upper()}
    except (BocError, DecodeError):
        pass
    return None


def _render_account(start: CellSlice) -> dict[str, Any]:
    workchain, account = load_account(start)
    if account is None:
        raise DecodeError("the record holds no standard address")
    return {"@type": "addr_std", "workchain_id": workchain, "address": account.hex().upper()}
