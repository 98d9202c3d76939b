"""Builds rows of transfers and burns, messages to jetton wallets (TEP-74) and NFTs (TEP-62).

A message counts if the account that consumed it was detected as such a contract after the
masterchain block. If the account no longer exists by then, as after the last transfer of a wallet
that destroys itself, its state before the block decides.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.contract.record import Row, make_table
from tonlake.ingest.derive.contract.stack import AddrStd, Mismatch, address_fields, load_any_address
from tonlake.ingest.errors import BocError
from tonlake.lake.account import AccountId
from tonlake.lake.file.rows import filter_rows, iter_dicts, iter_tuples, keep_rows, list_values
from tonlake.lake.schema import (
    JETTON_BURNS,
    JETTON_TRANSFERS,
    JETTON_WALLETS,
    MESSAGES,
    NFT_ITEMS,
    NFT_TRANSFERS,
    TRANSACTIONS,
    Table,
)

_COLUMNS = (
    *("tx_workchain", "tx_account", "tx_lt", "tx_hash", "mc_seqno", "now"),
    *("source_workchain", "source", "opcode", "body", "direction"),
)
_IN = pa.scalar("in", pa.string())
_OF_TRANSACTION = ("hash", "aborted", "orig_status")
_OPCODE_BITS, _QUERY_BITS = 32, 64
_TAG_BITS, _VAR = 2, 3
_PART = {
    JETTON_WALLETS.name: ("jetton_workchain", "jetton"),
    NFT_ITEMS.name: ("item_index", "collection_workchain", "collection"),
}
"""Columns of a contract's row that are copied to the rows of messages to it."""


class Move(NamedTuple):
    """A message kind: opcode, target table, table of its contracts, sender column, body reader."""

    opcode: int
    table: Table
    contracts: str
    sender: str
    read: Callable[[CellSlice], Row]


def make_moves(
    moves: Mapping[str, pa.Table], found: Mapping[str, pa.Table], before: Mapping[str, pa.Table]
) -> dict[str, pa.Table]:
    """Return the transfer and burn rows of a commit, from the rows of ``select_moves``.

    ``found`` are its contract rows, ``before`` those as of the previous block, for accounts that
    no longer exist after a block.
    """
    tables = [move.table for move in _MOVES.values()]
    messages = moves[MESSAGES.name]
    if not messages.num_rows:
        return {table.name: table.empty for table in tables}
    rows: dict[str, list[Row]] = {table.name: [] for table in tables}
    contracts = {
        name: (_group(found[name], columns), _group(before[name], columns))
        for name, columns in _PART.items()
    }
    aborted = _list_chosen(moves, "aborted", value=True)
    for message in iter_dicts(messages):
        move = _MOVES[message["opcode"]]
        account, mc_seqno = (message["tx_workchain"], message["tx_account"]), message["mc_seqno"]
        after, earlier = (states.get(account, {}) for states in contracts[move.contracts])
        part = after.get(mc_seqno) or earlier.get(mc_seqno - 1)
        fields = None if part is None else read_move(message["opcode"], message["body"])
        if part is None or fields is None:
            continue
        row = {name: message[f"tx_{name}"] for name in ("workchain", "account", "lt")}
        row |= part | fields
        row |= {name: message[name] for name in ("mc_seqno", "now", "tx_hash")}
        row["aborted"] = message["tx_hash"] in aborted
        row[f"{move.sender}_workchain"] = message["source_workchain"]
        row[move.sender] = message["source"]
        rows[move.table.name].append(row)
    return {table.name: make_table(table, rows[table.name]) for table in tables}


def list_recipients(moves: Mapping[str, pa.Table]) -> Iterator[tuple[AddrStd, int]]:
    """Yield active accounts that consumed potential transfers, with the block of each."""
    active = _list_chosen(moves, "orig_status", value="active")
    columns = ("tx_hash", "tx_workchain", "tx_account", "mc_seqno")
    for tx_hash, workchain, account, mc_seqno in iter_tuples(moves[MESSAGES.name], columns):
        if tx_hash in active:
            yield AddrStd(workchain, account), mc_seqno


