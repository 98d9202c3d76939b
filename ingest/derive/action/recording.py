"""Reads recorded traces, a JSON object per line, for the classifier.

``interfaces`` of a line maps account to interface to its fields; hashes and bags are base64.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from tonlake.ingest.derive.action.body import read_body
from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.model import Message, Trace, Transaction
from tonlake.ingest.errors import IngestError, RecordingMalformed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_OPCODE_MASK = 0xFFFFFFFF


class LineMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One end of a message."""

    msg_hash: str
    source: str | None = None
    destination: str | None = None
    value: int | None = None
    value_extra_currencies: dict[str, str | int] | None = None
    opcode: int | msgspec.UnsetType | None = msgspec.UNSET
    created_lt: int | None = None
    created_at: int | None = None
    bounce: bool | None = None
    body_boc: str | None = None
    init_state_boc: str | None = None


class LineTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction, with the fields that classification needs."""

    hash: str
    account: str
    lt: int
    now: int
    mc_block_seqno: int
    orig_status: str
    end_status: str
    descr: str
    aborted: bool | None = None
    compute_exit_code: int | None = None
    skipped_reason: str | None = None
    in_msg: LineMessage | None = None
    out_msgs: list[LineMessage] | None = None


class LineTrace(msgspec.Struct, frozen=True, kw_only=True):
    """The row of a trace; missing fields are derived from the transactions."""

    trace_id: str | None = None
    external_hash: str | None = None
    external_hash_norm: str | None = None
    end_lt: int | None = None
    end_utime: int | None = None
    mc_seqno_end: int | None = None
    state: str = "complete"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the file."""

    transactions: list[LineTransaction]
    trace_key: str = ""
    trace: LineTrace = LineTrace()
    interfaces: dict[str, dict[str, Any]] = {}


def read_lines(path: Path) -> list[bytes]:
    """Return the lines of a ``.jsonl`` or ``.jsonl.zst`` file.

    Raises:
        RecordingMalformed: the file cannot be read.
    """
    compression = "zstd" if path.suffix == ".zst" else None
    try:
        with pa.input_stream(str(path), compression=compression) as stream:
            lines: list[bytes] = stream.read().splitlines()
    except OSError as error:
        raise RecordingMalformed(f"{path.name} cannot be read: {error}") from error
    return lines


def read_traces(path: Path) -> Iterator[tuple[str, Trace, Interfaces]]:
    """Yield key, trace and interfaces of each line of a ``.jsonl`` or ``.jsonl.zst`` file.

    Raises:
        RecordingMalformed: a line is malformed; the message names file and line.
    """
    decoder = msgspec.json.Decoder(Line)
    for number, text in enumerate(read_lines(path), 1):
        try:
            line = decoder.decode(text)
            yield line.trace_key, _make_trace(line), Interfaces(line.interfaces)
        except ValueError as error:
            # Errors of msgspec and of base64 are ValueErrors.
            raise RecordingMalformed(f"{path.name}, line {number}: {error}") from error


def _make_trace(line: Line) -> Trace:
    transactions = [_make_transaction(each) for each in line.transactions]
    if not transactions:
        raise ValueError("the trace has no transaction")
    row, root = line.trace, transactions[0]
    external = row.external_hash and base64.b64decode(row.external_hash)
    if external is None and root.in_msg is not None:
        external = root.in_msg.msg_hash
    norm = row.external_hash_norm
    return Trace(
        trace_id=root.tx_hash if row.trace_id is None else base64.b64decode(row.trace_id),
        external_hash=external or None,
        external_hash_norm=base64.b64decode(norm) if norm else None,
        end_lt=row.end_lt or max(each.lt for each in transactions),
        end_utime=row.end_utime or max(each.now for each in transactions),
        mc_seqno_end=row.mc_seqno_end or max(each.mc_seqno for each in transactions),
        state=row.state,
        transactions=transactions,
    )


def _make_transaction(line: LineTransaction) -> Transaction:
    return Transaction(
        tx_hash=base64.b64decode(line.hash),
        account=line.account,
        lt=line.lt,
        now=line.now,
        mc_seqno=line.mc_block_seqno,
        orig_status=line.orig_status,
        end_status=line.end_status,
        aborted=bool(line.aborted),
        is_tick_tock=line.descr == "tick_tock",
        exit_code=line.compute_exit_code,
        skip_reason=line.skipped_reason,
        in_msg=None if line.in_msg is None else _make_message(line.in_msg),
        out_msgs=[_make_message(each) for each in line.out_msgs or ()],
    )


def _make_message(line: LineMessage) -> Message:
    boc = None if line.body_boc is None else base64.b64decode(line.body_boc)
    return Message(
        msg_hash=base64.b64decode(line.msg_hash),
        source=line.source,
        destination=line.destination,
        value=line.value,
        extra_currencies={
            name: str(amount) for name, amount in (line.value_extra_currencies or {}).items()
        },
        opcode=_read_opcode(line.opcode, boc),
        created_lt=line.created_lt,
        created_at=line.created_at,
        bounce=bool(line.bounce),
        boc=boc,
        init_state=None if line.init_state_boc is None else base64.b64decode(line.init_state_boc),
    )


def _read_opcode(recorded: int | msgspec.UnsetType | None, boc: bytes | None) -> int | None:
    """Return the opcode as an unsigned number, read from the body if it was not recorded."""
    if recorded is not msgspec.UNSET:
        return None if recorded is None else recorded & _OPCODE_MASK
    try:
        return read_body(boc).peek_opcode()
    except IngestError:
        return None
