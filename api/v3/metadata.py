"""The metadata of an answer: what the token contracts in it say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from api.address import Address, render_raw
from api.encoding import encode_account
from api.errors import RequestInvalid
from api.params import ConversionError, Query, Texts, parse_any_address
from api.v3.answer import AddressMetadata, Metadata, TokenInfo
from api.v3.book import pair_addresses, read_accounts
from api.v3.history import check_derived, is_derived
from api.v3.interface import read_codes
from api.v3.operation import operation
from api.v3.payload import decode_content

if TYPE_CHECKING:
    from collections.abc import Iterable

    from api.call import Call

Row = dict[str, Any]

TOKEN_METHODS = frozenset({97026, 106029, 102491, 102351})
"""Ids of get_wallet_data, get_jetton_data, get_collection_data and get_nft_data."""

_NAMED = ("name", "symbol", "description", "image")


class MetadataQuery(Query, frozen=True, kw_only=True):
    """Texts that should be addresses."""

    address: Texts = ()


def get_metadata(call: Call, query: MetadataQuery) -> Metadata:
    """Say what token contracts say of themselves, each under its raw address.

    Raises:
        RequestInvalid: no address was sent.
        NotDerived: nobody looked what the accounts of this lake are.
    """
    if not query.address:
        raise RequestInvalid("at least 1 address required")
    check_derived(call)
    return describe_tokens(call, [item for text in query.address for item in _parse(text)])


def read_metadata(call: Call, addresses: Iterable[Address]) -> Metadata:
    """Return what is known of these addresses; {} if the request wants none."""
    return {} if call.no_metadata else describe_tokens(call, addresses)


def describe_tokens(call: Call, addresses: Iterable[Address]) -> Metadata:
    """Return what is known of these addresses, and of the masters of the jetton wallets in them."""
    if not is_derived(call):
        call.warn("metadata is left out: this lake does not say what its accounts are")
        return {}
    wanted = _select_tokens(call, addresses)
    rows = _read_tokens(call, wanted)
    masters = {
        Address(row["jetton_workchain"], row["jetton"])
        for row in rows
        if row["kind"] == "jetton_wallets"
    }
    rows += _read_tokens(call, masters - wanted)
    found: Metadata = {}
    for row in rows:
        address = render_raw(row["workchain"], row["account"])
        known = found.setdefault(address, AddressMetadata(is_indexed=True, token_info=[]))
        info, is_indexed = _describe_token(row)
        known.token_info.append(info)
        known.is_indexed = known.is_indexed and is_indexed
    return found


def _parse(text: str) -> list[Address]:
    try:
        return [parse_any_address(text)]
    except ConversionError:
        return []


def _select_tokens(call: Call, addresses: Iterable[Address]) -> set[Address]:
    """Leave out the accounts whose code has none of the methods of token contracts."""
    accounts = read_accounts(call, addresses)
    codes = read_codes(call.reader, (row["code_hash"] for row in accounts.values()))
    selected = set()
    for address, row in accounts.items():
        if row["code_hash"] is None:
            continue
        methods = codes[row["code_hash"]].methods
        if methods is None or not TOKEN_METHODS.isdisjoint(methods):
            selected.add(address)
    return selected


def _read_tokens(call: Call, addresses: Iterable[Address]) -> list[Row]:
    pairs = pair_addresses(sorted(addresses))
    return call.reader.rows("v3/tokens", **pairs) if pairs["accounts"] else []


def _describe_token(row: Row) -> tuple[TokenInfo, bool]:
    """Return what a row of ``v3/tokens`` says, and whether that is all there is to say."""
    kind = row["kind"]
    if kind == "jetton_wallets":
        return TokenInfo(type=kind, valid=True, extra=_describe_wallet(row)), True
    index = UNSET if row["item_index"] is None else row["item_index"]
    content = decode_content(row["content"])
    if content is None:
        return TokenInfo(type=kind, valid=False, nft_index=index), True
    named = {key: content[key] for key in _NAMED if isinstance(content.get(key), str)}
    extra = {key: value for key, value in content.items() if key not in named}
    info = msgspec.convert({"type": kind, **named}, TokenInfo)
    info.nft_index = index
    info.extra = extra or UNSET
    if set(content) != {"uri"}:
        info.valid = True
    return info, "uri" not in content


def _describe_wallet(row: Row) -> dict[str, object]:
    return {
        "balance": str(row["balance"]),
        "owner": encode_account(row["owner_workchain"], row["owner"]),
        "jetton": render_raw(row["jetton_workchain"], row["jetton"]),
    }


routes = [operation("/metadata", MetadataQuery, get_metadata)]