def select_moves(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the messages and transactions that ``list_recipients`` and ``make_moves`` read."""
    messages = tables.get(MESSAGES.name, MESSAGES.empty).select(_COLUMNS)
    transactions = tables.get(TRANSACTIONS.name, TRANSACTIONS.empty).select(_OF_TRANSACTION)
    named = filter_rows(messages, "opcode", _OPCODES)
    if not named.num_rows:
        return {MESSAGES.name: named, TRANSACTIONS.name: transactions.slice(0, 0)}
    moving = keep_rows(named, pc.equal(named["direction"], _IN))
    hashes = moving["tx_hash"].combine_chunks()
    theirs = keep_rows(transactions, pc.is_in(transactions["hash"], value_set=hashes))
    return {MESSAGES.name: moving, TRANSACTIONS.name: theirs}


def _group(rows: pa.Table, columns: tuple[str, ...]) -> dict[AccountId, dict[int, Row]]:
    """Return ``columns`` of contract rows by account and masterchain block."""
    grouped: dict[AccountId, dict[int, Row]] = {}
    keys = iter_tuples(rows, ("workchain", "account", "mc_seqno"))
    parts = iter_dicts(rows.select(columns))
    for (workchain, account, mc_seqno), part in zip(keys, parts, strict=True):
        grouped.setdefault((workchain, account), {})[mc_seqno] = part
    return grouped


def _list_chosen(moves: Mapping[str, pa.Table], column: str, *, value: bool | str) -> set[bytes]:
    """Return the hashes of the messages' transactions in which ``column`` has ``value``."""
    transactions = moves[TRANSACTIONS.name]
    if not transactions.num_rows:
        return set()
    return set(list_values(transactions["hash"].filter(pc.equal(transactions[column], value))))


def read_move(opcode: int, body: bytes | None) -> Row | None:
    """Return the fields of a transfer or burn; None if the body does not match the layout."""
    if body is None:
        return None
    try:
        tree = parse_boc(body)
        start = tree.slice(tree.roots[0])
        start.skip(_OPCODE_BITS)
        return {"query_id": start.load_uint(_QUERY_BITS), **_MOVES[opcode].read(start)}
    except (BocError, Mismatch):
        return None


def _read_transfer(start: CellSlice) -> Row:
    """Read amount, destination, response_destination, custom_payload and the forward fields."""
    return {
        "amount": start.load_coins(),
        **address_fields("destination", _load_recipient(start)),
        **_read_response(start),
        "forward_ton_amount": start.load_coins() if start.bits_left else 0,
        **_read_forward(start),
    }


def _read_burn(start: CellSlice) -> Row:
    """Read the amount, and what follows it as far as it can be read: wallets do not check it."""
    amount = start.load_coins()
    try:
        return {"amount": amount, **_read_response(start)}
    except (BocError, Mismatch):
        # Some senders write other data there.
        response = address_fields("response_destination", None)
        return {"amount": amount, **response, "custom_payload": None}


def _read_nft_transfer(start: CellSlice) -> Row:
    return {
        **address_fields("new_owner", _load_recipient(start)),
        **_read_response(start),
        "forward_amount": start.load_coins() if start.bits_left else 0,
        **_read_forward(start),
    }


def _load_recipient(start: CellSlice) -> AddrStd | None:
    """Read the address of the new owner; raise Mismatch for addr_var, which no account has."""
    if start.bits_left >= _TAG_BITS and start.peek_uint(_TAG_BITS) == _VAR:
        raise Mismatch("the recipient is an addr_var")
    return load_any_address(start)


def _read_response(start: CellSlice) -> Row:
    """Read response_destination and custom_payload, before either of which a body may end."""
    # Destination of excess Toncoin: contracts accept any address, and the transfer succeeds.
    address = load_any_address(start) if start.bits_left else None
    has_payload = bool(start.bits_left) and start.load_bit() and start.refs_left
    payload = start.load_ref() if has_payload else None
    response = address_fields("response_destination", address)
    return {**response, "custom_payload": _write(start, payload)}


def _read_forward(start: CellSlice) -> Row:
    """Read forward_payload:(Either Cell ^Cell), which contracts forward without parsing.

    Some senders omit it, or only the reference.
    """
    payload = is_inline = None
    if start.bits_left:
        is_inline = not start.load_bit()
        if not is_inline and start.refs_left:
            payload = start.load_ref()
        elif is_inline and (start.bits_left or start.refs_left):
            payload = CellBuilder(start.tree).store_slice(start).end()
    return {"forward_payload": _write(start, payload), "forward_payload_inline": is_inline}


def _write(start: CellSlice, cell: int | None) -> bytes | None:
    return None if cell is None else serialize_boc(start.tree, [cell], crc32c=True)


_MOVES = {
    move.opcode: move
    for move in (
        Move(0x0F8A7EA5, JETTON_TRANSFERS, JETTON_WALLETS.name, "source", _read_transfer),
        Move(0x595F07BC, JETTON_BURNS, JETTON_WALLETS.name, "owner", _read_burn),
        Move(0x5FCC3D14, NFT_TRANSFERS, NFT_ITEMS.name, "old_owner", _read_nft_transfer),
    )
}
"""Message kinds by opcode; all opcodes are positive as signed numbers."""
_OPCODES = pa.array(list(_MOVES), pa.int32())
