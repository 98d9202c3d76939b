"""Kept rows of a pruned lake: rows from before its border that the blocks after it build on.

==========================  ===================================================================
tables                      rows from before the border that stay
==========================  ===================================================================
account_states              the newest of each account; the zero state
state_cells                 those that a remaining state, a newer cell or a library reaches
contracts, such as wallets  the newest of each account; the first, which lists are sorted by
interfaces                  the newest of each code
unanswered_methods          the newest of each account and method
config_params               those of the newest key block, and of the zero state
libraries                   the newest change of each library
shard_blocks                ids of the masterchain blocks that get-methods may read
transactions, messages,     those of traces that are unfinished or end after the border, with the
transaction_traces,         account states before and after these transactions
message_bodies
offchain_metadata           all
others                      none
==========================  ===================================================================

Their columns do not change. There is one file per table, at a place from the first pruned block to
the last, in the folder of the last one's day: queries find them as if all other rows still existed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from importlib.resources import files as resources
from itertools import chain
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.duck.connection import connect
from tonlake.lake.errors import LakeFull
from tonlake.lake.file.rows import read_rows, stream_rows
from tonlake.lake.file.writer import merge_rows
from tonlake.lake.log.digest import find_damage
from tonlake.lake.log.disk import sync_folders, temporary_folder
from tonlake.lake.log.place import NewFile, Place, is_open, list_files, read_place
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import DataFile, LogState
from tonlake.lake.maintenance.compact import (
    MEMORY_ROWS,
    keep_first,
    make_table_folder,
    mark_ends,
    write_stream,
)
from tonlake.lake.schema import (
    ACCOUNT_STATES,
    CONFIG_PARAMS,
    HISTORY_TABLES,
    INTERFACES,
    LIBRARIES,
    MESSAGE_BODIES,
    MESSAGES,
    OFFCHAIN_METADATA,
    SHARD_BLOCKS,
    STATE_CELLS,
    TRACES,
    TRANSACTION_TRACES,
    TRANSACTIONS,
    UNANSWERED_METHODS,
    Table,
)
from tonlake.lake.settings import LakeSettings

_PREVIOUS, _STEP = 16, 100
"""A get-method may read the last 16 masterchain blocks, the last 16 whose seqno is a multiple of
100, and the last key block (c7: prev_blocks_info, since global version 9)."""

_HASH = pa.binary(32)
_ACCOUNT = ("workchain", "account")
_METHOD = (*_ACCOUNT, "method")
_STATES_OF = ("account", "account_state_hash_before", "account_state_hash_after")

Keep = Callable[[pa.Table], pa.Table]
Thin = Callable[[Iterable[pa.Table]], Iterator[pa.Table]]


class RetainedRows:
    """Writes the kept rows of a lake that will begin at a border, table by table."""

    def __init__(
        self,
        lake_dir: Path,
        state: LogState,
        border: int,
        place: Place,
        settings: LakeSettings,
        made: list[DataFile],
    ) -> None:
        """Take the lake as it is, the first masterchain block that stays, and the files' place.

        ``made`` has the files, cut at the border, of the place that spans it; others are added.
        """
        self._lake_dir, self._state, self._settings = lake_dir, state, settings
        self._border, self._place = border, place
        self._cut, self._made = made[:], made
        closed = [file for file in state.files if not is_open(file.path)]
        self._old = [file for file in closed if read_place(file.path).first < border]
        self._later = [file for file in closed if read_place(file.path).last >= border]

    def write(self, on_table: Callable[[int, int], None]) -> None:
        """Write all files; ``on_table`` is called with the number of tables done and of all."""
        histories = [partial(self._write, table, thin=keep_ends) for table in HISTORY_TABLES]
        steps: list[Callable[[], object]] = [
            lambda: self._write_states(self._write_traces()),
            *histories,
            partial(self._write, INTERFACES, thin=partial(keep_newest, key=("code_hash",))),
            partial(self._write, UNANSWERED_METHODS, thin=partial(keep_newest, key=_METHOD)),
            lambda: self._write(OFFCHAIN_METADATA),
            lambda: self._write_masters(self._write_config()),
            self._write_libraries,
            self._write_cells,
        ]
        for done, step in enumerate(steps, 1):
            step()
            on_table(done, len(steps))
        sync_folders((self._lake_dir / file.path).parent for file in self._made)

    def _write_traces(self) -> pa.Table:
        """Write the rows of unfinished traces; return account and states of their transactions."""
        ids = find_unfinished(self._lake_dir, self._state, self._border)
        traced = self._write(TRANSACTION_TRACES, _among("trace_id", ids))
        hashes = self._read(traced, TRANSACTION_TRACES, "hash")["hash"]
        written = self._write(TRANSACTIONS, _among("hash", hashes))
        messages = self._write(MESSAGES, _among("tx_hash", hashes))
        mine = self._read(messages, MESSAGES, "body_hash", "mc_seqno")
        # Files of older versions have a body once, with the first block that contains it.
        others = self._read(_of(MESSAGES, self._cut), MESSAGES, "body_hash")["body_hash"]
        known = self._read(_of(MESSAGE_BODIES, self._cut), MESSAGE_BODIES, "body_hash")["body_hash"]
        lacking = others.filter(pc.invert(_is_in(others, known)))
        bodies = pa.chunked_array([*mine["body_hash"].chunks, *lacking.chunks], _HASH)
        self._write(
            MESSAGE_BODIES,
            _among("body_hash", bodies),
            lambda rows: keep_newest(
                rows,
                ("body_hash", "external_in"),
                lambda row: _is_in(row["mc_seqno"], mine["mc_seqno"]),
            ),
        )
        return self._read(written, TRANSACTIONS, *_STATES_OF)

    def _write_states(self, transactions: pa.Table) -> None:
        """Write the newest states, and those of ``transactions``."""
        account, *columns = _STATES_OF
        chunks = [chunk for name in columns for chunk in transactions[name].chunks]
        hashes = pa.chunked_array(chunks, _HASH)

        def is_other(rows: pa.Table) -> pa.ChunkedArray:
            is_named = pc.and_(
                _is_in(rows["hash"], hashes), _is_in(rows["account"], transactions[account])
            )
            return pc.or_(pc.equal(rows["mc_seqno"], 0), is_named)

        self._write(ACCOUNT_STATES, thin=lambda rows: keep_newest(rows, _ACCOUNT, is_other))

    def _write_config(self) -> int:
        """Write the newest configuration, and return its key block; 0 if there is none."""
        seqnos = [
            pc.max(rows["mc_seqno"]).as_py()
            for rows in self._stream(CONFIG_PARAMS)
            if rows.num_rows
        ]
        newest = max(seqnos, default=0)
        self._write(CONFIG_PARAMS, _among("mc_seqno", pa.chunked_array([[0, newest]])))
        return newest

    def _write_libraries(self) -> None:
        changes = pa.concat_tables([LIBRARIES.empty, *self._stream(LIBRARIES)])
        newest = changes.group_by("hash").aggregate([("mc_seqno", "max")])
        last = newest["mc_seqno_max"].take(pc.index_in(changes["hash"], newest["hash"]))
        kept = changes.filter(pc.equal(changes["mc_seqno"], last))
        self._put(LIBRARIES, [kept], kept.num_rows)

    def _write_masters(self, key_block: int) -> None:
        """Write the ids of masterchain blocks that a block after the border may read."""
        hundredth = self._border // _STEP * _STEP
        seqnos = {
            key_block,
            *range(self._border - _PREVIOUS, self._border),
            *range(hundredth - (_PREVIOUS - 1) * _STEP, self._border, _STEP),
        }
        is_named = _among("mc_seqno", pa.chunked_array([sorted(seqnos)], pa.int64()))
        self._write(
            SHARD_BLOCKS,
            lambda rows: is_named(rows.filter(pc.equal(rows["workchain"], MASTERCHAIN))),
        )

    def _write_cells(self) -> None:
        used = (ACCOUNT_STATES.name, LIBRARIES.name)
        whole = [file for file in self._later if read_place(file.path).first >= self._border]
        files = [file for file in (*whole, *self._made) if file.table in used]
        cells = {file.path: file for file in _of(STATE_CELLS, (*self._old, *whole))}
        found = find_used_cells(
            self._lake_dir, [*files, *cells.values()], self._border, self._settings
        )
        most = sum(file.rows for file in _of(STATE_CELLS, self._old))
        if most:
            self._put(STATE_CELLS, found, most, lambda rows: keep_first(rows, "hash"))

    def _write(
        self, table: Table, keep: Keep = lambda rows: rows, thin: Thin = iter
    ) -> list[DataFile]:
        """Write a table's rows, filtered by ``keep`` per piece and by ``thin`` over all."""
        most = sum(file.rows for file in _of(table, self._old))
        return self._put(table, map(keep, self._stream(table)), most, thin)

    def _put(
        self, table: Table, pieces: Iterable[pa.Table], max_rows: int, thin: Thin = iter
    ) -> list[DataFile]:
        """Write rows, sorted, as the file of a table; no file if there are none."""
        if not max_rows:
            return []
        folder = make_table_folder(self._lake_dir, table, self._place)
        filled = (rows for rows in pieces if rows.num_rows)
        merged = thin(merge_rows(filled, table, MEMORY_ROWS, folder))
        first = next(merged, None)
        if first is None:
            return []
        rows = chain((first,), merged)
        file = write_stream(self._lake_dir, table, self._place, rows, max_rows, self._settings)
        self._made.append(file)
        return [file]

    def _stream(self, table: Table) -> Iterator[pa.Table]:
        """Yield the rows of a table before the border."""
        for file in _of(table, self._old):
            for rows in stream_rows(self._lake_dir, file, self._settings.row_group_rows):
                yield rows.filter(pc.less(rows["mc_seqno"], self._border))

    def _read(self, files: Sequence[DataFile], table: Table, *columns: str) -> pa.Table:
        rows = [read_rows(self._lake_dir, file, columns) for file in files]
        return pa.concat_tables([table.empty.select(columns), *rows])


