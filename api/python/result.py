"""Results of statements, named queries and scans, convertible to other libraries' types.

Account ids are shown as friendly addresses.
"""

import io
import time
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyarrow.types import is_decimal

from tonlake.api.errors import AddressInvalid
from tonlake.api.explorer.frame import fill_template
from tonlake.api.python.source import Opened
from tonlake.api.scan.opening import open_scan
from tonlake.api.scan.query import Scan
from tonlake.api.text.encoding import Address, name_workchain, parse_address, render_friendly
from tonlake.lake.duck.answer import TEXT_WRITERS, plain_rows, write_table
from tonlake.lake.log.snapshot import Snapshot

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


_ACCOUNT_BYTES = 32


def write_accounts(table: pa.Table, *, test_only: bool) -> pa.Table:
    """Return a table with bounceable addresses for raw ones, and for ids with a workchain."""
    names = table.column_names
    for at, name in enumerate(names):
        partner = name_workchain(name)
        values = table.column(at).to_pylist()
        kind = table.schema.field(at).type
        is_bytes = pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind)
        if is_bytes and names.count(partner) == 1:
            workchains = table.column(names.index(partner)).to_pylist()
            pairs = zip(workchains, values, strict=True)
            written = [_write_pair(workchain, value, test_only) for workchain, value in pairs]
        elif pa.types.is_string(kind):
            written = [_write_raw(value, test_only) for value in values]
        else:
            continue
        table = table.set_column(at, name, pa.array(written, pa.string()))
    return table


def _write_pair(workchain: object, account: bytes | None, test_only: bool) -> str | None:  # noqa: FBT001
    if account is None:
        return None
    if not isinstance(workchain, int) or len(account) != _ACCOUNT_BYTES:
        return account.hex()
    return _write(Address(workchain, account), test_only)


def _write_raw(text: str | None, test_only: bool) -> str | None:  # noqa: FBT001
    if text is None or ":" not in text:
        return text
    try:
        return _write(parse_address(text), test_only)
    except AddressInvalid:
        return text


def _write(address: Address, test_only: bool) -> str:  # noqa: FBT001
    try:
        return render_friendly(address, bounceable=True, test_only=test_only)
    except AddressInvalid:  # the workchain has no friendly form
        return str(address)


_ZERO = Decimal(0)
SHOWN_ROWS = 20
"""Rows shown in notebooks and at the prompt."""


class Result:
    """Rows with named columns, held in memory as an Arrow table."""

    def __init__(
        self, table: pa.Table, *, test_only: bool = False, notes: Sequence[str] = ()
    ) -> None:
        """Take the rows; ``test_only`` sets the testnet flag of friendly addresses."""
        self._table = table
        self.test_only = test_only
        """Whether friendly addresses have the testnet flag."""
        self.notes = tuple(notes)
        """What the lake cannot know of the answer, such as accounts from before its first block."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._table.column_names)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows as tuples of Python values."""
        for batch in self._table.to_batches(max_chunksize=10_000):
            yield from zip(*map(_read_column, batch.columns), strict=True)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows as tuples of Python values, as DuckDB does."""
        return list(self)

    def arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self._table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows by the Arrow PyCapsule interface."""
        return self._table.__arrow_c_stream__(requested_schema)

    def pl(self) -> "pl.DataFrame":
        """Return the rows as a Polars frame; raise ImportError if Polars is not installed."""
        need("polars", "Result.pl()")
        import polars  # noqa: ICN001, PLC0415 - an extra

        frame = polars.from_arrow(self._table)
        return frame if isinstance(frame, polars.DataFrame) else frame.to_frame()

    def df(self) -> "pd.DataFrame":
        """Return the rows as a pandas frame; scaled amounts as doubles, which can be plotted.

        Whole decimals, such as amounts in the smallest unit, stay exact: Python's ``Decimal``.
        Raises ImportError if pandas is not installed.
        """
        need("pandas", "Result.df()")
        table = self._table
        for at, field in enumerate(table.schema):
            if is_decimal(field.type) and field.type.scale > 0:
                table = table.set_column(at, field.name, table.column(at).cast(pa.float64()))
        frame: pd.DataFrame = table.to_pandas()
        return frame

    def show(self, rows: int = SHOWN_ROWS) -> None:
        """Print the first rows: accounts as friendly addresses, other bytes as hex."""
        print(self._render(rows))  # noqa: T201 - its purpose

    def csv(self) -> str:
        """Return the rows as CSV with a header; bytes are hex."""
        stream = io.StringIO()
        TEXT_WRITERS["csv"](self._table.to_reader(), stream)
        return stream.getvalue()

    def __repr__(self) -> str:
        return self._render(SHOWN_ROWS)

    def _render(self, rows: int) -> str:
        stream = io.StringIO()
        write_table(self._shorten(rows).to_reader(), stream, rows)
        lines = [line.rstrip() for line in stream.getvalue().splitlines()]
        return "\n".join([*lines, self._count(rows), *self.notes])

    def _repr_html_(self) -> str:
        """Return the first rows as an HTML table for notebooks."""
        shown = self._shorten(SHOWN_ROWS)
        values = {
            "columns": self.columns,
            "rows": list(plain_rows(shown.to_reader())),
            "count": self._count(SHOWN_ROWS),
            "notes": self.notes,
        }
        return fill_template("result.html", values)

    def _shorten(self, rows: int) -> pa.Table:
        return write_accounts(self._table.slice(0, rows), test_only=self.test_only)

    def _count(self, rows: int) -> str:
        count = f"{len(self):,} {'row' if len(self) == 1 else 'rows'}"
        return count if len(self) <= rows else f"{count}, the first {rows} shown"


