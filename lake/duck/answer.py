"""Runs a user's SQL over a snapshot, and writes the result as text or Parquet.

The connection can read only the snapshot's files. DuckDB could also write to a file that it may
read, so statements that can write files are rejected before they run.
"""

from __future__ import annotations

import csv
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tonlake.lake.duck.connection import find_damage_behind, list_tables, list_views
from tonlake.lake.duck.limit import ended_by_interrupt
from tonlake.lake.duck.part import ASKED, FEW
from tonlake.lake.duck.silence import check_literals
from tonlake.lake.duck.statement import quote_name
from tonlake.lake.duck.tree import filter_accounts
from tonlake.lake.errors import QueryError
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.schema.dictionary import VIEWS

if TYPE_CHECKING:
    import duckdb

TABLE_ROWS = 1000
"""Most rows printed as a table."""

_BATCH_ROWS = 10_000
_SMALL_ROWS = 100_000
_WRITING = re.compile(r"\b(copy|export|attach|install|load)\b", re.IGNORECASE)
_LIMIT = r"\blimit\s+(\d{1,3}|1000)(\s+offset\s+\d+)?[\s;]*\Z"
_SHORT = re.compile(rf"\A(?!.*(--|/\*)).*{_LIMIT}", re.IGNORECASE | re.DOTALL)
_GATHERED = r"\bgroup\s+by\b|\A\s*select\s+(count|sum|avg|min|max)\b|"
_KEYED = r"_(id|seqno)\s*=\s*(ton_|unhex|[0-9'$?(])|"
_FEW = re.compile(_GATHERED + _KEYED + ASKED[FEW], re.IGNORECASE)
_UNLIMITED_WIDTH = 1 << 16
_ADVICE = (
    "the statement needs more memory than it may use: name only the columns that you need,"
    " filter on day, mc_seqno or an account, or raise [lake] duckdb_memory_mib (over HTTP,"
    " [sql] memory_mib)"
)
_ODD_TYPES = {"interval", "bit"}
_COPIES = re.compile("Arrow output on a DB-API result", re.IGNORECASE)
_FILTERING = threading.Lock()
_CONTROLS = {
    code: f"[U+{code:04X}]"
    for code in (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F))
}
"""Characters that a terminal obeys: texts come from strangers, such as names of tokens."""


def ask(
    connection: duckdb.DuckDBPyConnection,
    snapshot: Snapshot,
    query: str,
    parameters: Mapping[str, object] | None = None,
    *,
    whole: bool = False,
) -> pa.RecordBatchReader:
    """Run a statement with values for its ``$name`` placeholders, and return the rows in batches.

    ``whole`` says that the caller holds all rows in memory.

    Raises:
        QueryError: it is not one statement that reads, DuckDB rejects it, or it compares a column
            with what it never holds; LakeCorrupt: it reads a damaged table.
    """
    with naming_the_fault(snapshot), ended_by_interrupt(connection):
        _check_statement(connection, query)
        check_literals(connection, query, parameters or {})
        query = filter_accounts(connection, query)
        if _SHORT.search(query) or (whole and _FEW.search(query) and _is_small(snapshot, query)):
            bind_once(connection, query, parameters)
            described = connection.description or ()
            odd = _ODD_TYPES.intersection(kind.id for _name, kind, *_ in described)
            if not odd:
                return connection.to_arrow_reader(_BATCH_ROWS)
            if odd == {"interval"}:
                rows = connection.from_arrow(connection.to_arrow_table())
                names = [name for name, *_ in described]
                return _cast_odd(rows, names).to_arrow_reader(_BATCH_ROWS)
            connection.abort()
        relation = connection.sql(query, params=parameters or None)
        return _cast_odd(relation, relation.columns).to_arrow_reader(_BATCH_ROWS)


def _is_small(snapshot: Snapshot, query: str) -> bool:
    """Whether to bind takes longer than to copy what a statement returns, at most every row."""
    if VIEWS.keys() & list_views(query):
        return True
    files = [file for name in list_tables(query) for file in snapshot.files[name]]
    return sum(file.rows for file in files) <= _SMALL_ROWS


def bind_once(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Mapping[str, object] | None
) -> duckdb.DuckDBPyConnection:
    """Run a statement, which binds its views once; fetching Arrow copies the rows once more."""
    with _FILTERING:  # filterwarnings() removes its filter for a moment, which other threads see
        if ("ignore", _COPIES, UserWarning, None, 0) not in warnings.filters:
            warnings.filterwarnings("ignore", _COPIES.pattern, UserWarning)
    return connection.execute(query, parameters or None)


def _cast_odd(relation: duckdb.DuckDBPyRelation, names: list[str]) -> duckdb.DuckDBPyRelation:
    """Return the same rows, with columns of types that Parquet and most readers lack as text."""
    casts = ["::varchar" * (kind.id in _ODD_TYPES) for kind in relation.types]
    columns = enumerate(zip(casts, map(quote_name, names), strict=True), 1)
    listed = ", ".join(f"#{at}{cast} as {name}" for at, (cast, name) in columns)
    return relation.project(listed) if any(casts) else relation


