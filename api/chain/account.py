"""Reads the state of an account after any masterchain block in the lake."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.chain.cells import read_cell_trees
from tonlake.api.chain.fetched import find_bags, find_fetched
from tonlake.api.chain.place import (
    STATE_UNKNOWN,
    find_master,
    find_range_start,
    knows_every_account,
    list_ancestors,
    name_ranges,
)
from tonlake.api.errors import LiteServerError
from tonlake.api.text.address import Address
from tonlake.ingest.decode.cell.boc import BocError, parse_boc
from tonlake.ingest.derive.contract.standard.wallet import read_wallet
from tonlake.ingest.derive.tvm.call import join_shard_account

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.api.chain.arguments import AccountParams
    from tonlake.api.request.call import Call

ZERO_HASH = bytes(32)
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
    """An account after a masterchain block; all fields are empty if it does not exist."""

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
    bags: Mapping[bytes, bytes] = {}
    """Cells by hash, for an account fetched from lite servers."""


def find_state(call: Call, params: AccountParams) -> AccountState:
    """Return the state of an account after the masterchain block ``params.seqno`` or the newest.

    Raises:
        LiteServerError: the block is not in the lake, or the lake cannot know the state there.
    """
    address = params.address.address
    master = find_master(call, params.seqno)
    return make_state(call, address, master, _read_state(call, address, master["seqno"]))


def make_state(call: Call, address: Address, master: Row, row: Row | None) -> AccountState:
    """Return the state of an account after a masterchain block from ``row``, its newest state.

    Raises:
        LiteServerError: the lake cannot know the state there.
    """
    seqno = master["seqno"]
    # A row from before a gap may be stale, and a missing row proves nothing after one.
    known = row is not None and row["mc_seqno"] >= find_range_start(call, seqno)
    bags: Mapping[bytes, bytes] = {}
    if not known and not knows_every_account(call, seqno):
        fetched = find_fetched(call, address, seqno)
        if fetched is None:
            raise LiteServerError(
                f"{STATE_UNKNOWN}: {name_ranges(call)}, "
                f"and there is no transaction of {address} in that range up to {seqno}"
            )
        row, bags = fetched.row, fetched.bags
    found = _ABSENT if row is None or row["account_status"] == "nonexist" else row
    rest = {name: found[name] for name in _ABSENT if name != "hash"}
    return AccountState(address, dict(master), found["hash"], **rest, bags=bags)


def _read_state(call: Call, address: Address, seqno: int) -> Row | None:
    """Return the newest state of an account up to masterchain block ``seqno``."""
    return call.reader.one(
        "v2/account_state",
        workchain=address.workchain,
        account=address.account,
        mc_seqno=seqno,
    )


def find_utime(call: Call, state: AccountState) -> int:
    """Return the block time of the account's shard, or of the masterchain without such a shard."""
    shards = list_ancestors(int.from_bytes(state.address.account[:8], "big"))
    seqno, reader = state.master["seqno"], call.reader
    # The rows of the newest block are requested most often, and are few.
    ask = reader.lasting_rows if seqno == reader.snapshot.last_mc_seqno else reader.rows
    utime: int = state.master["gen_utime"]
    for row in ask("v2/shard_utimes", mc_seqnos=[seqno]):
        if row["workchain"] == state.address.workchain and row["shard"] in shards:
            utime = row["gen_utime"]
    return utime


def read_cells(call: Call, state: AccountState) -> tuple[bytes | None, bytes | None]:
    """Return code and data of a state as bags of cells; None for a missing one.

    Raises:
        LiteServerError: the lake does not have all of their cells.
    """
    roots = (state.code_hash, state.data_hash)
    cells = _read_cells(call, state, roots)
    if not {cell_hash for cell_hash in roots if cell_hash is not None} <= cells.keys():
        raise LiteServerError(
            f"{STATE_UNKNOWN}: the lake does not begin at the zero state and lacks cells of the "
            f"code or data of {state.address}"
        )
    code, data = (None if cell_hash is None else cells[cell_hash] for cell_hash in roots)
    return code, data


