"""Opens a scan: resolves its tables, filters and the masterchain blocks it begins and ends at."""

import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path

import pyarrow as pa

from tonlake.api.chain.block import find_master_at
from tonlake.api.errors import AddressInvalid, RequestInvalid
from tonlake.api.request.call import ConversionError, parse_hash
from tonlake.api.scan.query import Position, Scan, TableScan, Value
from tonlake.api.text.encoding import name_workchain, parse_address
from tonlake.ingest.derive.body.fields import read_tables
from tonlake.ingest.errors import SignatureInvalid
from tonlake.lake.duck.body_table import MISFITS, BodyTable, check_names
from tonlake.lake.errors import QueryError
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import read_state
from tonlake.lake.scan.plan import HEIGHT, SCANNED, ScanFilter, ScannedTable, match_values
from tonlake.lake.scan.scanner import (
    ScanCursor,
    ScanDatabase,
    Scanner,
    ScanRows,
    find_undone,
    parse_cursor,
)
from tonlake.lake.schema import TABLES
from tonlake.lake.settings import LakeSettings
from tonlake.lake.storage.storage import Storage
from tonlake.queries.reader import Reader

_SNAPSHOT = "snapshot:"

MAX_DIGITS = 300
"""Maximum length of a number: 256 bits need less, and parsing longer ones would take seconds."""

MAX_NAMES = 40
"""Maximum names in an error if none is similar to the requested one."""

_HASH = pa.binary(32)
_ALIASES = {
    "exit_code": ("compute_exit_code", "transaction.compute_exit_code"),
    "code_hash": ("state.code_hash",),
    "interface": ("interface.names",),
    "action_type": ("type",),
    "account": ("tx_account",),
}
"""Alternative filter names; each means the first of these columns that the table has."""

MAX_VALUES = 10_000
"""Maximum values in all filters of a scan."""

MAX_TABLES = 20


def make_source(
    scan: Scan, settings: LakeSettings, place: Path | Storage | None = None
) -> ScanRows:
    """Return the source of the rows of a scan, without a lake only its schema."""
    if bool(scan.tables) == (scan.table is not None):
        raise RequestInvalid("a scan takes either table or tables")
    if scan.table is not None:
        tables = {scan.table: TableScan(scan.where, scan.columns)}
    elif scan.where or scan.columns:
        raise RequestInvalid("with tables, set where and columns inside each of them")
    else:
        tables = scan.tables
    values = [listed for each in tables.values() for one in each.where for listed in one.values()]
    if sum(map(len, values)) > MAX_VALUES:
        raise RequestInvalid(f"more than {MAX_VALUES:,} values in all filters: use several scans")
    if len(tables) > MAX_TABLES:
        raise RequestInvalid(f"more than {MAX_TABLES} tables: use several scans")
    if any(len(set(each.columns)) < len(each.columns) for each in tables.values()):
        raise RequestInvalid("columns names a column twice")
    if HEIGHT in scan.tables:
        raise RequestInvalid(f"no table may be called {HEIGHT}, which is a column of the scan")
    try:
        layouts = read_tables([scan.signature] if scan.signature is not None else [])
        check_names(layouts)
    except (SignatureInvalid, QueryError) as error:
        raise RequestInvalid(f"signature: {error}") from error
    known = {layout.name: layout for layout in layouts}
    database = ScanDatabase(settings, place, has_bodies=bool(known))
    chosen = [
        choose_rows(_find_table(name, known, database), each) for name, each in tables.items()
    ]
    return ScanRows(database, chosen, is_joint=bool(scan.tables))


def _find_table(name: str, known: dict[str, BodyTable], database: ScanDatabase) -> ScannedTable:
    own = name if name in known else name.removesuffix(MISFITS)
    if own in known:
        return database.add_body_table(name, known[own])
    if name in TABLES and name not in SCANNED:
        raise RequestInvalid(f"table {name} cannot be scanned; read it with SQL")
    if name not in SCANNED:
        raise RequestInvalid(f"table {suggest(name, SCANNED)}")
    return SCANNED[name]