@contextmanager
def naming_the_fault(snapshot: Snapshot) -> Iterator[None]:
    """Turn DuckDB's errors into QueryError, or into the damage that caused them."""
    import duckdb  # noqa: PLC0415 - not for those that only write rows

    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        if str(error).startswith("Out of Memory"):  # once rows are read, an OSError
            raise QueryError(_ADVICE) from error
        if isinstance(error, OSError):
            raise
        damage = find_damage_behind(snapshot, error)
        if damage is not None:
            raise damage from error
        raise QueryError(str(error).strip()) from error


def _check_statement(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise QueryError(f"exactly one statement is allowed, but there are {len(statements)}")
    kind = statements[0].type.name
    # EXPLAIN ANALYZE runs its statement, and a COPY may contain a PIVOT.
    reading = kind == "SELECT" or (kind in {"EXPLAIN", "MULTI"} and not _WRITING.search(query))
    if not reading:
        raise QueryError(f"only statements that read the lake are allowed, but this is {kind}")


def write_table(batches: pa.RecordBatchReader, stream: IO[str], max_rows: int) -> int:
    """Print the first ``max_rows`` rows as a table, and return the number of all rows."""
    table = Table(box=None, pad_edge=False)
    for field in batches.schema:
        numeric = pa.types.is_integer(field.type) or pa.types.is_decimal(field.type)
        table.add_column(Text(field.name), justify="right" if numeric else "left", no_wrap=True)
    count = 0
    for count, row in enumerate(plain_rows(batches), 1):
        if count <= max_rows:
            texts = ("NULL" if value is None else _text(value) for value in row)
            table.add_row(*(Text(text.translate(_CONTROLS)) for text in texts))
    # In a notebook, Rich would show the table there and write nothing.
    Console(file=stream, width=_UNLIMITED_WIDTH, soft_wrap=True, force_jupyter=False).print(table)
    return count


def write_csv(batches: pa.RecordBatchReader, stream: IO[str]) -> None:
    """Write a header and the rows as CSV; NULL is an empty field, nested values are JSON."""
    writer = csv.writer(stream, lineterminator="\n")
    quoting = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(batches.schema.names)
    for row in plain_rows(batches):
        texts = ["" if value is None else _text(value) for value in row]
        # csv does not quote a bare carriage return, but readers take it for the end of a row.
        (quoting if "\r" in "".join(texts) else writer).writerow(texts)


def write_json(batches: pa.RecordBatchReader, stream: IO[str]) -> None:
    """Write a JSON array with one object per row, one per line."""
    names = batches.schema.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise QueryError(f"JSON needs distinct column names: {', '.join(twice)}")
    separator = "[\n"
    for row in plain_rows(batches):
        stream.write(separator + _json(dict(zip(names, row, strict=True))))
        separator = ",\n"
    stream.write("[]\n" if separator == "[\n" else "\n]\n")


def write_parquet(batches: pa.RecordBatchReader, stream: IO[bytes]) -> int:
    """Write the rows as a Parquet file with the types of the result; return their number."""
    count = 0
    with pq.ParquetWriter(stream, batches.schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


TEXT_WRITERS: dict[str, Callable[[pa.RecordBatchReader, IO[str]], None]] = {
    "csv": write_csv,
    "json": write_json,
}


def plain_rows(batches: pa.RecordBatchReader) -> Iterator[tuple[Any, ...]]:
    """Yield the rows as tuples, with bytes at any depth as hex text."""
    for batch in batches:
        yield from zip(*(_plain(_list_values(column)) for column in batch.columns), strict=True)


def _list_values(column: pa.Array) -> list[Any]:
    if not pa.types.is_timestamp(column.type) or column.type.tz is None:
        values: list[Any] = column.to_pylist()
        return values
    # Arrow would import pandas, where it is installed, which takes as long as a short statement.
    zone, times = ZoneInfo(column.type.tz), column.cast(pa.timestamp("us")).to_pylist()
    return [time and time.replace(tzinfo=UTC).astimezone(zone) for time in times]


def _plain(value: Any) -> Any:  # noqa: ANN401 - any SQL value, nested or not
    """Return the value with bytes at any depth as hex text, and a decimal zero as plain 0."""
    if isinstance(value, Decimal) and not value:
        return Decimal(0)  # Python formats a decimal zero as 0E-9
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"  # str() writes small values with an exponent
    return _json(value) if isinstance(value, list | dict) else str(value)


ENCODER = msgspec.json.Encoder(enc_hook=str, decimal_format="number")
"""Encodes any SQL value as JSON; types unknown to JSON become text."""


def _json(value: object) -> str:
    return ENCODER.encode(value).decode()
