"""A lake in Python: ``tonlake.open``, ``tonlake.demo`` and ``tonlake.decode``."""

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tonlake.api.command.loading import load_settings
from tonlake.api.errors import RequestInvalid
from tonlake.api.python.account import Account, find_address
from tonlake.api.python.history import NAME, ask_bodies, read_history
from tonlake.api.python.result import Result, ScanBatch, need, scan_batches
from tonlake.api.python.source import LakeSource, Opened
from tonlake.api.python.trace import Trace, open_trace
from tonlake.api.request.call import ConversionError, parse_hash
from tonlake.api.scan.query import Where, convert_scan
from tonlake.api.settings import Settings
from tonlake.api.v3.route.decode import decode_text
from tonlake.lake.duck.remote import describe_files
from tonlake.lake.duck.silence import list_notes
from tonlake.lake.errors import SnapshotNotFound
from tonlake.lake.file.rows import PARTITION, PackedRows, load_from
from tonlake.lake.log.state import LOG_FOLDER, Commit, LogReader, read_commit
from tonlake.lake.schema import SCHEMA_VERSION, TABLES, Table
from tonlake.lake.schema.dictionary import VIEWS
from tonlake.queries.loader import find_query
from tonlake.queries.parameter import read_values

if TYPE_CHECKING:
    import polars as pl


def scan_table(opened: Opened, table: Table) -> "pl.LazyFrame":
    """Return ``Lake.table``; nothing is read yet."""
    need("polars", "Lake.table()")
    import polars as pl  # noqa: PLC0415 - an extra

    snapshot, storage = opened.snapshot, opened.source.storage
    if table.name in snapshot.damaged:
        raise snapshot.damaged[table.name]
    files = snapshot.files[table.name]
    packed = [file for file in files if file.pack]
    if storage is not None:
        return pl.scan_pyarrow_dataset(describe_files(storage, table, files))
    schema = pl.DataFrame(pa.table(table.arrow.empty_table())).schema
    day = {PARTITION: pl.Date()}
    root = snapshot.lake_dir.absolute()
    frames = [pl.LazyFrame(schema={**schema, **day})]
    if len(packed) < len(files):
        parquet = pl.scan_parquet(
            [root / file.path for file in files if not file.pack],
            glob=False,
            schema=schema,
            missing_columns="insert",
            hive_partitioning=True,
            hive_schema=day,
        )
        frames = [parquet]
    if packed:
        frames.append(pl.LazyFrame(PackedRows(load_from(root)).read(table.name, packed)))
    return pl.concat(frames)


