"""Accounts: their state after any masterchain block that the lake covers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.chain.account import (
    WALLETS,
    AccountState,
    find_state,
    find_utime,
    read_cells,
    read_shard_account,
    read_wallet_data,
)
from tonlake.api.v2.method.contract import describe_contract
from tonlake.api.v2.suspension import is_suspended
from tonlake.api.v2.value import (
    render_account,
    render_base64,
    render_block_of,
    render_boc,
    render_currencies,
    render_transaction_id,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.api.chain.arguments import AccountParams
    from tonlake.api.request.call import Call


def name_state(state: AccountState) -> str:
    """Return the state in the words of version 2, which has none for accounts never used."""
    if state.code_hash is not None:
        return "active"
    return "uninitialized" if state.frozen_hash is None else "frozen"


def answer_shard_account(call: Call, params: AccountParams) -> dict[str, str]:
    """getShardAccountCell: account state as a ShardAccount cell."""
    boc = read_shard_account(call, find_state(call, params))
    return {"@type": "tvm.cell", "bytes": render_boc(boc)}


def answer_information(call: Call, params: AccountParams) -> dict[str, Any]:
    """getAddressInformation: account state with code and data."""
    state = find_state(call, params)
    code, data = read_cells(call, state)
    utime = find_utime(call, state)
    return {
        "@type": "raw.fullAccountState",
        "balance": str(state.balance),
        "extra_currencies": render_currencies(state.extra_currencies),
        "last_transaction_id": render_transaction_id(state.last_trans_lt, state.last_trans_hash),
        "block_id": render_block_of(state.master),
        "code": render_boc(code),
        "data": render_boc(data),
        "frozen_hash": render_base64(state.frozen_hash),
        "sync_utime": utime,
        "state": name_state(state),
        "suspended": is_suspended(call, state.master, state.address, utime),
    }


def answer_extended_information(call: Call, params: AccountParams) -> dict[str, Any]:
    """getExtendedAddressInformation: account state, with data decoded for known contracts."""
    state = find_state(call, params)
    code, data = read_cells(call, state)
    kind, revision = describe_contract(
        state.code_hash, code=code, data=data, frozen_hash=state.frozen_hash
    )
    return {
        "@type": "fullAccountState",
        "address": render_account(state.address.workchain, state.address.account),
        "balance": str(state.balance),
        "extra_currencies": render_currencies(state.extra_currencies),
        "last_transaction_id": render_transaction_id(state.last_trans_lt, state.last_trans_hash),
        "block_id": render_block_of(state.master),
        "sync_utime": find_utime(call, state),
        "account_state": kind,
        "revision": revision,
    }


def answer_wallet_information(call: Call, params: AccountParams) -> dict[str, Any]:
    """getWalletInformation: wallet type and seqno."""
    state = find_state(call, params)
    kind = WALLETS.get(state.code_hash or b"")
    found: dict[str, Any] = {
        "@type": "ext.accounts.walletInformation",
        "wallet": kind is not None,
        "balance": str(state.balance),
        "account_state": name_state(state),
        "last_transaction_id": render_transaction_id(state.last_trans_lt, state.last_trans_hash),
    }
    if kind is None:
        return found
    _code, data = read_cells(call, state)
    read = None if data is None else read_wallet_data(kind, data)
    fields: Mapping[str, Any] = {} if read is None else msgspec.structs.asdict(read)
    return found | {
        "wallet_type": kind.name,
        **{name: value for name, value in fields.items() if value is not None},
    }


def answer_balance(call: Call, params: AccountParams) -> str:
    """getAddressBalance: nanoton as text."""
    return str(find_state(call, params).balance)


def answer_state(call: Call, params: AccountParams) -> str:
    """getAddressState: active, frozen or uninitialized."""
    return name_state(find_state(call, params))