def _read_cells(
    call: Call, state: AccountState, roots: Sequence[bytes | None]
) -> Mapping[bytes, bytes]:
    """Return the cells that the lake or lite servers have, as bags of cells by root hash."""
    if state.bags:
        return state.bags
    cells = read_cell_trees(call.reader, roots)
    if {*roots} - {None} <= cells.keys() or state.state_hash is None:
        return cells
    fetched = find_bags(call, state.address, state.master["seqno"], state.state_hash)
    return {**cells, **fetched}


def read_shard_account(call: Call, state: AccountState) -> bytes:
    """Return ShardAccount (account state and last transaction) as a bag of cells.

    Raises:
        LiteServerError: the lake does not have all of its cells.
    """
    account = None
    if state.state_hash is not None:
        account = _read_cells(call, state, [state.state_hash]).get(state.state_hash)
        if account is None:
            raise LiteServerError(
                f"{STATE_UNKNOWN}: the lake does not begin at the zero state and lacks cells of "
                f"{state.address}"
            )
    return join_shard_account(account, state.last_trans_hash, state.last_trans_lt)


class WalletKind(msgspec.Struct, frozen=True):
    """A wallet version: its name in the API and the hash of its code."""

    name: str
    code_hash: bytes


class WalletData(msgspec.Struct, frozen=True):
    """Fields of a wallet's data; None if the version does not have the field."""

    seqno: int
    wallet_id: int | None = None
    is_signature_allowed: bool | None = None


_TABLE: tuple[tuple[str, str], ...] = (
    ("wallet v1 r1", "oM/CxIruFqJx8s/AtzgtgXVs7LEBfQd/qqs7tgL2how="),
    ("wallet v1 r2", "1JAvzJ+tdGmPqONTIgpo2g3PcuMryy657gQhfBfTBiw="),
    ("wallet v1 r3", "WHzHie/xyE9G7DeX5F/ICaFP9a4k8eDHpqmcydyQYf8="),
    ("wallet v2 r1", "XJpeaMEI4YchoHxC+ZVr+zmtd+xtYktgxXbsiO7mUyk="),
    ("wallet v2 r2", "/pUw0yQ4Uwg+8u8LTCkIwKv2+hwx6iQ6rKpb+MfXU/E="),
    ("wallet v3 r1", "thBBpYp5gLlG6PueGY48kE0keZ/6NldOpCUcQaVm9YE="),
    ("wallet v3 r2", "hNr6RJ+Ypph3ibojI1gHK8D3bcRSQAKl0JGLmnXS1Zk="),
    ("wallet v4 r1", "ZN1UgFUixb6KnbWc6gEFzPDQh4bKeb64y3nogKjXMi0="),
    ("wallet v4 r2", "/rX/aCDi/w2Ug+fg1iyBfYRniftK5YDIeIZtlZ2r1cA="),
    ("wallet v5 beta", "89fKU0k97trCizgZhqhJQDy6w9LFhHea8IEGWvCsS5M="),
    ("wallet v5 r1", "IINLe3KxEhR+Gy+0V7hOdNGjDwT3N9T2KmaOlVLSty8="),
)
WALLETS: dict[bytes, WalletKind] = {
    code_hash: WalletKind(name, code_hash)
    for name, code_hash in ((name, base64.b64decode(text)) for name, text in _TABLE)
}
"""Wallet versions by code hash, without highload wallets and others that have no seqno."""


def read_wallet_data(kind: WalletKind, data: bytes) -> WalletData | None:
    """Decode the data cell of a wallet from a bag of cells.

    Return None if the data is too short or an exotic cell: such a wallet cannot work.
    """
    try:
        tree = parse_boc(data)
        found = read_wallet(kind.code_hash, tree.slice(tree.roots[0]))
    except BocError:
        return None
    if found is None or found["seqno"] is None:
        return None
    return WalletData(found["seqno"], found["wallet_id"], found["is_signature_allowed"])
