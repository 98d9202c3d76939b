"""Fills in what blocks leave out, from state cells of the current commit and of the lake, by hash.

Rows of the lake are cached by key: opening a lake takes far longer than a query, and commits mostly
need keys of earlier commits.

A block prunes what it does not change. The dictionary of an account's extra currencies is stored
as decoded values, not only as a hash, so its cells are looked up here. If an earlier range with
these cells is ingested later, the rows are completed then. A block shows what it adds to the public
libraries, but often not what it removes: a publisher whose own dictionary (TL-B: simple_lib$_
public:Bool root:^Cell) no longer contains a library has withdrawn it.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.decode.block.message import read_extra_currencies
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.packed import append_packed
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.errors import MissingCell
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.span import Span
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.commit.rewrite import commit_maintenance
from tonlake.lake.duck.connection import connect
from tonlake.lake.errors import LakeNotFound
from tonlake.lake.file.datafile import write_changes
from tonlake.lake.file.rows import iter_tuples, list_values, make_rows, read_rows
from tonlake.lake.file.writer import sort_rows
from tonlake.lake.index.builder.plan import range_of
from tonlake.lake.log.disk import LOCK_FILE, hold_lock
from tonlake.lake.log.place import Derivation, NewFile, list_files, read_place
from tonlake.lake.log.ranges import Range, merge_ranges, overlaps, subtract_ranges
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.log.state import Commit, DataFile, LogReader, LogState, Undoing, read_state
from tonlake.lake.schema import ACCOUNT_STATES, LIBRARIES, STATE_CELLS
from tonlake.lake.settings import LakeSettings

if TYPE_CHECKING:
    import duckdb
    from duckdb import DuckDBPyConnection

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

FILES_ADDED = 1_000
"""Files of commits that a cache keeps in mind while nothing is looked up in it."""

Ask = Callable[["DuckDBPyConnection", set[Key]], Mapping[Key, Value]]
"""Queries a lake for the values of keys; unknown keys are omitted."""


class LakeCache(Generic[Key, Value]):
    """Caches values of one table by key; holds at most twice ``most`` values."""

    def __init__(
        self,
        lake_dir: Path,
        settings: LakeSettings,
        table: str,
        ask: Ask[Key, Value],
        *,
        statement: str,
        most: int,
        lasts: bool = False,
    ) -> None:
        """Start empty; ``ask`` executes ``statement``, or one of the same views and macros.

        With ``lasts`` new blocks add values but never change them, like cells.
        """
        self._lake_dir = lake_dir
        self._settings = settings
        self._table = table
        self._ask, self._statement = ask, statement
        self._most = most
        self._lasts = lasts
        self._asked: dict[Key, Value | None] = {}
        self._recent: dict[Key, Value] = {}
        self._connection: DuckDBPyConnection | None = None
        self._number = 0
        self._content: tuple[tuple[Range, ...], tuple[Undoing, ...]] = ((), ())
        self._files: tuple[DataFile, ...] = ()
        self._added: list[DataFile] = []
        """Files of commits after ``_files``."""

    def close(self) -> None:
        """Close the connection to the lake."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._settle()

    def _settle(self) -> None:
        """Treat values of recent commits as known in the lake, which is reopened with them."""
        self._asked |= self._recent
        self._recent.clear()
        self._forget_oldest()

    def find(self, keys: set[Key], state: LogState) -> dict[Key, Value]:
        """Return the values of keys in a lake; unknown keys are omitted."""
        self._follow(state)
        found: dict[Key, Value] = {}
        unknown: set[Key] = set()
        for key in keys:
            if key in self._recent:
                found[key] = self._recent[key]
            elif key in self._asked:
                value = self._asked[key] = self._asked.pop(key)
                if value is not None:
                    found[key] = value
            else:
                unknown.add(key)
        if unknown and state.number:
            new = self._look_up(unknown, state)
            self._asked |= {key: new.get(key) for key in unknown}
            self._forget_oldest()
            found |= new
        return found

    def learn(self, values: Mapping[Key, Value], commit: Commit) -> None:
        """Add the values of a commit that was made after the last query."""
        ranges, undoings = self._content
        new = (commit.first_mc_seqno, commit.last_mc_seqno)
        self._content = merge_ranges((*ranges, new)), undoings
        self._added += (file for file in commit.added if file.table == self._table)
        for key in values:
            self._asked.pop(key, None)
        self._recent |= values
        if len(self._recent) > self._most or len(self._added) > FILES_ADDED:
            self.close()
            self._files, self._added = (), []

    def _follow(self, state: LogState) -> None:
        """Drop values changed by other processes; close the lake if its files were replaced."""
        if state.number == self._number:
            return
        self._number = state.number
        content = state.known_ranges, state.undoings
        if content != self._content:
            self.close()
            (before, undoings), (after, undoings_after) = self._content, content
            # Lasting values stay valid if the lake only gained blocks.
            if self._lasts and undoings == undoings_after and not subtract_ranges(before, after):
                known = ((key, value) for key, value in self._asked.items() if value is not None)
                self._asked = dict(known)
            else:
                self._asked = {}
            self._content = content
        files = state.by_table.get(self._table, ())
        if files != (*self._files, *self._added):
            self.close()
        self._files, self._added = files, []

    def _look_up(self, keys: set[Key], state: LogState) -> Mapping[Key, Value]:
        """Query the lake for keys that are not cached."""
        return self._ask(self._open(state), keys)

    def _open(self, state: LogState) -> "DuckDBPyConnection":
        """Return a connection to the lake as of its opening; later rows are in ``_recent``."""
        if self._connection is None:
            self._settle()
            self._connection = connect(
                Snapshot(self._lake_dir, state),
                self._settings,
                tables=[self._table],
                statement=self._statement,
            )
        return self._connection

    def _forget_oldest(self) -> None:
        for key in list(islice(self._asked, max(0, len(self._asked) - self._most))):
            del self._asked[key]


