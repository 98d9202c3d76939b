"""A lake in Python: ``tonlake.open``, ``tonlake.demo`` and ``tonlake.decode``."""

from __future__ import annotations

import os
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tonlake.api.command.loading import load_settings
from tonlake.api.errors import RequestInvalid
from tonlake.api.python.account import Account, find_address
from tonlake.api.python.body import ask_bodies
from tonlake.api.python.frame import scan_table
from tonlake.api.python.history import NAME, read_history
from tonlake.api.python.result import Result
from tonlake.api.python.scan import scan_batches
from tonlake.api.python.source import Opened, Source
from tonlake.api.python.trace import Trace, open_trace
from tonlake.api.request.params import ConversionError, parse_hash
from tonlake.api.scan.query import convert_scan
from tonlake.api.v3.route.decode import decode_text
from tonlake.lake.errors import SnapshotNotFound
from tonlake.lake.log.reader import LogReader
from tonlake.lake.log.state import LOG_FOLDER, read_commit
from tonlake.lake.schema import SCHEMA_VERSION, TABLES
from tonlake.lake.schema.view_catalogue import VIEWS
from tonlake.queries.loader import find_query
from tonlake.queries.parameter import read_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    import polars as pl

    from tonlake.api.python.scan import ScanBatch
    from tonlake.api.scan.query import Where
    from tonlake.api.settings import Settings
    from tonlake.lake.log.state import Commit