def _of(table: Table, files: Iterable[DataFile]) -> list[DataFile]:
    """Return the files of a table, sorted by place."""
    mine = (file for file in files if file.table == table.name)
    return sorted(mine, key=lambda file: read_place(file.path))


def _among(column: str, values: pa.ChunkedArray) -> Keep:
    """Return a filter for rows whose ``column`` is among ``values``."""
    return lambda rows: rows.filter(_is_in(rows[column], values))


def _is_in(values: pa.ChunkedArray, known: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.is_in(values, known.combine_chunks())


def keep_newest(
    pieces: Iterable[pa.Table],
    key: Sequence[str],
    is_other: Callable[[pa.Table], pa.ChunkedArray] | None = None,
) -> Iterator[pa.Table]:
    """Yield the last row of each key, and rows for which ``is_other`` holds, from sorted rows."""
    for rows, _is_first, is_last in mark_ends(pieces, key):
        yield rows.filter(is_last if is_other is None else pc.or_(is_last, is_other(rows)))


def keep_ends(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the first and the last row of each account from sorted rows."""
    for rows, is_first, is_last in mark_ends(pieces, _ACCOUNT):
        yield rows.filter(pc.or_(is_first, is_last))


_READ = (ACCOUNT_STATES.name, LIBRARIES.name, STATE_CELLS.name)

_SQL = resources("tonlake.lake.maintenance") / "cells.sql"
_OLD, _ROOTS, _CHILDREN, _STAYING = _SQL.read_text(encoding="utf-8").split(";")


def find_used_cells(
    lake_dir: Path, files: Sequence[DataFile], border: int, settings: LakeSettings
) -> Iterator[pa.Table]:
    """Yield the rows of ``state_cells`` from before a border that are still used, unordered.

    ``files`` are all of cells, and of the states and libraries that stay. DuckDB may spill to disk.
    """
    for damage in find_damage(lake_dir, files, trust_earlier=True):
        raise damage
    snapshot = Snapshot(lake_dir, LogState(files=tuple(files)))
    try:
        with (
            temporary_folder(lake_dir) as spill,
            closing(connect(snapshot, settings, tables=_READ, spill=spill)) as connection,
        ):
            connection.execute(_OLD, {"border": border})
            connection.execute(_ROOTS, {"border": border})
            connection.execute("create table reached as from frontier")
            while connection.execute(_CHILDREN).execute("from frontier limit 1").fetchall():
                connection.execute("insert into reached from frontier")
            staying = connection.sql(_STAYING)
            for batch in staying.to_arrow_reader(settings.row_group_rows):
                yield pa.Table.from_batches([batch]).cast(STATE_CELLS.arrow)
    except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
        raise LakeFull(
            f"no room to find the state cells in use in {lake_dir} ({error}); nothing was pruned: "
            "free some space or raise [lake] duckdb_memory_mib, then run the same command again"
        ) from error


def find_unfinished(lake_dir: Path, state: LogState, border: int) -> pa.ChunkedArray:
    """Return the traces that began before a border and end after it, or may still continue."""
    began = pc.field("mc_seqno_start") < border
    crossing = began & (pc.field("mc_seqno_end") >= border)
    found = [TRACES.empty.select(["trace_id"])]
    for file in list_files(state, TRACES.name):
        if is_open(file.path):
            waiting = began & ~_is_dead(border)
            found.append(read_rows(lake_dir, file).filter(waiting).select(["trace_id"]))
        elif read_place(file.path).last >= border:
            found.append(read_rows(lake_dir, file, ("trace_id",), crossing))
    return pa.concat_tables(found)["trace_id"]


def _is_dead(border: int) -> pc.Expression:
    """Return the predicate: incomplete, ended before a border, waits only for blocks before it."""
    is_over = (pc.field("state") == "broken") & (pc.field("pending_messages") == 0)
    return is_over & (pc.field("mc_seqno_end") < border)


def drop_dead_traces(
    lake_dir: Path, state: LogState, border: int
) -> tuple[list[NewFile], frozenset[str]]:
    """Return the open files without traces that can never complete, and the paths they replace."""
    files = {file.table: file for file in state.files if is_open(file.path)}
    if TRACES.name not in files:
        return [], frozenset()
    traces = read_rows(lake_dir, files[TRACES.name])
    dead = traces.filter(_is_dead(border))["trace_id"].combine_chunks()
    if not len(dead):
        return [], frozenset()
    made = []
    for name, file in files.items():
        rows = traces if name == TRACES.name else read_rows(lake_dir, file)
        stays = pc.invert(pc.is_in(rows["trace_id"], dead))
        made.append(NewFile(name, read_place(file.path), rows.filter(stays)))
    return made, frozenset(file.path for file in files.values())
