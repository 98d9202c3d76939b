"""Accounts: their state after any masterchain block that the lake covers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from api.address import Address
from api.cells import read_cell_trees
from api.errors import LiteServerError
from api.v2.contract import describe_contract
from api.v2.place import (
    STATE_UNKNOWN,
    begins_at_zero_state,
    find_master,
    find_range_start,
    name_ranges,
)
from api.v2.suspension import is_suspended
from api.v2.value import (
    ZERO_HASH,
    list_ancestors,
    render_account,
    render_base64,
    render_block_of,
    render_boc,
    render_currencies,
    render_transaction_id,
)
from api.wallet import WALLETS, read_wallet_data
from ingest.tvm.emulation import join_shard_account

if TYPE_CHECKING:
    from api.call import Call
    from api.v2.arguments import AccountParams

Row = Mapping[str, Any]

_ABSENT: dict[str, Any] = {
    "hash": None,
    "balance": 0,
    "extra_currencies": None,
    "last_trans_lt": 0,
    "last_trans_hash": ZERO_HASH,
    "frozen_hash": None,
    "code_hash": None,
    "data_hash": None,
}


class AccountState(msgspec.Struct, frozen=True):
    """An account after a masterchain block; an account that does not exist is empty."""

    address: Address
    master: dict[str, Any]
    state_hash: bytes | None
    balance: int
    extra_currencies: str | None
    last_trans_lt: int
    last_trans_hash: bytes
    frozen_hash: bytes | None
    code_hash: bytes | None
    data_hash: bytes | None

    @property
    def word(self) -> str:
        """The state in the words of version 2; it knows no fourth for accounts never used."""
        if self.code_hash is not None:
            return "active"
        return "uninitialized" if self.frozen_hash is None else "frozen"

    @property
    def transaction_id(self) -> dict[str, str]:
        """The ``internal.transactionId`` of the last transaction."""
        return render_transaction_id(self.last_trans_lt, self.last_trans_hash)


def find_state(call: Call, params: AccountParams) -> AccountState:
    """Return the state of an account after the masterchain block that is asked about.

    Raises:
        LiteServerError: the lake lacks the block, or cannot know the state there.
    """
    address = params.address.address
    master = find_master(call, params.seqno)
    seqno = master["seqno"]
    row = _read_state(call, address, seqno)
    # A row from before a hole may be out of date, and a missing one says nothing.
    known = row is not None and row["mc_seqno"] >= find_range_start(call, seqno)
    if not known and not begins_at_zero_state(call, seqno):
        raise LiteServerError(
            f"{STATE_UNKNOWN}: {name_ranges(call)}, "
            f"and there is no transaction of {address} in that range up to {seqno}"
        )
    found = _ABSENT if row is None or row["account_status"] == "nonexist" else row
    rest = {name: found[name] for name in _ABSENT if name != "hash"}
    return AccountState(address, dict(master), found["hash"], **rest)


def _read_state(call: Call, address: Address, seqno: int) -> Row | None:
    """Return the newest state of an account up to a masterchain block."""
    return call.reader.one(
        "v2/account_state",
        workchain=address.workchain,
        account=address.account,
        mc_seqno=seqno,
    )


def find_utime(call: Call, state: AccountState) -> int:
    """Return the time of the account's shard; of the masterchain where there is no such shard."""
    shards = list_ancestors(int.from_bytes(state.address.account[:8], "big"))
    seqno, reader = state.master["seqno"], call.reader
    # The newest block's are asked for again and again, and are few.
    ask = reader.lasting_rows if seqno == reader.snapshot.last_mc_seqno else reader.rows
    utime: int = state.master["gen_utime"]
    for row in ask("v2/shard_utimes", mc_seqno=seqno):
        if row["workchain"] == state.address.workchain and row["shard"] in shards:
            utime = row["gen_utime"]
    return utime


def read_cells(call: Call, state: AccountState) -> tuple[bytes | None, bytes | None]:
    """Return code and data of a state as bags of cells.

    Raises:
        LiteServerError: the lake does not have all of their cells.
    """
    wanted = (state.code_hash, state.data_hash)
    cells = read_cell_trees(call.reader, wanted)
    if not {cell_hash for cell_hash in wanted if cell_hash is not None} <= cells.keys():
        raise LiteServerError(
            f"{STATE_UNKNOWN}: the lake does not begin at the zero state and lacks cells of the "
            f"code or data of {state.address}"
        )
    code, data = (None if cell_hash is None else cells[cell_hash] for cell_hash in wanted)
    return code, data


def read_shard_account(call: Call, state: AccountState) -> bytes:
    """Return ShardAccount, the whole state of an account and its last transaction, as a bag.

    Raises:
        LiteServerError: the lake does not have all of its cells.
    """
    whole = None
    if state.state_hash is not None:
        whole = read_cell_trees(call.reader, [state.state_hash]).get(state.state_hash)
        if whole is None:
            raise LiteServerError(
                f"{STATE_UNKNOWN}: the lake does not begin at the zero state and lacks cells of "
                f"{state.address}"
            )
    return join_shard_account(whole, state.last_trans_hash, state.last_trans_lt)


def answer_shard_account(call: Call, params: AccountParams) -> dict[str, str]:
    """getShardAccountCell: the whole state as the cell ShardAccount."""
    boc = read_shard_account(call, find_state(call, params))
    return {"@type": "tvm.cell", "bytes": render_boc(boc)}


def answer_information(call: Call, params: AccountParams) -> dict[str, Any]:
    """getAddressInformation: the state with code and data."""
    state = find_state(call, params)
    code, data = read_cells(call, state)
    utime = find_utime(call, state)
    return {
        "@type": "raw.fullAccountState",
        "balance": str(state.balance),
        "extra_currencies": render_currencies(state.extra_currencies),
        "last_transaction_id": state.transaction_id,
        "block_id": render_block_of(state.master),
        "code": render_boc(code),
        "data": render_boc(data),
        "frozen_hash": render_base64(state.frozen_hash),
        "sync_utime": utime,
        "state": state.word,
        "suspended": is_suspended(call, state.master, state.address, utime),
    }


def answer_extended_information(call: Call, params: AccountParams) -> dict[str, Any]:
    """getExtendedAddressInformation: the state, its data read as the known contract it is."""
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
        "last_transaction_id": state.transaction_id,
        "block_id": render_block_of(state.master),
        "sync_utime": find_utime(call, state),
        "account_state": kind,
        "revision": revision,
    }


def answer_wallet_information(call: Call, params: AccountParams) -> dict[str, Any]:
    """getWalletInformation: what kind of wallet it is, and its seqno."""
    state = find_state(call, params)
    kind = WALLETS.get(state.code_hash or b"")
    found: dict[str, Any] = {
        "@type": "ext.accounts.walletInformation",
        "wallet": kind is not None,
        "balance": str(state.balance),
        "account_state": state.word,
        "last_transaction_id": state.transaction_id,
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
    return find_state(call, params).word