class Lake:
    """A lake as of one commit; thread-safe."""

    def __init__(self, opened: Opened) -> None:
        """Take an open snapshot; use ``tonlake.open`` instead."""
        self._opened = opened

    @property
    def snapshot(self) -> int:
        """Number of the commit."""
        return self._opened.snapshot.number

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """First and last masterchain block of each range in the lake."""
        return self._opened.snapshot.ranges

    @property
    def tables(self) -> list[str]:
        """Names of the tables; ``tonlake schema`` describes them."""
        return sorted(TABLES)

    def __repr__(self) -> str:
        blocks = ", ".join(f"{first}..{last}" for first, last in self.ranges) or "none"
        return f"<Lake {self._opened.source.place}: commit {self.snapshot}, blocks {blocks}>"

    def sql(
        self, statement: str, /, *, signature: str | Sequence[str] = (), **parameters: object
    ) -> Result:
        """Run a read-only DuckDB statement; ``parameters`` are the values of its ``$name``.

        ``signature`` is a TL-B constructor, an ABI of Tact or Tolk, the name of a built-in layout,
        or a list of these: messages that match it become a table. Bodies with its opcode that do
        not match raise a UserWarning. ``notes`` of the result say what the lake cannot know.

        Raises:
            SignatureInvalid: a signature is invalid (``tonlake.ingest.errors``).
            QueryError: DuckDB refuses the statement, or it writes (``tonlake.lake.errors``).
            LakeCorrupt, StorageError: a file is damaged, or object storage fails.
        """
        signatures = [signature] if isinstance(signature, str) else signature
        is_alone = any(word in statement.lower() for word in (NAME, "main."))  # not in shared views
        with self._opened.source.naming_faults():
            if signatures or is_alone or self._opened.has_own_table(statement):
                found = ask_bodies(self._opened, statement, parameters, signatures)
            else:
                found = self._opened.reader().ask(statement, parameters)
        return self._show(found, statement)

    def query(self, name: str, /, **parameters: object) -> Result:
        """Run a named query; ``tonlake query --list`` prints all with their parameters.

        The last part of a name such as ``v3/jetton_masters`` is enough if it is unique or that of
        an everyday query. Bytes may be given as hex text; a missing list does not filter.

        Raises:
            QueryUnknown, ParameterMismatch: there is no such query, or it takes other parameters.
            LakeCorrupt, StorageError: as ``sql``.
        """
        query = find_query(name)
        with self._opened.source.naming_faults():
            found = self._opened.reader().table(query.name, **read_values(query, parameters))
        return self._show(found, query.sql)

    def table(self, name: str) -> "pl.LazyFrame":
        """Return a table as a lazy Polars frame; a filter on ``day`` reads only those days' files.

        These are the rows of the files: a cell of ``state_cells`` may occur more than once.

        Raises:
            KeyError: there is no such table; for a view, use ``sql("from v_swaps").pl()``.
            ImportError: Polars is not installed.
            LakeCorrupt: a file of the table is damaged.
        """
        if name in VIEWS:
            raise KeyError(f"{name} is a view: use sql('from {name}').pl().lazy()")
        if name not in TABLES:
            raise KeyError(f"there is no table {name!r}; tables: {', '.join(self.tables)}")
        return scan_table(self._opened, TABLES[name])

    def scan(
        self,
        table: str | Mapping[str, Any],
        where: Where = None,
        **options: Any,  # noqa: ANN401 - see below
    ) -> Iterator[ScanBatch]:
        """Yield rows of a table in chain order, in batches; docs/indexer.md describes scans.

        ``where`` is a selection (lists of values by column), or several, of which a row must match
        one. With several tables it is in ``table``: ``{"messages": {"where": …, "columns": …}}``.
        Options are ``columns``, ``start`` and ``stop`` (masterchain seqno, time, or
        ``snapshot:N``), ``cursor`` of a batch to resume after, ``follow``, ``limit``, and
        ``signature``, a layout whose tables can be scanned as well. Without ``stop`` and
        ``follow`` the scan ends with the newest block of this snapshot.

        Raises:
            RequestInvalid, ScanError: the scan is invalid or cannot be run.
            LakeCorrupt, StorageError: as ``sql``.
        """
        return scan_batches(self._opened, convert_scan(table, {"where": where, **options}))

    def account(self, name: str) -> Account:
        """Return an account by its address, raw or friendly, or by a domain such as ``name.ton``.

        Raises AddressInvalid if ``name`` is neither, AnswerNotFound if the lake has no wallet for
        the domain.
        """
        with self._opened.source.naming_faults():
            return Account(self._opened, find_address(self._opened, name))

    def get_method_history(
        self,
        accounts: Sequence[str],
        method: str | int,
        *,
        every: timedelta | str = "1 hour",
        first: datetime | str | None = None,
        last: datetime | str | None = None,
    ) -> Result:
        """Return the results of a get-method without arguments on accounts over time.

        One row per account and time: ``account``, ``time``, ``mc_seqno``, ``exit_code``,
        ``stack`` (JSON as in API v3) and ``error``. Times are UTC, from ``first`` to ``last``, by
        default of all blocks in the lake. The method runs once per code and data of an account.

        Raises:
            AddressInvalid, AnswerNotFound: as ``account``.
            RequestInvalid: there are too many times.
            TvmMissing: the library named in the settings cannot be loaded.
        """
        with self._opened.source.naming_faults():
            addresses = [find_address(self._opened, name) for name in accounts]
            found = read_history(self._opened, addresses, method, every, first, last)
        return self._show(found)

    def trace(self, any_hash: str | bytes) -> Trace:
        """Return the trace of a transaction or message by its hash: bytes, hex or base64.

        Raises RequestInvalid if it is not a hash, AnswerNotFound if the lake has no such
        transaction or message.
        """
        if isinstance(any_hash, str):
            try:
                any_hash = parse_hash(any_hash)
            except ConversionError as error:
                raise RequestInvalid(
                    f"{any_hash[:80]!r} is not a hash: 64 hex digits or 44 base64 characters"
                ) from error
        if len(any_hash) != hashlib.sha256().digest_size:
            raise RequestInvalid(f"{any_hash[:40].hex()} is not a hash of 32 bytes")
        with self._opened.source.naming_faults():
            return open_trace(self._opened, any_hash)

    def at(self, snapshot: int | None = None) -> "Lake":
        """Return the lake as of a commit, the newest by default. Raises SnapshotNotFound."""
        return Lake(self._opened.source.open(snapshot))

    def follow(self, *, poll_s: float = 0.2, timeout_s: float | None = None) -> Iterator[Commit]:
        """Yield each commit after this snapshot as soon as it appears; ``at`` opens it.

        Stop after ``timeout_s`` without a new commit, by default never. Raises SnapshotNotFound if
        the lake is in object storage, where it does not change.
        """
        place = self._opened.source.place
        if isinstance(place, str):
            raise SnapshotNotFound(f"{place} cannot be followed: only a local lake can be")
        log, number, came_s = LogReader(place), self.snapshot, time.monotonic()
        while timeout_s is None or time.monotonic() - came_s < timeout_s:
            newest = log.read().number
            for at in range(number + 1, newest + 1):
                yield read_commit(place, at)[0]
                came_s = time.monotonic()
            number = max(number, newest)
            time.sleep(poll_s)

    def _show(self, table: Any, statement: str = "") -> Result:  # noqa: ANN401 - pyarrow has no types
        notes = list_notes(self._opened.snapshot, statement)
        return Result(table, test_only=self._opened.test_only, notes=notes)