MANY_ROWS = 10_000
"""With more rows than this, cells are filtered one lookup at a time unless many are needed."""

MANY_ASKED = 1 / 4
"""Share of the rows above which cells count as many."""

PackedCell = tuple[bytes, list[bytes]]
Cells = dict[bytes, PackedCell]
"""Packed cells, as in ``state_cells``: descriptors with data, and child hashes."""


class CellFinder:
    """Finds trees of cells in the lake and among rows that are about to be committed."""

    def __init__(
        self, lake_dir: Path, settings: IngestSections, log: LogReader | None = None
    ) -> None:
        """Look up cells in ``lake_dir``, which need not exist yet; ``log`` reads its log."""
        self._most = most = settings.ingest.cached_rows
        self.log = log or LogReader(lake_dir)
        self._memory = LakeCache(
            *(lake_dir, settings.lake, STATE_CELLS.name, _find_in_lake),
            statement=_CELLS,
            most=most,
            lasts=True,
        )
        self._fresh_rows: pa.Table | None = None
        self._fresh: Cells = {}

    def close(self) -> None:
        """Close the connection to the lake."""
        self._memory.close()

    def find_trees(self, roots: set[bytes], fresh: pa.Table, *, in_lake: bool = True) -> Cells:
        """Return the cells under ``roots``, as far as ``fresh`` rows or the lake have them."""
        found: Cells = {}
        keys = set(roots)
        state: LogState | None = None
        while keys:
            level = self._find_fresh(fresh, keys)
            lacking = keys - level.keys()
            if lacking and in_lake:
                state = state or self.log.read()
                level |= self._memory.find(lacking, state)
            found |= level
            keys = {child for _, children in level.values() for child in children} - found.keys()
        return found

    def learn(self, fresh: pa.Table, commit: Commit) -> None:
        """Cache the cells of a commit whose rows were searched before."""
        if fresh is self._fresh_rows or fresh.num_rows <= self._most:
            cells = self._fresh if fresh is self._fresh_rows else _pick(fresh)
            self._memory.learn(cells, commit)
        self._fresh_rows, self._fresh = None, {}

    def _find_fresh(self, fresh: pa.Table, keys: set[bytes]) -> Cells:
        are_many = len(keys) > MANY_ASKED * fresh.num_rows
        keeps = fresh is self._fresh_rows or are_many
        if fresh.num_rows > (self._most if keeps else MANY_ROWS):
            hashes = pa.array(sorted(keys), pa.binary(32))
            return _pick(fresh.filter(pc.is_in(fresh["hash"], hashes)))
        if fresh is not self._fresh_rows:
            self._fresh_rows, self._fresh = fresh, _pick(fresh)
        known = self._fresh
        return {each: known[each] for each in keys if each in known}


_CELLS = "select hash, cell, refs from state_cell_copies where hash in (select unnest($hashes))"