class Lake:
    """A lake as of one commit: every answer is of it. Any number of threads may ask."""

    def __init__(self, opened: Opened) -> None:
        """Take an open snapshot; ``tonlake.open`` gives a lake."""
        self._opened = opened

    @property
    def snapshot(self) -> int:
        """Number of the commit."""
        return self._opened.snapshot.number

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """First and last masterchain block of each range that the lake has."""
        return self._opened.snapshot.ranges

    @property
    def tables(self) -> list[str]:
        """Names of the tables; ``tonlake schema`` describes them."""
        return sorted(TABLES)

    def __repr__(self) -> str:
        """Return the place, the commit and the blocks."""
        blocks = ", ".join(f"{first}..{last}" for first, last in self.ranges) or "none"
        return f"<Lake {self._opened.source.place}: commit {self.snapshot}, blocks {blocks}>"

    def sql(
        self, statement: str, /, *, signature: str | Sequence[str] = (), **parameters: object
    ) -> Result:
        """Answer a read-only statement of DuckDB; ``parameters`` are the values of its ``$name``.

        ``signature`` is a TL-B constructor, the JSON of a Tact ABI, the name of a shipped layout,
        or a list of these: the messages that follow it are a table. Bodies that have its opcode and
        do not fit raise a UserWarning.

        Raises:
            SignatureInvalid: of ``tonlake.ingest.errors``; a signature is.
            QueryError: of ``tonlake.lake.errors``; DuckDB refuses it, or it does more than read.
            LakeCorrupt, StorageError: a file is damaged, or object storage does not answer.
        """
        signatures = [signature] if isinstance(signature, str) else signature
        with self._opened.source.naming_faults():
            if signatures or NAME in statement.lower() or self._opened.has_own_table(statement):
                return self._show(ask_bodies(self._opened, statement, parameters, signatures))
            return self._show(self._opened.reader().ask(statement, parameters))

    def query(self, name: str, /, **parameters: object) -> Result:
        """Answer a named query; ``tonlake query --list`` prints them and what they take.

        Of a name such as ``v3/jetton_masters`` the last part is enough where no other query has
        it, and for everyday questions. Bytes may be given as hex text; a missing list filters
        nothing.

        Raises:
            QueryUnknown, ParameterMismatch: there is no such query, or it takes other parameters.
            LakeCorrupt, StorageError: as ``sql``.
        """
        query = find_query(name)
        with self._opened.source.naming_faults():
            found = self._opened.reader().table(query.name, **read_values(query, parameters))
        return self._show(found)

    def table(self, name: str) -> pl.LazyFrame:
        """Return a table as a lazy Polars frame; filter on ``day`` to read only some days' files.

        These are the rows of the files: a cell of ``state_cells`` may be there more than once.

        Raises:
            KeyError: there is no such table; ask for a view with ``sql("from v_swaps").pl()``.
            ImportError: Polars is not installed.
            LakeCorrupt: a file of the table is damaged.
        """
        if name in VIEWS:
            raise KeyError(f"{name} is a view: ask for it with sql('from {name}').pl().lazy()")
        if name not in TABLES:
            raise KeyError(f"no table is called {name!r}; there are: {', '.join(self.tables)}")
        return scan_table(self._opened, TABLES[name])

    def scan(
        self,
        table: str | Mapping[str, Any],
        where: Where = None,
        **options: Any,  # noqa: ANN401 - see below
    ) -> Iterator[ScanBatch]:
        """Yield rows of a table in chain order, in batches; docs/indexer.md describes scans.

        ``where`` is a selection, lists of values by column, or several, of which a row fits one.
        Of several tables it stands within ``table``: ``{"messages": {"where": …, "columns": …}}``.
        Options are ``columns``, ``start`` and ``stop`` (masterchain seqno, time, or
        ``snapshot:N``), ``cursor`` of a batch to resume after, ``follow``, ``limit``, and
        ``signature``, a layout whose table or tables can be scanned as well. Without
        ``stop`` and ``follow`` it ends with the newest block of this snapshot.

        Raises:
            RequestInvalid, ScanError: it cannot be carried out.
            LakeCorrupt, StorageError: as ``sql``.
        """
        return scan_batches(self._opened, convert_scan(table, {"where": where, **options}))

    def account(self, name: str) -> Account:
        """Return an account by its address, raw or friendly, or by a domain such as ``name.ton``.

        Raises:
            AddressInvalid: it is neither.
            AnswerNotFound: the lake knows no wallet of that domain.
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
        """Return how a get-method without arguments ended on accounts over time.

        A row for each account and moment: ``account``, ``time``, ``mc_seqno``, ``exit_code``,
        ``stack`` (JSON as in API v3) and ``error``. Moments are UTC, from ``first`` to ``last``, by
        default of all blocks of the lake. It runs once for each code and data of an account.

        Raises:
            AddressInvalid, AnswerNotFound: as ``account``.
            RequestInvalid: there are too many moments.
            TvmMissing: there is no TVM here.
        """
        with self._opened.source.naming_faults():
            addresses = [find_address(self._opened, name) for name in accounts]
            found = read_history(self._opened, addresses, method, every, first, last)
        return self._show(found)

    def trace(self, any_hash: str | bytes) -> Trace:
        """Return the trace of a transaction or message, by its hash: bytes, hex or base64.

        Raises:
            RequestInvalid: it is no hash.
            AnswerNotFound: the lake has no such transaction or message.
        """
        if isinstance(any_hash, str):
            try:
                any_hash = parse_hash(any_hash)
            except ConversionError as error:
                raise RequestInvalid(
                    f"{any_hash[:80]!r} is no hash: 64 hex digits or 44 base64 characters"
                ) from error
        with self._opened.source.naming_faults():
            return open_trace(self._opened, any_hash)

    def at(self, snapshot: int | None = None) -> Lake:
        """Return the same lake as of another commit, by default the newest.

        Raises:
            SnapshotNotFound: it has no commit of this number.
        """
        return Lake(self._opened.source.open(snapshot))

    def follow(self, *, poll_s: float = 0.2, timeout_s: float | None = None) -> Iterator[Commit]:
        """Yield each commit after this snapshot as soon as it is there; ``at`` opens the lake then.

        It goes on for ever, or until none came for ``timeout_s``.

        Raises:
            SnapshotNotFound: the lake is in object storage, where it does not change.
        """
        place = self._opened.source.place
        if isinstance(place, str):
            raise SnapshotNotFound(f"{place} cannot be followed: only a local lake can")
        log, number, came_s = LogReader(place), self.snapshot, time.monotonic()
        while timeout_s is None or time.monotonic() - came_s < timeout_s:
            newest = log.read().number
            for at in range(number + 1, newest + 1):
                yield read_commit(place, at)[0]
                came_s = time.monotonic()
            number = max(number, newest)
            time.sleep(poll_s)

    def _show(self, table: Any) -> Result:  # noqa: ANN401 - pyarrow has no types
        return Result(table, test_only=self._opened.test_only)


def open(  # noqa: A001 - tonlake.open
    place: str | os.PathLike[str],
    snapshot: int | None = None,
    *,
    settings: Settings | None = None,
) -> Lake:
    """Open a lake: its folder, or the ``s3://`` URL of a lake or an export.

    ``snapshot`` is the number of a commit, by default the newest. ``settings`` are by default
    those of the environment, as for the command line.

    Raises:
        LakeNotFound, SnapshotNotFound, LakeCorrupt, StorageError: it cannot be opened.
    """
    return Lake(Source(place, settings or load_settings()[0]).open(snapshot))


def demo() -> Lake:
    """Open the lake of the small node database that is shipped; the first call takes seconds.

    It stays in the user's cache folder (``$XDG_CACHE_HOME/tonlake``), one for each version.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "tonlake" / f"demo-{version('tonlake')}-{SCHEMA_VERSION}"
    if not (folder / LOG_FOLDER).is_dir():
        _make_demo(folder)
    return open(folder)


def _make_demo(folder: Path) -> None:
    """Ingest beside the place of the lake, and move it there: others never see half of it."""
    from tonlake.ingest.command.ingest import show_blocks  # noqa: PLC0415 - seldom
    from tonlake.ingest.demo.node import ingest_archive, open_shipped  # noqa: PLC0415 - seldom

    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="making-", dir=folder.parent) as made:
        with open_shipped() as archive, show_blocks() as show:
            ingest_archive(archive, Path(made) / "lake", load_settings()[0], show)
        try:
            (Path(made) / "lake").rename(folder)
        except OSError:
            if not (folder / LOG_FOLDER).is_dir():  # else another process was first
                raise


def decode(boc: bytes | str) -> dict[str, Any]:
    """Return what a message body says: a bag of cells as bytes, hex or base64.

    The object has the fields of the body's layout, and its name under ``@type``.

    Raises:
        RequestInvalid: it is no bag of cells, or its layout is not known.
    """
    found = decode_text(boc.hex() if isinstance(boc, bytes) else boc)
    if "error" in found:
        raise RequestInvalid(f"the body cannot be decoded: {found['error']}")
    return found