def open_scan(
    scan: Scan,
    reader: Reader,
    settings: LakeSettings,
    open_newest: Callable[[], Snapshot],
    storage: Storage | None = None,
) -> Scanner:
    """Open a scan of a local lake, or of one in ``storage``; ``reader`` finds blocks of times.

    Raises RequestInvalid if a table, column, value or position is invalid; CursorRefused if the
    cursor is not of this lake; BlocksLacking if the lake does not have the blocks.
    """
    source = make_source(scan, settings, storage or reader.snapshot.lake_dir)
    if scan.cursor is not None and scan.start is not None:
        raise RequestInvalid("a scan begins at from or after cursor, not both")
    snapshot = reader.snapshot
    start: ScanCursor | int
    if scan.cursor is not None:
        start = parse_cursor(scan.cursor)
    elif scan.start is None:
        first = snapshot.ranges[-1][0]
        start = 0 if first == 1 else first  # the zero state comes with block 1
    else:
        start = _find_block(scan.start, reader, is_first=True)
    last = None if scan.stop is None else _find_block(scan.stop, reader, is_first=False)
    if last is None and not scan.follow:
        last = snapshot.last_mc_seqno
    if last is not None and not scan.follow and last > snapshot.last_mc_seqno:
        raise RequestInvalid(
            f"to is masterchain block {last}, but the newest in the lake is"
            f" {snapshot.last_mc_seqno}: leave it out, or wait for it with follow"
        )
    scanner = Scanner(source, start, last, open_newest, limit=scan.limit)
    height = scanner.cursor.height
    # A cursor may be past the last block because blocks were undone: the first batch reports it.
    if last is not None and height > last and find_undone(scanner.cursor, snapshot) is None:
        raise RequestInvalid(f"the scan begins at block {height + 1}, after its last one, {last}")
    return scanner


def _find_block(position: Position, reader: Reader, *, is_first: bool) -> int:
    """Return the masterchain block of a position."""
    if isinstance(position, int):
        if position < 0:
            raise RequestInvalid(f"there is no masterchain block {position}")
        return position
    if len(position) > MAX_DIGITS:
        raise RequestInvalid(f"the position has {len(position):,} characters")
    if position.startswith(_SNAPSHOT):
        number = position.removeprefix(_SNAPSHOT)
        if not number.isdecimal():
            raise RequestInvalid(f"{position[:80]!r}: in {_SNAPSHOT}N, N is a commit number")
        last = read_state(reader.snapshot.lake_dir, int(number)).ranges[-1][1]
        return last + is_first
    if position.isdecimal():
        return int(position)
    time = _read_time(position)
    block = find_master_at(reader, math.ceil(time) - 1 if is_first else int(time))
    if block is None and is_first:
        return reader.snapshot.ranges[0][0]
    if block is None:
        raise RequestInvalid(f"the lake has no block up to {position}")
    return int(block["seqno"]) + is_first