def _find_in_lake(connection: "duckdb.DuckDBPyConnection", keys: set[bytes]) -> Cells:
    rows = connection.execute(_CELLS, {"hashes": sorted(keys)})
    return {row[0]: (row[1], row[2]) for row in rows.fetchall()}


def _pick(rows: pa.Table) -> Cells:
    return {row[0]: (row[1], row[2]) for row in iter_tuples(rows, ("hash", "cell", "refs"))}


_TEXT, _HASH = "extra_currencies", "extra_currencies_hash"
TEXTS_KEPT = 10_000
"""Maximum number of cached dictionaries; beyond it the cache is cleared."""


class CurrencyRegistry:
    """Dictionaries of extra currencies by hash, cached from commit to commit."""

    def __init__(self, finder: CellFinder) -> None:
        self._finder = finder
        self._texts: dict[bytes, str | None] = {}

    def complete(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        """Return ``account_states`` with missing extra currencies filled in.

        A dictionary whose cells predate the lake's first block stays NULL beside its hash.
        """
        states = tables["account_states"]
        if states[_HASH].null_count == states.num_rows:
            return states
        held = states.select((_HASH, _TEXT)).filter(pc.is_valid(states[_HASH]))
        if len(self._texts) > TEXTS_KEPT:
            self._texts.clear()
        shown = held.filter(pc.is_valid(held[_TEXT]))
        self._texts |= dict(iter_tuples(shown, (_HASH, _TEXT)))
        hashes = list_values(held[_HASH].filter(pc.is_null(held[_TEXT])))
        if not hashes:
            return states
        unknown = {root for root in hashes if self._texts.get(root) is None}
        # Cells that were not in the lake before can only come with this commit.
        absent = unknown & self._texts.keys()
        cells = self._finder.find_trees(unknown - absent, tables["state_cells"])
        cells |= self._finder.find_trees(absent, tables["state_cells"], in_lake=False)
        self._texts |= {root: _read_text(root, cells) for root in unknown}
        texts = pa.array(map(self._texts.get, states[_HASH].to_pylist()), pa.string())
        column = states.schema.get_field_index(_TEXT)
        filled = pc.coalesce(states[_TEXT], texts)
        return states.set_column(column, states.schema.field(column), filled)


def complete_states(
    lake_dir: Path, settings: LakeSettings, finder: CellFinder, within: Sequence[Span]
) -> Commit | None:
    """Fill in missing extra currencies whose dictionaries came with an earlier range.

    Only ranges within the spans ``within`` are completed. Index segments over changed ranges are
    dropped; the next rebuild builds them. Raises LakeNotFound, LakeCorrupt, LakeFull.
    """
    with hold_lock(lake_dir / LOCK_FILE):
        state = read_state(lake_dir)
        registry = CurrencyRegistry(finder)
        no_cells = {STATE_CELLS.name: STATE_CELLS.empty}
        added = []
        removed = set()
        for file in list_files(state, ACCOUNT_STATES.name):
            place = read_place(file.path)
            if not any(span.first <= place.first <= span.last for span in within):
                continue
            few = read_rows(lake_dir, file, (_TEXT, _HASH))
            completed = registry.complete({ACCOUNT_STATES.name: few, **no_cells})
            if completed[_TEXT].null_count != few[_TEXT].null_count:
                rows = read_rows(lake_dir, file)
                rows = registry.complete({ACCOUNT_STATES.name: rows, **no_cells})
                added.append(NewFile(file.table, place, rows))
                removed.add(file.path)
        if not added:
            return None
        changes = write_changes(lake_dir, state, Derivation(added, frozenset(removed)), settings)
        changed = tuple((file.place.first, file.place.last) for file in added)
        segments = tuple(
            segment for segment in state.segments if not overlaps(changed, range_of(segment))
        )
        return commit_maintenance(
            lake_dir, state, added=changes.added, removed=changes.removed, segments=segments
        )


def _read_text(root: bytes, cells: Cells) -> str | None:
    tree = CellTree()
    with suppress(MissingCell):
        return read_extra_currencies(tree, append_packed(tree, root, cells, {}))
    return None


_KEY_BITS = 256

_PUBLISHED = """
select hash, publishers from libraries where mc_seqno < $before
qualify row_number() over (partition by hash order by mc_seqno desc) = 1 and present
"""

Publishers = dict[bytes, set[bytes]]
"""Accounts that publish a library, by library hash."""


class LibraryRegistry:
    """The publishers of every public library, kept from commit to commit of one run."""

    def __init__(self, lake_dir: Path, settings: LakeSettings, finder: CellFinder) -> None:
        """Start from the rows of ``lake_dir``, which need not exist yet."""
        self._lake_dir = lake_dir
        self._settings = settings
        self._finder = finder
        self._publishers: Publishers = {}
        self._public: dict[bytes, set[bytes]] = {}
        """Public libraries in the dictionaries of the last commit, by root."""
        self._next: int | None = None

    def complete(self, tables: Mapping[str, pa.Table], first: int, last: int) -> pa.Table:
        """Return ``libraries`` of blocks with removals, and publishers omitted as unchanged."""
        if first != self._next:
            self._publishers = self._read_lake(first)
        self._next = last + 1
        shown = tables["libraries"]
        if not self._publishers and not shown.num_rows:
            return shown
        rows = list(self._follow(shown.to_pylist(), self._list_states(tables, shown)))
        if not rows:
            return shown
        return sort_rows(make_rows(LIBRARIES, rows), LIBRARIES)

    def _read_lake(self, before: int) -> Publishers:
        try:
            snapshot = open_snapshot(self._lake_dir, check_digests=False)
        except LakeNotFound:
            return {}
        settings, names = self._settings, [LIBRARIES.name]
        with connect(snapshot, settings, tables=names, statement=_PUBLISHED) as connection:
            rows = connection.execute(_PUBLISHED, {"before": before}).fetchall()
        return {library: set(publishers) for library, publishers in rows}

    def _list_states(
        self, tables: Mapping[str, pa.Table], shown: pa.Table
    ) -> list[tuple[int, bytes, set[bytes] | None]]:
        accounts = {account for held in self._publishers.values() for account in held}
        accounts |= {account for held in shown["publishers"].to_pylist() for account in held}
        states = tables["account_states"]
        read = [states[name] for name in ("workchain", "mc_seqno", "account", "library_hash")]
        touched = enumerate(list_values(states["account"]))
        places = [at for at, account in touched if account in accounts]
        named = (tuple(column[at].as_py() for column in read) for at in places)
        rows = [row for row in named if row[0] == MASTERCHAIN]
        roots = {root for *_, root in rows if root is not None}
        public = {root: self._public[root] for root in roots & self._public.keys()}
        new = roots - public.keys()
        cells = self._finder.find_trees(new, tables["state_cells"]) if new else {}
        public |= {root: _read_public(root, cells) for root in new}
        self._public = {root: held for root, held in public.items() if held is not None}
        return [(at, account, public[root] if root else set()) for _, at, account, root in rows]

    def _follow(
        self, shown: list[dict[str, Any]], states: list[tuple[int, bytes, set[bytes] | None]]
    ) -> Iterator[dict[str, Any]]:
        """Yield the changes of every block: its own, and libraries that its accounts withdrew."""
        shown_at, states_at = defaultdict(list), defaultdict(list)
        for row in shown:
            shown_at[row["mc_seqno"]].append(row)
        for state in states:
            states_at[state[0]].append(state)
        for at in sorted(shown_at.keys() | states_at.keys()):
            changed: set[bytes] = set()
            for row in shown_at[at]:
                held = self._publishers.setdefault(row["hash"], set())
                held |= set(row["publishers"])
                if not row["present"]:
                    held.clear()
                changed.add(row["hash"])
            for _, account, public in states_at[at]:
                changed |= self._withdraw(account, public)
            for library in sorted(changed):
                held = self._publishers[library]
                yield {
                    "mc_seqno": at,
                    "hash": library,
                    "present": bool(held),
                    "publishers": sorted(held),
                }
                if not held:
                    del self._publishers[library]

    def _withdraw(self, account: bytes, public: set[bytes] | None) -> set[bytes]:
        """Remove the account from libraries it no longer publishes; return those libraries."""
        if public is None:
            return set()
        gone = {
            library
            for library, held in self._publishers.items()
            if account in held and library not in public
        }
        for library in gone:
            self._publishers[library].discard(account)
        return gone


def _read_public(root: bytes, cells: Cells) -> set[bytes] | None:
    """Return the public libraries in an account's dictionary; None if cells are missing."""
    tree = CellTree()
    try:
        entries = iter_hashmap(tree, append_packed(tree, root, cells, {}), _KEY_BITS)
    except MissingCell:
        return None
    return {key.to_bytes(32, "big") for key, value in entries if value.load_bit()}