def _read_column(column: pa.Array) -> list[Any]:
    """Return the values of a column; a decimal zero as 0, which Python would show as 0E-9."""
    values: list[Any] = column.to_pylist()
    if not is_decimal(column.type):
        return values
    return [_ZERO if value == 0 else value for value in values]


def need(library: str, what: str) -> None:
    """Raise ImportError with advice if an optional library is not installed."""
    try:
        import_module(library)
    except ImportError as error:
        raise ImportError(f"{what} needs {library}: pip install 'tonlake[frames]'") from error


POLL_S = 0.1
"""Interval at which a following scan looks for a new commit."""


class ScanBatch(NamedTuple):
    """All rows of the masterchain blocks after the previous batch, up to block ``height``.

    With ``undone`` (first and last block no longer in the chain) there are no rows: delete the
    rows of these blocks; the blocks that replace them follow. A scan with ``cursor`` resumes after
    the batch. ``misfits`` counts, by table, the bodies read that do not match their signature; the
    table with the suffix ``_misfits`` contains them.
    """

    rows: Result
    cursor: str
    height: int
    undone: tuple[int, int] | None = None
    misfits: Mapping[str, int] = {}

    def table(self, name: str) -> Result:
        """Return the rows of one of several tables. Raises KeyError without such a table."""
        structs = self.rows.arrow()[name].combine_chunks().drop_null()
        return Result(pa.Table.from_struct_array(structs), test_only=self.rows.test_only)


def scan_batches(opened: Opened, scan: Scan) -> Iterator[ScanBatch]:
    """Yield the batches of a scan, endlessly with ``follow``; raises as ``Lake.scan``."""
    newest, test_only = opened, opened.test_only

    def open_newest() -> Snapshot:
        nonlocal newest
        log = opened.source.log
        if log is not None and log.read().number > newest.snapshot.number:
            newest = opened.source.open()
        return newest.snapshot

    with opened.source.naming_faults():
        settings = opened.source.settings.lake
        scanner = open_scan(
            scan, opened.call().reader, settings, open_newest, opened.source.storage
        )
        # A finished scan may still have undone blocks to report.
        while (batch := scanner.advance()) is not None or not scanner.is_over:
            if batch is None:
                time.sleep(POLL_S)
                continue
            rows = Result(batch.rows, test_only=test_only)
            cursor, height = str(batch.cursor), batch.cursor.height
            yield ScanBatch(rows, cursor, height, batch.undone, batch.misfits)