def open(  # noqa: A001 - tonlake.open
    place: str | os.PathLike[str], snapshot: int | None = None, *, settings: Settings | None = None
) -> Lake:
    """Open a lake: its folder, or the ``s3://`` URL of a lake.

    ``snapshot`` is a commit number, by default the newest. ``settings`` default to those of the
    environment, as on the command line.

    Raises:
        LakeNotFound, SnapshotNotFound, LakeCorrupt, StorageError: it cannot be opened.
    """
    return Lake(LakeSource(place, settings or load_settings()[0]).open(snapshot))


def demo() -> Lake:
    """Open the lake of the demo node; the first call takes seconds to ingest it.

    It is cached in ``$XDG_CACHE_HOME/tonlake``, separately for each version.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "tonlake" / f"demo-{version('tonlake')}-{SCHEMA_VERSION}"
    if (folder / LOG_FOLDER).is_dir():
        return open(folder)
    from tonlake.ingest.command.ingest import show_blocks  # noqa: PLC0415 - rarely needed
    from tonlake.ingest.demo.node import ingest_archive, open_shipped  # noqa: PLC0415 - as above

    # It is made in a temporary folder and moved into place, so that it appears atomically.
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="making-", dir=folder.parent) as made:
        with open_shipped() as archive, show_blocks() as show:
            ingest_archive(archive, Path(made) / "lake", load_settings()[0], show)
        try:
            (Path(made) / "lake").rename(folder)
        except OSError:
            if not (folder / LOG_FOLDER).is_dir():  # else another process was faster
                raise
    return open(folder)


def decode(boc: bytes | str) -> dict[str, Any]:
    """Decode a message body given as a bag of cells in bytes, hex or base64.

    The result has the fields of the body's layout, and its name under ``@type``. Raises
    RequestInvalid if ``boc`` is not a bag of cells, or no layout matches.
    """
    found = decode_text(boc.hex() if isinstance(boc, bytes) else boc)
    if "error" in found:
        raise RequestInvalid(f"the body cannot be decoded: {found['error']}")
    return found
