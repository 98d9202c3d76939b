"""The commands ``tonlake classify`` and ``tonlake explain``, and recorded traces as their input.

A recording has a JSON object per line; its ``interfaces`` map account to interface to its fields;
hashes and bags are base64.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.command.node import choose_folder
from tonlake.ingest.derive.action.body import read_body
from tonlake.ingest.derive.action.classifier import classify, find_blocks
from tonlake.ingest.derive.action.derivation import classify_traces, read_known
from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.model import Message, Node, Trace, Transaction, build_nodes
from tonlake.ingest.derive.action.protocol.telegram import is_gasless, read_opcode
from tonlake.ingest.derive.action.row import show_actions
from tonlake.ingest.derive.action.rule import MARKERS, Block
from tonlake.ingest.derive.action.stored import KnownContracts, gather_sources
from tonlake.ingest.derive.body.body import decode_message_body, name_opcode, name_request
from tonlake.ingest.derive.body.scheme import MIN_HASHED
from tonlake.ingest.errors import IngestError
from tonlake.lake.account import read_hash
from tonlake.lake.command.argument import Folder, make_lake_option
from tonlake.lake.command.cli import failing_cleanly
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import Place, list_files
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import TRACES
from tonlake.lake.settings import LakeSettings

File = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("classify")
@click.argument("recording", type=File)
def classify_command(*, recording: Path) -> None:
    """Print the actions of recorded traces: a JSON object per line of a .jsonl or .jsonl.zst file.

    Each line of the file has transactions, messages and interface records of one trace; each line
    of the output has its trace_key, the state of the classification and the actions.
    """
    with failing_cleanly(IngestError):
        for line in classify_recording(recording):
            click.echo(line)


def classify_recording(recording: Path) -> Iterator[bytes]:
    """Yield a JSON object for each trace of a recording."""
    for key, trace, interfaces in read_traces(recording):
        state, actions = classify(trace, interfaces)
        yield msgspec.json.encode(
            {"trace_key": key, "state": state, "actions": show_actions(trace, actions)}
        )


@click.command("explain")
@click.argument("trace")
@make_lake_option("lake_dir", Folder(), "Folder of the lake with the trace.", required=False)
@click.option("--traces", "recording", type=File, help="File of recorded traces with the trace.")
def explain_command(*, trace: str, lake_dir: Path | None, recording: Path | None) -> None:
    """Print the messages of a trace as a tree, each with the rules that matched it.

    TRACE is the hash of its root transaction, in hex or base64.
    """
    lake_dir = choose_folder(lake_dir, elsewhere=recording is not None, option="lake_dir")
    if (lake_dir is None) == (recording is None):
        raise click.UsageError("name one source of the trace: --lake DIR or --traces FILE")
    trace_id = _read_hash(trace)
    with failing_cleanly(IngestError):
        recorded = read_traces(recording) if recording else ()
        found = next(((one, facts) for _, one, facts in recorded if one.trace_id == trace_id), None)
        if lake_dir is not None:
            found = find_stored(lake_dir, trace_id)
        if found is None:
            raise IngestError(f"trace {trace} was not found, or is not complete")
        for line in explain(*found):
            click.echo(line)


def _read_hash(text: str) -> bytes:
    try:
        return read_hash(text)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def find_stored(lake_dir: Path, trace_id: bytes) -> tuple[Trace, Interfaces] | None:
    """Return a trace of a lake with its accounts' interfaces; None if it is not in the lake."""
    state = read_state(lake_dir)
    for file in list_files(state, TRACES.name):
        rows = read_rows(lake_dir, file)
        row = rows.filter(pc.equal(rows["trace_id"], pa.scalar(trace_id, rows["trace_id"].type)))
        if row.num_rows:
            sources = gather_sources(lake_dir, state, row, {}, Place(0, 0, ""))
            known = KnownContracts(lake_dir, LakeSettings(), state)
            facts = classify_traces(row, sources, known.find).facts
            return next(read_known(row, sources, facts), None)
    return None


commands: list[click.Command] = [classify_command, explain_command]


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
    """Return the lines of a ``.jsonl`` or ``.jsonl.zst`` file, else raise IngestError."""
    compression = "zstd" if path.suffix == ".zst" else None
    try:
        with pa.input_stream(str(path), compression=compression) as stream:
            lines: list[bytes] = stream.read().splitlines()
    except OSError as error:
        raise IngestError(f"{path.name} cannot be read: {error}") from error
    return lines


def read_traces(path: Path) -> Iterator[tuple[str, Trace, Interfaces]]:
    """Yield key, trace and interfaces of each line; IngestError names file and line."""
    decoder = msgspec.json.Decoder(Line)
    for number, text in enumerate(read_lines(path), 1):
        try:
            line = decoder.decode(text)
            yield line.trace_key, _make_trace(line), Interfaces(line.interfaces)
        except ValueError as error:
            # Errors of msgspec and of base64 are ValueErrors.
            raise IngestError(f"{path.name}, line {number}: {error}") from error


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


Key = tuple[bytes, int, bool]
Claims = dict[Key, list[Block]]
"""Blocks around each node, innermost first."""

_ACCOUNT_LETTERS = 10


def explain(trace: Trace, interfaces: Interfaces) -> Iterator[str]:
    """Yield the lines of a tree: each message with the actions it is part of, innermost first."""
    roots = build_nodes(trace)
    claims: Claims = {}
    blocks: list[tuple[Block, tuple[Block, ...]]] = [
        (top, ()) for top in find_blocks(trace, interfaces)
    ]
    while blocks:
        block, around = blocks.pop()
        if block.type in MARKERS:
            continue
        inside = (block, *around)
        for node in block.nodes:
            claims.setdefault(_key(node), []).extend(inside)
        blocks += [(child, inside) for child in block.children]
    todo = [(root, 0) for root in reversed(roots)]
    while todo:
        node, depth = todo.pop()
        yield "  " * depth + _describe(node, claims.get(_key(node), ()))
        todo += [(child, depth + 1) for child in reversed(node.children)]


def _key(node: Node) -> Key:
    return node.key, node.start_lt, node.is_log


def _describe(node: Node, claims: Sequence[Block]) -> str:
    message, transaction = node.message, node.transaction
    parts = [_name(message)]
    if message is not None:
        parts.append(f"{_short(message.source)} -> {_short(message.destination)}")
        if message.value:
            parts.append(f"{message.value / 1e9:g} TON")
        if is_gasless(node, read_opcode(message)):
            parts.append("gasless")
    if node.is_log:
        parts.append("log")
    elif transaction.aborted:
        code = transaction.skip_reason or transaction.exit_code
        parts.append(f"aborted ({code})")
    if transaction.deploys and not node.is_log:
        parts.append("deploys")
    shown = [
        f"{block.served}{' failed' * block.failed}{' broken' * block.is_broken}"
        + (f" [{block.rule}]" if block.rule else "")
        for block in claims
    ]
    return "  ".join(parts) + (f"  => {' < '.join(shown)}" if shown else "")


def _name(message: Message | None) -> str:
    if message is None:
        return "tick_tock"
    opcode = read_opcode(message)
    if opcode is None:
        return "(no opcode)"
    name = name_opcode(opcode) if opcode == message.opcode else name_request(opcode)
    if opcode < MIN_HASHED and message.boc is not None:
        name = decode_message_body(message.boc, external_in=message.source is None).own_name
    return f"{opcode:08x}" + (f" {name}" if name else "")


def _short(account: str | None) -> str:
    return "outside" if account is None else account[:_ACCOUNT_LETTERS]
