"""Runs named queries on one snapshot of a lake, by the index or by SQL, and composes their rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeVar

import duckdb
import pyarrow as pa

from tonlake.lake.duck.answer import ask, bind_once, naming_the_fault
from tonlake.lake.duck.connection import choose_views, find_damage_behind, list_tables, list_views
from tonlake.lake.duck.limit import WATCH, count_work, ended_by_interrupt
from tonlake.lake.duck.remote import Views
from tonlake.lake.duck.silence import check_literals
from tonlake.lake.errors import QueryError as QueryRefused
from tonlake.lake.index.answer import ANSWERS, find_answer
from tonlake.lake.index.index import Index
from tonlake.lake.index.segment.declared import make_record
from tonlake.lake.log.snapshot import Snapshot
from tonlake.queries.errors import ParameterMismatch, QueryNeeded, QueryTimeout, QueryTooLarge
from tonlake.queries.loader import REQUIRED, NamedQuery, Parameter, find_query, load_queries
from tonlake.queries.parameter import advise_narrowing, bind_parameters


class Composed(NamedTuple):
    """A function that composes the rows, and the query that declares its parameters."""

    query: NamedQuery
    compose: Callable[[Reader, Mapping[str, Any]], list[Any]]


def _compose_transactions(reader: Reader, asked: Mapping[str, Any]) -> list[Any]:
    keys: Sequence[Mapping[str, Any]] = asked["keys"]
    if not keys:
        return []
    hashes = [key["hash"] for key in keys]
    lts = [key["lt"] for key in keys]
    span = {"first_lt": min(lts), "last_lt": max(lts)}
    found = {row["hash"]: row for row in reader.rows("v3/transaction_rows", hashes=hashes, **span)}
    messages: dict[bytes, list[Row]] = {tx_hash: [] for tx_hash in hashes}
    lines = reader.rows("v3/message_rows", tx_hashes=hashes, **span)
    for line in lines:
        messages[line["tx_hash"]].append(line)
    rows = [found[tx_hash] for tx_hash in hashes]
    state_keys = {
        (row["workchain"], row["account"], row[f"account_state_hash_{when}"])
        for row in rows
        for when in ("before", "after")
    }
    workchains, accounts, state_hashes = (
        list(part) for part in zip(*sorted(state_keys), strict=True)
    )
    states = {
        (row["workchain"], row["account"], row["hash"]): row
        for row in reader.rows(
            "v3/account_states_by_hash",
            workchains=workchains,
            accounts=accounts,
            hashes=state_hashes,
        )
    }
    return [make_record(row, messages[row["hash"]], states) for row in rows]


def _compose_bags(reader: Reader, asked: Mapping[str, Any]) -> list[Any]:
    rows = [record.row for record in asked["records"]]
    if not rows:
        return []
    lts = [row["lt"] for row in rows]
    span = {"first_lt": min(lts), "last_lt": max(lts)}
    return reader.rows("v2/transaction_bags", hashes=[row["hash"] for row in rows], **span)


def _compose_messages(reader: Reader, asked: Mapping[str, Any]) -> list[Any]:
    keys = reader.rows("v3/message_keys", **asked)
    if not keys:
        return []
    found = reader.rows(
        "v3/message_rows",
        tx_hashes=[key["tx_hash"] for key in keys],
        msg_hashes=[key["msg_hash"] for key in keys],
        first_lt=min(key["tx_lt"] for key in keys),
        last_lt=max(key["tx_lt"] for key in keys),
    )
    rows = {(row["tx_hash"], row["msg_hash"]): row for row in found}
    return [rows[key["tx_hash"], key["msg_hash"]] | key for key in keys]


@cache
def find_composed(name: str) -> Composed | None:
    """Return the composition of a name; None if a single query returns the rows.

    ``v3/transactions`` takes ``keys``, rows with ``hash`` and ``lt``, and returns their ``Record``;
    ``v2/bags`` takes ``records``, such as these, and returns what ``v2/transaction_bags`` does;
    ``v3/messages`` takes and returns what ``v3/message_keys`` does, and ``v3/message_rows``.
    """
    if name == "v3/transactions":
        about = "Transactions with messages and states.", "records"
        return Composed(_take_rows(name, "keys", *about), _compose_transactions)
    if name == "v2/bags":
        about = "Bags of cells of transactions.", "hash, boc, in no order"
        return Composed(_take_rows(name, "records", *about), _compose_bags)
    if name == "v3/messages":
        return Composed(load_queries()["v3/message_keys"], _compose_messages)
    return None


def _take_rows(name: str, key: str, doc: str, returns: str) -> NamedQuery:
    """Return the declaration of a composition with one parameter, rows of transactions."""
    rows = Parameter(key, "row[]", REQUIRED, f"{key} of transactions")
    return NamedQuery(name, "", {key: rows}, {key: REQUIRED}, doc, returns)


INDEX, SQL = "index", "sql"
"""What may answer a query."""

FEW_FILES = 100
"""Tables with at most this many files are checked for changes after every query: 0.5 ms."""

Row = dict[str, Any]
T = TypeVar("T")


class Reader:
    """A reader of one snapshot, with its own connection; not shared between threads."""

    def __init__(
        self,
        snapshot: Snapshot,
        database: Views,
        *,
        index: Index | None = None,
        lasting: dict[str, Any] | None = None,
        timeout_ms: int = 0,
        max_rows: int = 0,
        observe: Callable[[str, float, str], None] | None = None,
        may_query: bool = True,
    ) -> None:
        """Take a snapshot, its views, which readers share, and an index.

        Without ``may_query`` no SQL runs. The limits of a query are ``timeout_ms`` and, of a page,
        ``max_rows``; 0 means none. ``lasting`` caches ``lasting_rows`` for all readers. ``observe``
        is called with the name of every query, its seconds, and what answered: ``index`` or
        ``sql``.
        """
        self._lasting: dict[str, Any] = {} if lasting is None else lasting
        self.snapshot = snapshot
        self.answered_by: set[str] = set()
        """What answered the queries so far: ``index``, ``sql``, or both."""
        self._index = index
        self._database = database
        self._timeout_ms, self._max_rows = timeout_ms, max_rows
        self._observe = observe
        self.may_query = may_query

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        """A separate cursor, opened for the first query."""
        return self._database.lend(self)

    def rows(self, name: str, **parameters: object) -> list[Row]:
        """Run one query by the index, or else by its SQL.

        A row is a dict, or is read by name like one; ``v3/transactions`` has ``Record``. Raises
        QueryUnknown, ParameterMismatch, QueryNeeded, QueryTimeout, QueryTooLarge, LakeCorrupt.
        """
        composed = find_composed(name)
        query = composed.query if composed else load_queries().get(name) or find_query(name)
        bound = bind_parameters(query, parameters)
        if self._index is not None and name in ANSWERS:
            started_s = time.perf_counter()
            found = find_answer(self._index, name, bound)
            if found is not None:
                self._note(name, started_s, INDEX)
                return found
        if not self.may_query:
            raise QueryNeeded(name)
        if composed is not None:
            return composed.compose(self, bound)
        return self._run(
            query, bound, lambda: _fetch_rows(self._connection.execute(query.sql, bound))
        )

    def table(self, name: str, **parameters: object) -> pa.Table:
        """Run one query by its SQL; the result has DuckDB's types. Errors are those of ``rows``."""
        query = find_query(name)
        bound = bind_parameters(query, parameters)
        try:
            if parameters:
                check_literals(self._connection, query.sql, bound)
            return self._run(
                query, bound, lambda: bind_once(self._connection, query.sql, bound).to_arrow_table()
            )
        except duckdb.Error as error:
            raise ParameterMismatch(f"query {name} with these parameters: {error}") from error

    def ask(self, statement: str, parameters: Mapping[str, object]) -> pa.Table:
        """Run a user's statement, which only reads; raises QueryError of the lake, LakeCorrupt."""
        chosen = choose_views(statement)
        views = " ".join(chosen)
        try:
            with naming_the_fault(self.snapshot):
                named = statement if chosen == list_views(statement) else f"{views} {statement}"
                self._database.provide(named, self._connection)
                batches = ask(self._connection, self.snapshot, statement, parameters, whole=True)
                found = batches.read_all()
        except QueryRefused as error:
            self._check_files(views, error.__cause__ or error)
            raise
        self._check_files(statement)
        return found

    def _run(self, query: NamedQuery, bound: Mapping[str, object], fetch: Callable[[], T]) -> T:
        most = self._max_rows
        if most and (rows := count_work(self.snapshot, query.name, bound, most)):
            advice = advise_narrowing(bound)
            text = f"query {query.name} would read {rows} rows, more than {most}{advice}"
            raise QueryTooLarge(text)
        started_s = time.perf_counter()
        try:
            with self._deadline(query.name, bound):
                self._database.provide(query.sql, self._connection)
                fetched = fetch()
        except duckdb.Error as error:
            self._check_files(query.sql, error)  # damaged bytes fail in many ways
            raise
        else:
            self._check_files(query.sql)
            return fetched
        finally:
            self._note(query.name, started_s, SQL)

    def _check_files(self, statement: str, error: BaseException | None = None) -> None:
        gone = isinstance(error, duckdb.IOException)
        for table in list_tables(statement):
            always = error is not None or len(self.snapshot.files[table]) <= FEW_FILES
            self.snapshot.watch.check(table, always=always, gone=gone)

    def _note(self, name: str, started_s: float, answered_by: str) -> None:
        self.answered_by.add(answered_by)
        if self._observe is not None:
            self._observe(name, time.perf_counter() - started_s, answered_by)

    def lasting_rows(self, name: str, **parameters: object) -> Sequence[Mapping[str, Any]]:
        """Run a query once for all readers of the snapshot; results are kept, so few should."""
        return self.lasting(f"{name} {parameters}", lambda: self.rows(name, **parameters))

    def repeat_lasting(self, earlier: Iterable[str]) -> None:
        """Run the queries without parameters that ``lasting_rows`` kept for an earlier snapshot."""
        for key in earlier:
            if key.endswith(" {}"):
                self.lasting_rows(key.removesuffix(" {}"))

    def lasting(self, key: str, find: Callable[[], T]) -> T:
        """Call ``find`` once for all readers of the snapshot, and return its cached result."""
        found: T | None = self._lasting.get(key)
        if found is None:
            found = self._lasting[key] = find()
        return found

    def one(self, name: str, **parameters: object) -> Row | None:
        """Return the first row of a query, or None if there is none."""
        found = self.rows(name, **parameters)
        return found[0] if found else None

    @contextmanager
    def _deadline(self, name: str, bound: Mapping[str, object]) -> Iterator[None]:
        limit = (
            WATCH.limit(self._connection.interrupt, self._timeout_ms / 1000)
            if self._timeout_ms
            else nullcontext()
        )
        try:
            with limit, ended_by_interrupt(self._connection):
                yield
        except duckdb.InterruptException as error:
            limit_ms, advice = self._timeout_ms, advise_narrowing(bound)
            raise QueryTimeout(f"query {name} took longer than {limit_ms} ms{advice}") from error
        except duckdb.CatalogException as error:
            damage = find_damage_behind(self.snapshot, error)
            if damage is None:
                raise
            raise damage from error


def _fetch_rows(cursor: duckdb.DuckDBPyConnection) -> list[Row]:
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
