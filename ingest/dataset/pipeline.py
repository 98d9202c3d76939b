"""Ingests days of the public data set into a lake, with the derivations of every other source.

The files of a UTC day, and those of the days beside it as far as they have rows of the same
masterchain blocks, go through DuckDB, which keeps them on disk. A masterchain block whose rows are
incomplete or wrong is a hole, and the reason names the row.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from importlib.resources import files
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.assemble.batch import DAY_S, Hole, Piece, take_blocks
from tonlake.ingest.blocks import BlockSource, McBundle, McHead
from tonlake.ingest.dataset.files import FORM, DataSet
from tonlake.ingest.decode.block.block import read_params
from tonlake.ingest.decode.block.header import find_child, find_parent
from tonlake.ingest.decode.block.message import normalize
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.packed import pack_cell
from tonlake.ingest.decode.native import hash_root
from tonlake.ingest.decode.rows import Row, make_table
from tonlake.ingest.errors import BlockNeverHad, BocError, SourceError
from tonlake.ingest.run.pipeline import IngestReport, Pipeline, Progress
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.span import Span
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.commit.delta import publish
from tonlake.lake.file.rows import (
    fill_fields,
    iter_dicts,
    iter_tuples,
    keep_rows,
    list_values,
    read_rows,
    without_collector,
)
from tonlake.lake.file.writer import sort_rows
from tonlake.lake.log.disk import make_folder, temporary_folder
from tonlake.lake.log.place import list_files_between
from tonlake.lake.log.state import LOG_FOLDER, REPORTED_KIND, LogState
from tonlake.lake.schema import (
    ACCOUNT_STATES,
    BASE_TABLES,
    BLOCKS,
    CONFIG_PARAMS,
    MESSAGES,
    SHARD_BLOCKS,
    STATE_CELLS,
    TRANSACTIONS,
)
from tonlake.lake.settings import LakeSettings

_MASK = (1 << 64) - 1

Shard = tuple[int, int]
"""Workchain, and shard as a signed integer."""


_TOP = SHARD_BLOCKS.names[1:]
"""Columns of the newest known block of a shard: those of ``shard_blocks`` but the first."""


class ShardTops:
    """The newest block of every shard as of the last masterchain block that was added."""

    def __init__(self) -> None:
        self._last = 0
        self._tops: dict[Shard, dict[str, Any]] = {}

    def read(self, lake_dir: Path, state: LogState, mc_seqno: int) -> None:
        """Continue after a masterchain block of the lake, if the lake has it."""
        if mc_seqno == self._last:
            return
        self._last, self._tops = mc_seqno, {}
        is_then = pc.field("mc_seqno") == mc_seqno
        for file in list_files_between(state, mc_seqno, mc_seqno, SHARD_BLOCKS.name):
            for top in read_rows(lake_dir, file, _TOP, is_then).to_pylist():
                self._tops[top["workchain"], top["shard"]] = top

    def add(
        self, mc_seqno: int, blocks: Iterable[Mapping[str, Any]]
    ) -> tuple[list[Row], list[Row]]:
        """Add the blocks of a masterchain block; return rows of ``blocks`` and ``shard_blocks``."""
        if mc_seqno != self._last + 1:
            self._tops.clear()
        self._last = mc_seqno
        rows = []
        try:
            for block in sorted(blocks, key=itemgetter("seqno")):
                known = {**block, **self._replace(block)}
                rows.append(tuple(map(known.get, BLOCKS.names)))
        except ValueError:
            self._tops.clear()
            raise
        tops = [(mc_seqno, *top.values()) for _shard, top in sorted(self._tops.items())]
        return rows, tops

    def _replace(self, block: Mapping[str, Any]) -> dict[str, Any]:
        """Make a block the top of its shard; return the columns about those before it."""
        workchain, shard, before = block["workchain"], block["shard"], block["seqno"] - 1
        parents = [shard]
        if block["after_merge"]:
            parents = [find_child(shard, right=right) for right in (False, True)]
        elif block["after_split"]:
            parents = [find_parent(shard)]
        found: dict[str, Any] = {}
        tops = [self._tops.get((workchain, parent), {}) for parent in parents]
        newest = max((top["seqno"] for top in tops if top), default=before)
        if newest > before or (all(tops) and newest < before):
            raise ValueError(
                f"block ({workchain},{shard & _MASK:016x},{block['seqno']}) follows block"
                f" {newest} of its shard: blocks between them are missing"
            )
        for prefix, parent, top in zip(("prev", "prev2"), parents, tops, strict=False):
            found |= {
                f"{prefix}_shard": parent,
                f"{prefix}_seqno": top.get("seqno", None if block["after_merge"] else before),
                f"{prefix}_root_hash": top.get("root_hash"),
                f"{prefix}_file_hash": top.get("file_hash"),
            }
        # After a split the parent stays until both children have a block.
        others = (find_child(find_parent(shard), right=right) for right in (False, True))
        if not block["after_split"] or all(
            other == shard or (workchain, other) in self._tops for other in others
        ):
            for parent in parents:
                self._tops.pop((workchain, parent), None)
        self._tops[workchain, shard] = {name: block[name] for name in _TOP}
        return found


_CONFIG_ACCOUNT = {"workchain": MASTERCHAIN, "account": pa.scalar(bytes([0x55]) * 32, pa.binary())}
"""The configuration contract of every network."""

_OF_PARAMS = ("mc_seqno", "utime", "data")
_BAGS_KEPT = 4_096


def find_flaws(rows: pa.Table, what: str, key: str, bags: Iterable[str]) -> dict[int, str]:
    """Return what is wrong with bags of rows by masterchain block: the first of each."""
    found: dict[int, str] = {}
    for bag in bags:
        flaws = [*map(_find_flaw, list_values(rows[bag]), list_values(rows[f"{bag}_hash"]))]
        for row, flaw in enumerate(flaws) if any(flaws) else ():
            if flaw is not None:
                block, text = max(rows["mc_seqno"][row].as_py(), 1), rows[key][row].as_py().hex()
                found.setdefault(block, f"{what} {text}: its {bag} {flaw}")
    return found


@lru_cache(_BAGS_KEPT)  # most messages come twice: where they are sent and received
def _find_flaw(bag: bytes | None, expected: bytes | None) -> str | None:
    if bag is None:
        return None
    found = hash_root(bag)
    if found is None:
        try:
            tree = parse_boc(bag)
            found = tree.hash(tree.roots[0])
        except BocError as error:
            return f"is not a bag of cells ({error})"
    return None if found == expected else f"has the hash {found.hex()}, not that of its row"


def list_params(
    states: pa.Table, key_blocks: Collection[int], flaws: Collection[int], *, is_known: bool
) -> list[Row]:
    """Return rows of ``config_params``: of key blocks, the zero state and, if new, the first."""
    found: list[Row] = []
    is_config = [pc.equal(states[name], value) for name, value in _CONFIG_ACCOUNT.items()]
    rows = keep_rows(states.select(_OF_PARAMS), pc.and_(*is_config)).sort_by("mc_seqno")
    for mc_seqno, utime, data in iter_tuples(rows, _OF_PARAMS):
        if data is None or max(mc_seqno, 1) in flaws:
            continue
        if not mc_seqno or mc_seqno in key_blocks or not (is_known or found):
            tree = parse_boc(data)
            root = tree.links[tree.roots[0]][0]
            found += read_params(tree, root, mc_seqno, utime)
    return found


SLACK_S = 3_600
"""A shard block may be this much older than the masterchain block that commits it."""

FLAWED = "RowsFlawed"
"""Kind of the hole of a masterchain block whose rows are incomplete or wrong."""

_MOST_HEADS = 10 * DAY_S
"""Masterchain blocks of a day, missing ones included; of more, a seqno is wrong."""

_CHUNK, _CHUNK_TRANSACTIONS = 1_000, 16_384
"""Masterchain blocks and, on average, transactions read at a time; their rows are in memory."""

_CHUNK_MIB = 128
"""Memory of DuckDB for each chunk of those that are copied at a time."""

Tables = dict[str, pa.Table]


@cache
def _read_statement(name: str) -> str:
    return (files("tonlake.ingest.dataset") / f"{name}.sql").read_text(encoding="utf-8")


class Day(BlockSource):
    """The rows of one day, as a source without blocks; closing it removes them from the disk."""

    def __init__(self, dataset: DataSet, day: date, lake_dir: Path, settings: LakeSettings) -> None:
        """Find the masterchain blocks of the day; all other rows are loaded on demand."""
        self._dataset, self._day = dataset, day
        self._settings = settings
        begin_s = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
        self._times = begin_s, begin_s + DAY_S - 1
        self._chunk = 0  # masterchain blocks read at a time; 0 until the rows are loaded
        self._flaws: dict[int, str] = {}
        self.knows_config = False
        """Whether the lake has a configuration; else that of the first block is added."""

        with ExitStack() as stack:
            self._folder = stack.enter_context(temporary_folder(lake_dir))
            self._connection = stack.enter_context(self._connect())
            self.heads = self._read_heads()
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Remove the rows."""
        self._stack.close()

    def refresh(self) -> None:
        """Do nothing, as a day does not grow."""

    def first_mc_seqno(self) -> int:
        """Return the first masterchain block of the day."""
        return min(self.heads)

    def last_mc_seqno(self) -> int:
        """Return the last masterchain block of the day."""
        return max(self.heads)

    def read_bundle(self, mc_seqno: int) -> McBundle:
        """Raise BlockNeverHad: there are only rows."""
        raise BlockNeverHad("the data set has its rows only", block=mc_seqno)

    def find_head(self, mc_seqno: int) -> McHead | None:
        """Return a masterchain block of the day."""
        root_hash = self.heads.get(mc_seqno)
        return None if root_hash is None else McHead(mc_seqno, root_hash, None)

    def describe(self) -> dict[str, str]:
        """Return the origin of the rows for the commit log."""
        return {"kind": REPORTED_KIND, "name": self._dataset.name}

    @property
    def span(self) -> Span | None:
        """The masterchain blocks of the day, missing ones between them included."""
        return Span(min(self.heads), max(self.heads)) if self.heads else None

    def read(self, span: Span, tops: ShardTops) -> Iterator[list[Piece | Hole]]:
        """Yield the pieces and holes of a span of the day, in order."""
        self._load()
        chunks = max(1, self._settings.duckdb_memory_mib // _CHUNK_MIB)
        part = Tables()
        for count, first in enumerate(range(span.first, span.last + 1, self._chunk)):
            if count % chunks == 0:
                part.clear()  # first, so that only one is in memory
                part |= self._fetch(Span(first, first + chunks * self._chunk - 1))
            chunk = Span(first, min(span.last, first + self._chunk - 1))
            yield self._read_chunk(chunk, take_blocks(part, chunk.first, chunk.last), tops)

    def _connect(self) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(
            f"{self._folder}/rows.duckdb",
            config={
                "memory_limit": f"{self._settings.duckdb_memory_mib}MiB",
                "threads": self._settings.duckdb_threads,
                "temp_directory": f"{self._folder}/spill",
            },
        )
        connection.execute(_read_statement("macros"))
        return connection

    def _read_heads(self) -> dict[int, bytes]:
        rows = self._dataset.read("blocks", [self._day], self._times)
        self._connection.register("incoming", rows)
        found = self._run(
            "blocks",
            "select distinct seqno, hash_of(root_hash), key_block from incoming "
            "where workchain = -1 and seqno > 0 and seqno = mc_block_seqno"
            " and gen_utime between $start and $end order by seqno",
            {"start": self._times[0], "end": self._times[1]},
        ).fetchall()
        if found and found[-1][0] - found[0][0] >= _MOST_HEADS:
            raise SourceError(
                f"{self._dataset.name}, {self._day}: masterchain blocks {found[0][0]} and"
                f" {found[-1][0]} cannot be of one day"
            )
        self._key_blocks = {seqno for seqno, _hash, is_key in found if is_key}
        return {seqno: root_hash for seqno, root_hash, _is_key in found}

    def _load(self) -> None:
        """Load the rows of the day's masterchain blocks, and look for what they lack."""
        if self._chunk or self.span is None:
            return
        start, end = self._times[0] - SLACK_S, self._times[1] + SLACK_S
        span = {"first": self.span.first, "last": self.span.last}
        bounds = span | {"start": start, "end": end}
        days = [self._day + timedelta(days) for days in (-1, 0, 1)]
        for table in FORM:
            # The zero state is older than the first block, by any time.
            times = (0, end) if table == "account_states" and self.span.first == 1 else (start, end)
            self._connection.register("incoming", self._dataset.read(table, days, times))
            statement = _read_statement(table)
            used = {name: value for name, value in bounds.items() if f"${name}" in statement}
            self._run(table, statement, used)
            self._run(table, _read_statement(f"duplicates/{table}"))
        is_lacking = "blocks" in self._dataset.list_lacking(days[0])
        before = {"lacking": str(days[0]) if is_lacking else None, "morning": start + 2 * SLACK_S}
        self._run("flaws", _read_statement("flaws"), span | before)
        self._flaws = dict(self._connection.table("flaws").fetchall())
        count = self._connection.table("transactions").shape[0]
        self._chunk = min(_CHUNK, 1 + len(self.heads) * _CHUNK_TRANSACTIONS // (1 + count))

    def _run(self, table: str, statement: str, parameters: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
        with self._name_errors(table):
            return self._connection.execute(statement, parameters)

    def _fetch(self, span: Span) -> Tables:
        """Return the rows of a span, so that a chunk is not searched for among those of a day."""
        bounds = {"first": span.first - (span.first == 1), "last": span.last}
        found = Tables()
        for table in (*FORM, "published"):
            with self._name_errors(table):
                rows = self._connection.sql(_read_statement(f"rows/{table}"), params=bounds)
                found[table] = rows.to_arrow_table()
        return found

    @contextmanager
    def _name_errors(self, table: str) -> Iterator[None]:
        """Make a SourceError of an error of the files that a statement reads, or of its memory."""
        try:
            yield
        except duckdb.OutOfMemoryException as error:
            limit = self._settings.duckdb_memory_mib
            raise SourceError(
                f"{self._day}, {table}: [lake] duckdb_memory_mib = {limit} is too little: raise it"
                f" ({error})"
            ) from error
        except (duckdb.DataError, duckdb.InvalidInputException) as error:
            named = SourceError(f"{self._dataset.name}, {self._day}: {error}")
            raise self._dataset.failure or named from error

    @without_collector()
    def _read_chunk(self, span: Span, rows: Tables, tops: ShardTops) -> list[Piece | Hole]:
        transactions = sort_rows(rows[TRANSACTIONS.name], TRANSACTIONS)
        transactions, messages = _join_ends(transactions, rows[MESSAGES.name])
        flaws = find_flaws(messages, "message", "msg_hash", ("body", "init_state")) | self._flaws
        blocks, shards = self._follow_chain(span, rows[BLOCKS.name], tops, flaws)
        states = rows[ACCOUNT_STATES.name]
        flaws = find_flaws(states, "account", "account", ("code", "data")) | flaws
        cells = _read_cells(states, flaws) + _read_libraries(rows["published"], flaws)
        params = list_params(states, self._key_blocks, flaws, is_known=self.knows_config)
        self.knows_config = self.knows_config or bool(params)
        tables = {table.name: table.empty for table in BASE_TABLES} | {
            CONFIG_PARAMS.name: make_table(CONFIG_PARAMS, params),
            BLOCKS.name: make_table(BLOCKS, blocks),
            SHARD_BLOCKS.name: make_table(SHARD_BLOCKS, shards),
            TRANSACTIONS.name: fill_fields(transactions, TRANSACTIONS.arrow),
            MESSAGES.name: fill_fields(_add_normal_forms(messages, flaws), MESSAGES.arrow),
            ACCOUNT_STATES.name: fill_fields(states, ACCOUNT_STATES.arrow),
            STATE_CELLS.name: make_table(STATE_CELLS, cells),
        }
        return list(self._cut(span, tables, flaws))

    def _follow_chain(
        self, span: Span, blocks: pa.Table, tops: ShardTops, flaws: dict[int, str]
    ) -> tuple[list[Row], list[Row]]:
        """Return rows of blocks and shard tops; add to ``flaws`` blocks that are missing."""
        by_mc: dict[int, list[dict[str, Any]]] = {}
        for block in iter_dicts(blocks):
            by_mc.setdefault(block["mc_seqno"], []).append(block)
        rows, shards = list[Row](), list[Row]()
        for mc_seqno in range(span.first, span.last + 1):
            if mc_seqno not in self.heads or mc_seqno in flaws:
                continue
            try:
                more_rows, more_shards = tops.add(mc_seqno, by_mc.get(mc_seqno, []))
            except ValueError as error:
                flaws[mc_seqno] = str(error)
                continue
            rows += more_rows
            shards += more_shards
        return rows, shards

    def _cut(self, span: Span, tables: Tables, flaws: dict[int, str]) -> Iterator[Piece | Hole]:
        """Yield the unbroken parts of the rows, and a hole for each other masterchain block."""
        begun = span.first
        for mc_seqno in range(span.first, span.last + 2):
            hole = None
            if mc_seqno <= span.last and mc_seqno not in self.heads:
                reason = f"the data set has no masterchain block {mc_seqno}"
                hole = Hole(mc_seqno, BlockNeverHad.__name__, reason)
            elif mc_seqno in flaws:
                hole = Hole(mc_seqno, FLAWED, flaws[mc_seqno])
            if hole is None and mc_seqno <= span.last:
                continue
            if begun < mc_seqno:
                yield Piece(begun, mc_seqno - 1, take_blocks(tables, begun, mc_seqno - 1))
            begun = mc_seqno + 1
            if hole is not None:
                yield hole


def _join_ends(transactions: pa.Table, ends: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Add columns about messages to transactions; return these, and messages in their order.

    DuckDB would take three times as long to sort messages with their bodies.
    """
    hashes = transactions["hash"].combine_chunks()
    owners = pc.index_in(ends["tx_hash"], value_set=hashes).to_numpy()
    is_out = pc.equal(ends["direction"], "out").to_numpy()
    order = np.lexsort((pc.fill_null(ends["created_lt"], 0).to_numpy(), is_out, owners))
    owners, is_out, messages = owners[order], is_out[order], ends.take(pa.array(order))
    rows, is_first = np.arange(len(order)), np.diff(owners * 2 + is_out, prepend=-1) != 0
    numbers = rows - np.maximum.accumulate(np.where(is_first, rows, 0))
    messages = messages.append_column("msg_index", pa.array(numbers))
    for name in ("workchain", "account", "lt", "now"):
        column = transactions[name].take(pa.array(owners))
        messages = messages.append_column(name if name == "now" else f"tx_{name}", column)
    counts = np.bincount(owners[is_out], minlength=len(hashes))
    ins = messages.select(["tx_hash", "msg_hash"]).filter(pa.array(~is_out))
    received = ins["msg_hash"].take(pc.index_in(hashes, value_set=ins["tx_hash"].combine_chunks()))
    transactions = transactions.append_column("outmsg_cnt", pa.array(counts))
    return transactions.append_column("in_msg_hash", received), messages


def _read_cells(states: pa.Table, flaws: Collection[int]) -> list[Row]:
    """Return the cells of account states in blocks without a flaw, each where it comes first."""
    known, found = set[bytes](), list[Row]()
    names = ("mc_seqno", "code_hash", "code", "data_hash", "data")
    for mc_seqno, *parts in sorted(iter_tuples(states, names), key=itemgetter(0)):
        for root, bag in (parts[:2], parts[2:]):
            if bag is None or root in known or max(mc_seqno, 1) in flaws:
                continue
            tree = parse_boc(bag)
            for cell in range(tree.count):
                cell_hash = tree.hash(cell)
                if cell_hash not in known:
                    known.add(cell_hash)
                    found.append((cell_hash, mc_seqno, *pack_cell(tree, cell)))
    return found


def _read_libraries(published: pa.Table, flaws: Collection[int]) -> list[Row]:
    """Return the cells that transactions of the masterchain may have published as libraries."""
    found: list[Row] = []
    for row in iter_dicts(published):
        if row["bag"] is None or row["mc_seqno"] in flaws:
            continue
        tree = parse_boc(row["bag"])
        wanted = set(tree.links[tree.roots[0]][row["codes"] :])
        for cell in range(tree.count):  # a cell comes before those that it refers to
            if cell in wanted:
                wanted.update(tree.links[cell])
                found.append((tree.hash(cell), row["mc_seqno"], *pack_cell(tree, cell)))
    return found


def _normalize(body: bytes, body_hash: bytes, workchain: int, account: bytes) -> bytes:
    tree = parse_boc(body)
    # addr_std$10 without anycast: 100, workchain, account.
    head = 0b100 << 8 | workchain & 0xFF
    address = head << 256 | int.from_bytes(account, "big")
    return normalize(address, 267, tree.depth(tree.roots[0]), body_hash)


def _add_normal_forms(messages: pa.Table, flaws: Collection[int]) -> pa.Table:
    """Add ``hash_norm`` of external messages; their bodies have the hashes of their rows."""
    names = ("mc_seqno", "body", "body_hash", "destination_workchain", "destination")
    has_form = pc.and_(pc.equal(messages["kind"], "ext_in"), pc.is_valid(messages["body"]))
    hashes = [
        None if mc_seqno in flaws else _normalize(*parts)
        for mc_seqno, *parts in iter_tuples(messages.filter(has_form), names)
    ]
    forms, nothing = pa.array(hashes, pa.binary()), pa.nulls(messages.num_rows, pa.binary())
    forms = pc.replace_with_mask(nothing, has_form.combine_chunks(), forms)
    return messages.append_column("hash_norm", forms)


class DayReport(msgspec.Struct):
    """What became of a day: the report of its masterchain blocks, or why there are none."""

    day: str
    ingest: IngestReport | None = None
    lacking: list[str] = []


class DatasetPipeline(Pipeline):
    """Ingests one day after the other; the caches of derivations last from day to day."""

    def __init__(self, day: Day, lake_dir: Path, settings: IngestSections) -> None:
        super().__init__(day, lake_dir, settings)
        self.day = day
        self._tops = ShardTops()

    def _read(self, span: Span) -> Iterator[list[Piece | Hole]]:
        state = self.log.read()
        self._tops.read(self.lake_dir, state, span.first - 1)
        self.day.knows_config = CONFIG_PARAMS.name in state.by_table
        return self.day.read(span, self._tops)


def ingest_days(
    dataset: DataSet,
    days: Iterable[date],
    lake_dir: Path,
    settings: IngestSections,
    *,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> Iterator[DayReport]:
    """Ingest days in order, and yield a report of each; what the lake has is skipped."""
    make_folder(lake_dir / LOG_FOLDER)
    pipeline: DatasetPipeline | None = None
    try:
        for day in days:
            lacking = dataset.list_lacking(day)
            if lacking:
                yield DayReport(day.isoformat(), lacking=lacking)
                continue
            with closing(Day(dataset, day, lake_dir, settings.lake)) as opened:
                if pipeline is None:
                    pipeline = DatasetPipeline(opened, lake_dir, settings)
                pipeline.source = pipeline.day = opened
                report = None if opened.span is None else pipeline.bring(opened.span, on_progress)
            if report is not None and report.commits:
                publish(pipeline.log, settings.lake)
            yield DayReport(day.isoformat(), report)
    finally:
        if pipeline is not None:
            pipeline.close()
