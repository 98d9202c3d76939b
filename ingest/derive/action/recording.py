"""Reads recorded traces, a JSON object per line, for the classifier.

``interfaces`` of a line maps account to interface to its fields; hashes and bags are base64.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from tonlake.ingest.derive.action.body import read_body
from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.model import Message, Trace, Transaction
from tonlake.ingest.errors import IngestError, RecordingMalformed

_UNRECORDED = 1 << 32
"""In place of an opcode: it is that of the body."""


class RecordedMessage(Message, kw_only=True):
    """One end of a message."""

    source: str | None = None
    destination: str | None = None
    extra_currencies: dict[str, Any] | None = None  # type: ignore[assignment] # see __post_init__
    opcode: int | None = _UNRECORDED

    def __post_init__(self) -> None:
        """Bring the fields to the form that the lake has."""
        currencies = self.extra_currencies or {}
        self.extra_currencies = {name: str(amount) for name, amount in currencies.items()}
        try:
            if self.opcode == _UNRECORDED:
                self.opcode = read_body(self.boc).peek_opcode()
        except IngestError:
            self.opcode = None
        if self.opcode is not None:
            self.opcode &= _UNRECORDED - 1


class RecordedTransaction(Transaction, kw_only=True):
    """A transaction, with the fields that classification needs."""

    descr: str
    is_tick_tock: bool = False
    aborted: bool | None = None  # type: ignore[assignment] # see __post_init__
    exit_code: int | None = None
    skip_reason: str | None = None
    in_msg: RecordedMessage | None = None
    out_msgs: list[RecordedMessage] | None = None  # type: ignore[assignment] # see __post_init__

    def __post_init__(self) -> None:
        """Bring the fields to the form that the lake has."""
        self.is_tick_tock = self.descr == "tick_tock"
        self.aborted = bool(self.aborted)
        self.out_msgs = self.out_msgs or []


class RecordedTrace(msgspec.Struct, frozen=True, kw_only=True):
    """The row of a trace; missing fields are derived from the transactions."""

    trace_id: bytes | None = None
    external_hash: bytes | None = None
    external_hash_norm: bytes | None = None
    end_lt: int | None = None
    end_utime: int | None = None
    mc_seqno_end: int | None = None
    state: str = "complete"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the file."""

    transactions: list[RecordedTransaction]
    trace_key: str = ""
    trace: RecordedTrace = RecordedTrace()
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
    transactions, row = line.transactions, line.trace
    if not transactions:
        raise ValueError("the trace has no transaction")
    root = transactions[0]
    incoming = None if root.in_msg is None else root.in_msg.msg_hash
    return Trace(
        trace_id=root.tx_hash if row.trace_id is None else row.trace_id,
        external_hash=(incoming if row.external_hash is None else row.external_hash) or None,
        external_hash_norm=row.external_hash_norm or None,
        end_lt=row.end_lt or max(each.lt for each in transactions),
        end_utime=row.end_utime or max(each.now for each in transactions),
        mc_seqno_end=row.mc_seqno_end or max(each.mc_seqno for each in transactions),
        state=row.state,
        transactions=list(transactions),
    )
