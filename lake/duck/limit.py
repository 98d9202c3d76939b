"""Limits of queries: their time, and the rows that SQL must read, estimated from row groups."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.resources import files
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tonlake.lake.log.place import read_place
from tonlake.lake.log.snapshot import Snapshot

if TYPE_CHECKING:
    from types import FrameType

    import duckdb

AGAIN_S = 0.05
"""A query past its limit is interrupted at this interval until it ends, because DuckDB forgets an
interrupt that arrives before the query has begun."""


class Watch:
    """Tracks the running queries, each with the time of its next interrupt."""

    def __init__(self) -> None:
        """Watch nothing; the first query starts the thread."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_s = inf
        self._queries: dict[object, tuple[float, Callable[[], None]]] = {}

    @contextmanager
    def limit(self, interrupt: Callable[[], None], limit_s: float) -> Iterator[None]:
        """Call ``interrupt`` once the block has taken ``limit_s``, and again until it has ended."""
        query, due_s = object(), time.monotonic() + limit_s
        with self._changed:
            self._queries[query] = due_s, interrupt
            # A forked process inherits the watch, but not its thread.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="query-watch", daemon=True)
                self._thread.start()
            elif due_s < self._wakes_s:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                del self._queries[query]

    def _run(self) -> None:
        with self._changed:
            while True:
                self._wakes_s = self._interrupt_due(time.monotonic())
                wait_s = self._wakes_s - time.monotonic()
                self._changed.wait(None if wait_s == inf else max(0.0, wait_s))

    def _interrupt_due(self, now_s: float) -> float:
        """Interrupt queries past their limit; return the time of the next check."""
        for query, (due_s, interrupt) in self._queries.items():
            if due_s <= now_s:
                interrupt()
                self._queries[query] = now_s + AGAIN_S, interrupt
        return min((due_s for due_s, _ in self._queries.values()), default=inf)


WATCH = Watch()


@contextmanager
def ended_by_interrupt(connection: "duckdb.DuckDBPyConnection") -> Iterator[None]:
    """Let Ctrl-C end a statement at once: DuckDB alone waits until its threads have finished it."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # a server's, whose statements have a time limit
        return
    pressed = threading.Event()

    def stop(number: int, frame: "FrameType | None") -> None:
        pressed.set()
        connection.interrupt()
        before(number, frame)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    except Exception:
        if pressed.is_set():  # DuckDB raises an error of its own in place of KeyboardInterrupt
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)


_MIN_VALUE, _MAX_VALUE = 0, (1 << 63) - 1
KEPT_EXTENTS = 8_192

Span = tuple[int, int]
"""The least and the greatest value of a column, both included."""

Group = tuple[int, Span | None]
"""Rows of a row group, and the span of a column in it; None if unknown."""


class PageWork(NamedTuple):
    """The table that a page is cut from, and the columns of its filters."""

    table: str
    utime: str
    lt: str
    exact: Mapping[str, str]
    """Column by parameter."""
    hashes: frozenset[str] = frozenset()
    """Parameters with hashes, which find their rows."""


_PAGES = (files("tonlake.lake.duck") / "pages.json").read_bytes()
PAGES = msgspec.json.decode(_PAGES, type=dict[str, PageWork])
"""Work of pages that accept any combination of filters, by query name."""


def count_work(snapshot: Snapshot, name: str, asked: Mapping[str, Any], most: int) -> int:
    """Return the rows that SQL would read for a page; 0 if at most ``most``, or found by a hash."""
    work = PAGES.get(name)
    if work is None or any(asked.get(key) for key in work.hashes):
        return 0
    if sum(file.rows for file in snapshot.files[work.table]) <= most:
        return 0
    rows = count_rows(snapshot, work.table, _bound(work, asked))
    return rows if rows > most else 0


def _bound(work: PageWork, asked: Mapping[str, Any]) -> dict[str, Span]:
    bounds: dict[str, Span] = {
        column: (asked[key], asked[key])
        for key, column in work.exact.items()
        if asked.get(key) is not None
    }
    for unit, column in (("utime", work.utime), ("lt", work.lt)):
        first, last = asked.get(f"start_{unit}"), asked.get(f"end_{unit}")
        if (first, last) != (None, None):
            span = _MIN_VALUE if first is None else first, _MAX_VALUE if last is None else last
            bounds.setdefault(column, span)
    return bounds


def count_rows(snapshot: Snapshot, table: str, bounds: Mapping[str, Span]) -> int:
    """Return the number of rows in row groups of a table that may have rows within bounds."""
    rows = 0
    for file in snapshot.files[table]:
        place = read_place(file.path)
        # Rows of the zero state, of masterchain block 0, come with block 1.
        span = (place.first if place.first > 1 else 0, place.last)
        if not place.is_open and not _may_hold(span, bounds.get("mc_seqno", span)):
            continue
        if file.pack or not bounds:
            rows += file.rows
            continue
        try:
            rows += _count_rows(f"{snapshot.lake_dir}/{file.path}", bounds)
        except (OSError, KeyError, pa.ArrowInvalid):
            rows += file.rows  # SQL names the damaged file, or supports its older schema
    return rows


def _count_rows(path: str, bounds: Mapping[str, Span]) -> int:
    columns = [(_list_groups(path, name), bound) for name, bound in bounds.items()]
    counts = [rows for rows, _ in columns[0][0]]
    return sum(
        rows
        for at, rows in enumerate(counts)
        if all(_may_hold(groups[at][1], bound) for groups, bound in columns)
    )


@lru_cache(KEPT_EXTENTS)
def _list_groups(path: str, name: str) -> tuple[Group, ...]:
    """Return the row groups of a file; files never change."""
    footer = pq.read_metadata(path)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    if not groups:
        return ()
    # Avoid ``footer.schema``, whose reference cycle would keep both in memory for minutes.
    places = {groups[0].column(at).path_in_schema: at for at in range(footer.num_columns)}
    found = ((group.num_rows, group.column(places[name]).statistics) for group in groups)
    return tuple(
        (rows, (each.min, each.max) if each is not None and each.has_min_max else None)
        for rows, each in found
    )


def _may_hold(span: Span | None, bound: Span) -> bool:
    """Whether a column with this span, or None if unknown, may have a value within bounds."""
    return span is None or (span[0] <= bound[1] and span[1] >= bound[0])