def _read_time(text: str) -> float:
    """Return Unix seconds."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise RequestInvalid(
            f"{text[:80]!r} is not a masterchain seqno, an ISO 8601 time or {_SNAPSHOT}N"
        ) from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def choose_rows(table: ScannedTable, chosen: TableScan) -> ScannedTable:
    """Return the columns and rows that a scan asks for, or raise RequestInvalid."""
    selections = tuple(
        tuple(_read_filter(table, column, values) for column, values in each.items())
        for each in chosen.where
    )
    columns = [_find_column(table.known, name) for name in chosen.columns]
    return table._replace(
        schema=pa.schema(columns) if columns else table.schema,
        # A selection without filters matches every row.
        selections=selections if all(selections) else (),
    )


def suggest(name: str, known: Iterable[str]) -> str:
    """Return the text that ``name`` does not exist, with the most similar known names."""
    listed = sorted(known)
    near = get_close_matches(name[:80], listed, 3) or [
        *listed[:MAX_NAMES],
        *(["and others"] if len(listed) > MAX_NAMES else []),
    ]
    return f"{name[:80]!r} does not exist here; there are: {', '.join(near)}"


def _find_column(known: pa.Schema, name: str) -> pa.Field:
    if name not in known.names:
        raise RequestInvalid(f"column {suggest(name, known.names)}")
    return known.field(name)


def _read_filter(table: ScannedTable, name: str, values: list[Value]) -> ScanFilter:
    """Return the filter on column ``name`` for ``values``; raises as above."""
    known = table.known
    if name not in known.names:
        name = next((alias for alias in _ALIASES.get(name, ()) if alias in known.names), name)
    kind = _find_column(known, name).type
    workchain, is_list = name_workchain(name), pa.types.is_list(kind)
    if kind == _HASH and workchain in known.names and None not in values:
        return ScanFilter(name, _match_accounts(name, workchain, values), workchain)
    if name in table.addresses:
        values = [None if value is None else str(parse_address(str(value))) for value in values]
    kind = kind.value_type if is_list else kind
    try:
        items = [None if value is None else _read_value(kind, value) for value in values]
        listed = pa.array(items, kind)
    except (ValueError, TypeError, OverflowError, ArithmeticError, pa.ArrowException) as error:
        raise RequestInvalid(f"{name} is of type {kind}: {error}") from error
    return ScanFilter(name, match_values(name, listed, is_list=is_list))


def _match_accounts(name: str, workchain: str, values: list[Value]) -> str:
    """Return the condition that two columns name one of some accounts."""
    accounts: dict[int, list[bytes]] = {}
    for value in values:
        if not isinstance(value, str):
            raise RequestInvalid(f"{name} takes a list of addresses, not {value!r}")
        address = parse_address(value)
        accounts.setdefault(address.workchain, []).append(address.account)
    pairs = [
        f"{match_values(workchain, pa.array([each], pa.int32()))}"
        f" and {match_values(name, pa.array(ids, pa.binary()))}"
        for each, ids in accounts.items()
    ]
    return f"({' or '.join(pairs)})" if pairs else "false"


def _read_value(kind: pa.DataType, value: str | int) -> object:
    """Convert a value to its column's type: addresses to raw, hashes to bytes, opcodes signed."""
    if pa.types.is_boolean(kind) or isinstance(value, bool):
        if not (pa.types.is_boolean(kind) and isinstance(value, bool)):
            raise ConversionError(f"{value!r} does not fit")
        return value
    if pa.types.is_string(kind):
        return _read_text(str(value))
    if kind == _HASH or pa.types.is_binary(kind):
        return _read_bytes(str(value), is_hash=kind == _HASH)
    if pa.types.is_decimal(kind) and not kind.scale:
        return Decimal(_read_number(value))
    if not pa.types.is_integer(kind):
        raise ConversionError("scans cannot filter by it")
    number, bits = _read_number(value), kind.bit_width
    if not -1 << (bits - 1) <= number < 1 << bits:
        raise ConversionError(f"{value!r} does not fit in {bits} bits")
    # Opcodes and shards may be written as unsigned numbers.
    return number - (1 << bits) if 1 << (bits - 1) <= number < 1 << bits else number


def _read_number(value: str | int) -> int:
    """Return a number, parsing text as decimal or with the prefix 0x, 0o or 0b."""
    if isinstance(value, int):
        return value
    if len(value) > MAX_DIGITS:
        raise ConversionError(f"the number has {len(value):,} characters")
    try:
        return int(value, 0)
    except ValueError as error:
        raise ConversionError(f"{value!r} is not a number") from error


def _read_text(text: str) -> str:
    """Return an address in raw form, other text unchanged."""
    try:
        return str(parse_address(text))
    except AddressInvalid:
        return text


def _read_bytes(text: str, *, is_hash: bool) -> bytes:
    """Return a hash from any notation, other bytes from hex."""
    try:
        return parse_hash(text)
    except ConversionError as error:
        if not is_hash:
            return bytes.fromhex(text)
        raise ConversionError(
            f"{text[:80]!r} is not a hash: 64 hex digits or 43 base64 characters"
        ) from error
