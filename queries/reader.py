"""Asks named queries of one snapshot of a lake, within a time limit."""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from queries.errors import ParameterMismatch, QueryNeeded, QueryTimeout, QueryUnknown
from queries.loader import REQUIRED, Query, load_queries
from queries.watch import WATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lake.cells import CellStore
    from lake.database import SnapshotViews
    from lake.lookup.lookups import Lookups
    from lake.snapshot import Snapshot


Row = dict[str, Any]
T = TypeVar("T")


class Reader:
    """One snapshot and a connection of its own; not shared between threads."""

    def __init__(
        self,
        snapshot: Snapshot,
        database: duckdb.DuckDBPyConnection | SnapshotViews,
        *,
        lookups: Lookups | None = None,
        cells: CellStore | None = None,
        lasting: dict[str, Any] | None = None,
        timeout_ms: int = 0,
        observe: Callable[[str, float], None] | None = None,
        may_query: bool = True,
    ) -> None:
        """Take a snapshot, a database of its own or its views, its look-ups and cells.

        Without ``may_query`` it answers from look-ups alone, in no more time than they take.
        The limit of a query is ``timeout_ms``, 0 for none.
        ``lasting`` keeps the answers of ``lasting_rows``, for all readers of the snapshot.
        ``observe`` is told the name of every query, and the seconds it took.
        """
        self._lasting: dict[str, Any] = {} if lasting is None else lasting
        self.snapshot = snapshot
        self.lookups = lookups
        self.cells = cells
        self._database = database
        self._timeout_ms = timeout_ms
        self._observe = observe
        self._may_query = may_query

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        """A cursor of its own, made when the first query is asked."""
        if isinstance(self._database, duckdb.DuckDBPyConnection):
            return self._database.cursor()
        return self._database.lend(self)

    def _provide(self, statement: str) -> None:
        if not isinstance(self._database, duckdb.DuckDBPyConnection):
            self._database.provide(statement)

    def rows(self, name: str, **parameters: object) -> list[Row]:
        """Answer one query, a dict for each row.

        Raises:
            QueryUnknown, ParameterMismatch: the question is put wrongly.
            QueryNeeded: this reader may not query.
            QueryTimeout: it took longer than the limit.
            LakeCorrupt: it needs a file that is damaged.
        """
        query = load_queries().get(name)
        if query is None:
            raise QueryUnknown(f"no query is called {name!r}; see queries/**/*.sql")
        self.check_may_query(name)
        with self._measured(name), self._deadline(name):
            self._provide(query.sql)
            cursor = self._connection.execute(query.sql, bind_parameters(query, parameters))
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def check_may_query(self, name: str) -> None:
        """Refuse what reads files, or takes as long, where that is not wanted.

        Raises:
            QueryNeeded: this reader may not query.
        """
        if not self._may_query:
            raise QueryNeeded(name)

    def lasting_rows(self, name: str, **parameters: object) -> Sequence[Mapping[str, Any]]:
        """Answer a query as ``rows``, once for all readers of the snapshot.

        For the few questions whose parameters follow from the snapshot, not from a request: all
        answers are kept as long as the snapshot is.
        """
        return self.lasting(f"{name} {parameters}", lambda: self.rows(name, **parameters))

    def lasting(self, key: str, find: Callable[[], T]) -> T:
        """Return what is found once for all readers of the snapshot, as ``lasting_rows``."""
        found: T | None = self._lasting.get(key)
        if found is None:
            found = self._lasting[key] = find()
        return found

    def one(self, name: str, **parameters: object) -> Row | None:
        """Answer one query by its first row, or None if there is none."""
        found = self.rows(name, **parameters)
        return found[0] if found else None

    @contextmanager
    def _measured(self, name: str) -> Iterator[None]:
        if self._observe is None:
            yield
            return
        started_s = time.perf_counter()
        try:
            yield
        finally:
            self._observe(name, time.perf_counter() - started_s)

    @contextmanager
    def _deadline(self, name: str) -> Iterator[None]:
        limit = (
            WATCH.limit(self._connection, self._timeout_ms / 1000)
            if self._timeout_ms
            else nullcontext()
        )
        try:
            with limit:
                yield
        except duckdb.InterruptException as error:
            raise QueryTimeout(f"query {name} took longer than {self._timeout_ms} ms") from error
        except duckdb.CatalogException as error:
            damage = self.snapshot.blame(error)
            if damage is None:
                raise
            raise damage from error


def bind_parameters(query: Query, given: dict[str, object]) -> dict[str, object]:
    """Complete ``given`` with the defaults of the query's header.

    Raises:
        ParameterMismatch: one is missing, or one too many.
    """
    bound = {
        name: given.get(name, parameter.default) for name, parameter in query.parameters.items()
    }
    missing = sorted(name for name, value in bound.items() if value is REQUIRED)
    unknown = sorted(given.keys() - bound.keys())
    if missing or unknown:
        raise ParameterMismatch(f"query {query.name}: missing {missing}, unknown {unknown}")
    return bound
