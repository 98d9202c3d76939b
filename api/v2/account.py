"""Accounts: their state as of any covered masterchain block, and get-methods on it.

``getExtendedAddressInformation`` recognises some contracts by their code. Their data begins with
32-bit numbers, which tonlib's get-methods return; contracts that need more than the beginning of
the data are returned as raw states.
"""

import base64
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tonlake.api.chain.account import (
    WALLETS,
    AccountAtBlock,
    find_state,
    find_utime,
    read_cells,
    read_shard_account,
    read_wallet_data,
)
from tonlake.api.chain.arguments import AccountParams, GetMethodParams
from tonlake.api.chain.block import find_configuration_seqno
from tonlake.api.chain.run import run_get_method
from tonlake.api.request.call import Call
from tonlake.api.text.encoding import Address, encode_legacy, encode_typed
from tonlake.api.v2.value import (
    render_account,
    render_base64,
    render_block_of,
    render_boc,
    render_currencies,
    render_transaction_id,
)
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.derive.tvm.call import StackValue
from tonlake.ingest.errors import BocError

_WORD_BITS = 32


class ContractKind(NamedTuple):
    """The type tag of tonlib, names of the leading numbers in the data, and the code's revision."""

    tag: str
    numbers: tuple[str, ...]
    revision: int


_V3 = ("wallet.v3.accountState", ("seqno", "wallet_id"))
_V4 = ("wallet.v4.accountState", ("seqno", "wallet_id"))
_HIGHLOAD_V1 = ("wallet.highload.v1.accountState", ("seqno", "wallet_id"))
_HIGHLOAD_V2 = ("wallet.highload.v2.accountState", ("wallet_id",))
_DNS = ("dns.accountState", ("wallet_id",))
_KINDS = {
    "thBBpYp5gLlG6PueGY48kE0keZ/6NldOpCUcQaVm9YE=": (*_V3, 1),
    "hNr6RJ+Ypph3ibojI1gHK8D3bcRSQAKl0JGLmnXS1Zk=": (*_V3, 2),
    "/rX/aCDi/w2Ug+fg1iyBfYRniftK5YDIeIZtlZ2r1cA=": (*_V4, 2),
    "2M27t58sXKpnesRQdwvgNRviHhJQSG3oXMUqoz3RZIQ=": (*_HIGHLOAD_V1, 1),
    "NowDly5fTCRBK4GGUt4d4qJjDRwBFgmZnf90X7NoSa0=": (*_HIGHLOAD_V1, 2),
    "jOtFs81LXMYOquHBO5wJI5Jnf+U2sumy2AG2Lv+TH+E=": (*_HIGHLOAD_V2, 1),
    "CzqIeurNKn1Au1VQvJJTFWoCkGWu+21rWDc11Y2p1b4=": (*_HIGHLOAD_V2, 2),
    "oNZ9LeiRn+e3yndlLM1P3FbGid56aRYeRfsNzF5HwVU=": (*_DNS, 1),
}
CONTRACTS: dict[bytes, ContractKind] = {
    base64.b64decode(key): ContractKind(*kind) for key, kind in _KINDS.items()
}
"""Kinds by code hash."""


def describe_contract(
    code_hash: bytes | None, *, code: bytes | None, data: bytes | None, frozen_hash: bytes | None
) -> tuple[dict[str, Any], int]:
    """Return the ``account_state`` object and the revision of a contract."""
    if code_hash is None:
        tag = "uninited.accountState"
        return {"@type": tag, "frozen_hash": render_base64(frozen_hash)}, 0
    kind = CONTRACTS.get(code_hash)
    numbers = None if kind is None or data is None else _read_numbers(kind, data)
    if kind is not None and numbers is not None:
        return {"@type": kind.tag, **numbers}, kind.revision
    raw = {"code": render_boc(code), "data": render_boc(data), "frozen_hash": ""}
    return {"@type": "raw.accountState", **raw}, 0


def _read_numbers(kind: ContractKind, data: bytes) -> dict[str, int] | None:
    """Read the leading numbers of the data; None if it is too short or an exotic cell."""
    try:
        tree = parse_boc(data)
        start = tree.slice(tree.roots[0])
        return {
            name: start.load_int(_WORD_BITS) if name == "wallet_id" else start.load_uint(_WORD_BITS)
            for name in kind.numbers
        }
    except BocError:
        return None


def name_state(state: AccountAtBlock) -> str:
    """Return the state name of version 2, which has no name for nonexistent accounts."""
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
    name = WALLETS.get(state.code_hash or b"")
    found: dict[str, Any] = {
        "@type": "ext.accounts.walletInformation",
        "wallet": name is not None,
        "balance": str(state.balance),
        "account_state": name_state(state),
        "last_transaction_id": render_transaction_id(state.last_trans_lt, state.last_trans_hash),
    }
    if name is None or state.code_hash is None:
        return found
    _code, data = read_cells(call, state)
    return found | {"wallet_type": name, **read_wallet_data(state.code_hash, data)}


def answer_balance(call: Call, params: AccountParams) -> str:
    """getAddressBalance: nanoton as text."""
    return str(find_state(call, params).balance)


def answer_state(call: Call, params: AccountParams) -> str:
    """getAddressState: active, frozen or uninitialized."""
    return name_state(find_state(call, params))


SUSPENDED_PARAM = 44
_KEY_BITS = 288
_ACCOUNT_BITS = 256
_WORKCHAIN_BITS = 32


def is_suspended(call: Call, master: Mapping[str, Any], address: Address, utime: int) -> bool:
    """Return whether an account may not be activated at a time.

    TL-B: suspended_address_list#00 addresses:(HashmapE 288 Unit) suspended_until:uint32.
    Without the key block of the current configuration, the list counts as empty.
    """
    # Most requests are about the newest block, whose list is read only once.
    newest = master["seqno"] == call.reader.snapshot.last_mc_seqno
    find = call.reader.lasting_rows if newest else call.reader.rows
    rows = find(
        "v2/config_params", mc_seqno=find_configuration_seqno(master), param=SUSPENDED_PARAM
    )
    if not rows:
        return False
    tree = parse_boc(rows[0]["boc"])
    start = tree.slice(tree.roots[0])
    start.skip(8)
    root = start.load_maybe_ref()
    if root is None or utime >= start.load_uint(32):
        return False
    requested = (address.workchain & (1 << _WORKCHAIN_BITS) - 1) << _ACCOUNT_BITS
    requested |= int.from_bytes(address.account, "big")
    return any(key == requested for key, _value in iter_hashmap(tree, root, _KEY_BITS))


def answer_run(call: Call, params: GetMethodParams) -> dict[str, Any]:
    """runGetMethod: result stack as pairs of tag and value."""
    state, answer = _run(call, params, encode_legacy)
    last = render_transaction_id(state.last_trans_lt, state.last_trans_hash)
    return answer | {"block_id": render_block_of(state.master), "last_transaction_id": last}


def answer_run_std(call: Call, params: GetMethodParams) -> dict[str, Any]:
    """runGetMethodStd: result stack as typed entries."""
    return _run(call, params, encode_typed)[1]


def _run(
    call: Call, params: GetMethodParams, encode: Callable[[StackValue], object]
) -> tuple[AccountAtBlock, dict[str, Any]]:
    state, outcome = run_get_method(call, params, params.method, params.stack)
    return state, {
        "@type": "smc.runResult",
        "gas_used": outcome.gas_used,
        "stack": [encode(value) for value in outcome.stack],
        "exit_code": outcome.exit_code,
    }
