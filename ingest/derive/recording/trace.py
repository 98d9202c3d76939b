"""Decodes recorded traces into rows: one JSON object per line, with transactions and messages.

A transaction has the columns that an indexer keeps of it; its cell, and most fields of its phases,
are lost. A message has its full cell, from which its row is decoded; only outgoing external
messages may lack it, as their destination address is lost. Lost fields are NULL.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import pyarrow as pa

from tonlake.ingest.decode.block.message import MessageDecoder
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.rows import RowSet
from tonlake.ingest.derive.contract.stack import parse_address
from tonlake.ingest.derive.contract.transfer import make_moves
from tonlake.ingest.derive.recording.contract import make_recorded
from tonlake.ingest.errors import BocError, DecodeError, RecordingMalformed
from tonlake.lake.schema import MESSAGES, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMPRESSED = ".zst"
_CELL_COLUMNS = MESSAGES.names[MESSAGES.names.index("msg_hash") :]
"""Columns of ``messages`` decoded from the message's cell, as MessageDecoder returns them."""

_WITHOUT_CELLS = "tonlake classify reads recordings without cells"
"""Hint for recordings without cells."""

_MICROSECONDS = 1_000_000
_HASH_BYTES = 32


class RecordedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One end of a message; ``msg_boc`` is its cell."""

    msg_hash: str
    source: str | None
    destination: str | None
    created_lt: int | None = None
    created_at: int | None = None
    opcode: int | None = None
    ihr_fee: int | None = None
    body_hash: str | None = None
    body_boc: str | None = None
    msg_boc: str | None = None


class RecordedTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction, with the fields that were kept."""

    account: str
    lt: int
    hash: str
    block_seqno: int
    mc_block_seqno: Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]
    now: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
    prev_trans_hash: str
    prev_trans_lt: int
    orig_status: str
    end_status: str
    total_fees: int
    account_state_hash_before: str
    account_state_hash_after: str
    descr: str
    in_msg: RecordedMessage | None
    out_msgs: list[RecordedMessage] | None
    aborted: bool | None = None
    destroyed: bool | None = None
    credit_first: bool | None = None
    is_tock: bool | None = None
    installed: bool | None = None
    compute_mode: int | None = None
    compute_exit_code: int | None = None
    compute_exit_arg: int | None = None
    bounce: str | None = None


class RecordedTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the file."""

    transactions: list[RecordedTransaction]
    interfaces: dict[str, dict[str, Any]] = {}


class Recorded(NamedTuple):
    """A trace of a file: its masterchain blocks, its day and its rows."""

    first_mc_seqno: int
    last_mc_seqno: int
    day: str
    tables: dict[str, pa.Table]


def read_recording(path: Path) -> Iterator[Recorded]:
    """Yield the traces of a ``.jsonl`` or ``.jsonl.zst`` file, in file order.

    Raises:
        RecordingMalformed: a line is malformed, or the file is empty; the message names file and
            line.
    """
    lines = read_lines(path)
    if not lines:
        raise RecordingMalformed(f"{path.name} is empty: it holds no trace")
    for number, line in enumerate(lines, 1):
        try:
            yield decode_line(line)
        except (BocError, DecodeError, ValueError, LookupError) as error:
            # Errors of msgspec and of base64 are ValueErrors; so is a cell that ends too early,
            # unless it is an IndexError (see tonlake.ingest.decode.block.currency).
            raise RecordingMalformed(f"{path.name}, line {number}: {error}") from error


def read_lines(path: Path) -> list[bytes]:
    """Return the lines of a ``.jsonl`` or ``.jsonl.zst`` file.

    Raises:
        RecordingMalformed: the file cannot be read.
    """
    compression = "zstd" if path.suffix == COMPRESSED else None
    try:
        with pa.input_stream(str(path), compression=compression) as stream:
            lines: list[bytes] = stream.read().splitlines()
    except OSError as error:
        raise RecordingMalformed(f"{path.name} cannot be read: {error}") from error
    return lines


def decode_line(line: bytes) -> Recorded:
    """Decode one line.

    Raises:
        ValueError, IndexError: the JSON, or a cell in it, is malformed.
        BocError, DecodeError: a cell is invalid.
    """
    trace = msgspec.json.decode(line, type=RecordedTrace)
    transactions = trace.transactions
    if not transactions:
        raise DecodeError("the trace has no transaction")
    if len({transaction.hash for transaction in transactions}) < len(transactions):
        raise DecodeError("a transaction is in the trace twice")
    rows = RowSet()
    for transaction in transactions:
        rows.table(TRANSACTIONS.name).append(_make_transaction(transaction))
        rows.table(MESSAGES.name).extend(_list_messages(transaction))
    seqnos = [transaction.mc_block_seqno for transaction in transactions]
    first = min(transaction.now for transaction in transactions)
    lt = min(transaction.lt for transaction in transactions)
    contracts = make_recorded(trace.interfaces, min(seqnos), lt, first)
    tables = rows.to_arrow()
    return Recorded(
        first_mc_seqno=min(seqnos),
        last_mc_seqno=max(seqnos),
        day=f"{datetime.fromtimestamp(first, UTC):%Y-%m-%d}",
        tables={
            **{name: tables[name] for name in (TRANSACTIONS.name, MESSAGES.name)},
            **contracts,
            **make_moves(tables, contracts),
        },
    )


def _make_transaction(recorded: RecordedTransaction) -> tuple[Any, ...]:
    workchain, account = parse_address(recorded.account)
    known: dict[str, Any] = {
        name: getattr(recorded, name)
        for name in TRANSACTIONS.names
        if name in RecordedTransaction.__struct_fields__
    }
    for name in (
        *("hash", "prev_trans_hash", "account_state_hash_before", "account_state_hash_after"),
    ):
        known[name] = _read_hash(known[name])
    known |= {
        "workchain": workchain,
        "account": account,
        "mc_seqno": recorded.mc_block_seqno,
        "time": recorded.now * _MICROSECONDS,
        "outmsg_cnt": len(recorded.out_msgs or ()),
        "in_msg_hash": _read_hash(recorded.in_msg.msg_hash) if recorded.in_msg else None,
        # Only a compute phase that was not skipped has an exit code.
        "compute_skipped": None if recorded.compute_exit_code is None else False,
    }
    return tuple(known.get(name) for name in TRANSACTIONS.names)


def _list_messages(recorded: RecordedTransaction) -> Iterator[tuple[Any, ...]]:
    workchain, account = parse_address(recorded.account)
    place = (workchain, account, recorded.lt, _read_hash(recorded.hash))
    context = (*place, recorded.mc_block_seqno, recorded.now)
    if recorded.in_msg is not None:
        yield (*context, "in", 0, *_make_message(recorded.in_msg))
    for index, message in enumerate(recorded.out_msgs or ()):
        yield (*context, "out", index, *_make_message(message))


def _make_message(recorded: RecordedMessage) -> tuple[Any, ...]:
    """Return the columns from msg_hash on.

    Raises:
        DecodeError: the cell is missing, or belongs to another message.
    """
    msg_hash = _read_hash(recorded.msg_hash)
    if recorded.msg_boc is None:
        return _make_lost_message(recorded, msg_hash)
    tree = parse_boc(_read_base64(recorded.msg_boc))
    columns = MessageDecoder(tree, None).decode(tree.roots[0])
    row = dict(zip(_CELL_COLUMNS, columns, strict=True))
    if row["msg_hash"] != msg_hash:
        raise DecodeError(f"message {recorded.msg_hash}: its cell belongs to another message")
    if row["ihr_fee"] != recorded.ihr_fee:
        # Depending on the global version of the block, these bits are ihr_fee or extra_flags.
        row |= {"ihr_fee": recorded.ihr_fee, "extra_flags": row["ihr_fee"]}
    return tuple(row.values())


def _make_lost_message(recorded: RecordedMessage, msg_hash: bytes) -> tuple[Any, ...]:
    """Return the known columns of an outgoing external message whose address is lost."""
    if recorded.destination is not None or recorded.source is None or recorded.body_hash is None:
        raise DecodeError(
            f"message {recorded.msg_hash}: its cell, msg_boc, is missing; {_WITHOUT_CELLS}"
        )
    workchain, account = parse_address(recorded.source)
    known = {
        "msg_hash": msg_hash,
        "kind": "ext_out",
        "source_workchain": workchain,
        "source": account,
        "source_kind": "std",
        "created_lt": recorded.created_lt,
        "created_at": recorded.created_at,
        "opcode": recorded.opcode,
        "body_hash": _read_hash(recorded.body_hash),
        "body": _read_base64(recorded.body_boc) if recorded.body_boc else None,
    }
    return tuple(known.get(name) for name in _CELL_COLUMNS)


def _read_hash(text: str) -> bytes:
    data = _read_base64(text)
    if len(data) != _HASH_BYTES:
        raise DecodeError(f"{text!r} is not a hash")
    return data


def _read_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
