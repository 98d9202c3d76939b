"""The ingest pipeline: read and decode in parallel, assemble in order, derive, commit.

A commit covers consecutive masterchain blocks of one UTC day. Its borders depend only on the data
and the settings, so the same input produces the same files.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.assemble.batch import Batch, Hole, Piece, join_tables, split_by_day
from tonlake.ingest.assemble.chain import (
    Borders,
    LakeChain,
    check_origin,
    keep_border,
    list_heads,
    read_chain,
)
from tonlake.ingest.assemble.chunk import NOT_YET, VersionRegistry
from tonlake.ingest.assemble.statecell import (
    CellFinder,
    CurrencyRegistry,
    LibraryRegistry,
    complete_states,
)
from tonlake.ingest.blocks import BlockSource, McBundle, McHead
from tonlake.ingest.decode.block.block import decode_bundles
from tonlake.ingest.decode.rows import keep_first_cells
from tonlake.ingest.decode.wholestate import decode_zero_states
from tonlake.ingest.derive.action.derivation import ActionFiles
from tonlake.ingest.derive.body.derivation import derive_bodies
from tonlake.ingest.derive.contract.derivation import ContractFinder
from tonlake.ingest.derive.stages import STAGES, Step, derive_in_order, rebuild
from tonlake.ingest.derive.trace import TraceFiles
from tonlake.ingest.run.workers import Workers, read_pieces
from tonlake.ingest.settings import IngestSections, IngestSettings
from tonlake.ingest.span import Scope, Span, list_shared, missing_spans
from tonlake.ingest.spread import HERE, Spread
from tonlake.lake import schema
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.commit.commit import commit_range
from tonlake.lake.commit.delta import publish
from tonlake.lake.index.builder.compose import SegmentSource
from tonlake.lake.index.builder.plan import choose_rows, list_due, list_within
from tonlake.lake.index.builder.rebuild import (
    SEGMENT_ROWS,
    build_segment,
    commit_segments,
    rebuild_index,
)
from tonlake.lake.log.place import Place, find_newest_day, read_place
from tonlake.lake.log.ranges import Range
from tonlake.lake.log.snapshot import Lease
from tonlake.lake.log.state import Commit, DataFile, LogReader, LogState, NetworkId
from tonlake.lake.system import return_memory

_ROW_BYTES = 4_000
"""Bytes of memory per transaction while a segment of some 100,000 is built."""


STREAMED = tuple(
    table.name
    for table in (
        *(schema.BLOCKS, schema.TRANSACTIONS, schema.MESSAGES, schema.ACCOUNT_STATES),
        *(schema.TRANSACTION_TRACES, schema.TRACES, schema.JETTON_WALLETS, schema.ACTIONS),
    )
)
"""Tables that streams of events read."""


class Indexing:
    """Builds the segments of a growing lake: ``advance`` after commits, ``finish`` at the end."""

    def __init__(
        self, lake_dir: Path, settings: IngestSettings, spread: Spread | None = None
    ) -> None:
        """Build nothing yet; ``spread`` are the processes that build segments."""
        self._easy_rows = settings.commit_bytes // _ROW_BYTES
        self._lake_dir, self._spread = lake_dir, spread or HERE
        self._log = LogReader(lake_dir)
        self._ahead: dict[Range, int] = {}
        self._building: list[tuple[LogState, Future[DataFile]]] = []

    def advance(self) -> None:
        """Start building the segments that are due, after committing those started before."""
        due = list_due(self._log.read(), self._ahead, SEGMENT_ROWS, self._easy_rows)
        if not due:
            return
        return_memory()
        self._name()
        state = self._log.read()
        for mc_range in due:
            order = SegmentSource(self._lake_dir, list_within(state, mc_range), mc_range)
            self._building.append((state, self._spread.submit(build_segment, order)))
        self._ahead = due

    def finish(self) -> None:
        """Commit the segments started before, and index the remaining blocks."""
        self._name()
        before = sum(each.rows for each in self._log.find().segments)
        rows = choose_rows(before, SEGMENT_ROWS, self._easy_rows)
        rebuild_index(self._lake_dir, max_rows=rows, run=self._spread.map)

    def _name(self) -> None:
        built = [(state, task.result()) for state, task in self._building]
        if built:
            commit_segments(self._log, built[0][0], [segment for _, segment in built])
        self._building, self._ahead = [], {}


class IngestReport(msgspec.Struct):
    """Report of a run: committed spans, spans already in the lake, holes, rows by table."""

    requested: str
    committed: list[str] = []
    skipped: list[str] = []
    holes: list[Hole] = []
    commits: int = 0
    rows: dict[str, int] = {}
    stopped_at: int | None = None
    stop_reason: str | None = None
    lacks_zero_state: bool = False


class Progress(msgspec.Struct, frozen=True):
    """Progress of a run: masterchain blocks done and in all, and transactions so far."""

    mc_blocks: int
    mc_blocks_total: int
    transactions: int


def ingest(
    source: BlockSource,
    lake_dir: Path,
    requested: Span,
    settings: IngestSections,
    on_progress: Callable[[Progress], None] | None = None,
    *,
    workers: Workers | None = None,
) -> IngestReport:
    """Ingest the masterchain blocks of ``requested`` that are not in the lake.

    A block that is pruned, was never stored or is corrupt becomes a hole in the report; a block
    that is not available yet ends the ingest. Without ``workers`` all work is done in this
    process.
    """

    def publish_and_show(progress: Progress) -> None:
        publish(pipeline.log, settings.lake)
        if on_progress is not None:
            on_progress(progress)

    with closing(Pipeline(source, lake_dir, settings, workers=workers)) as pipeline:
        return pipeline.bring(requested, publish_and_show)


class Pipeline:
    """Ingests spans of one source into one lake; keeps caches from span to span."""

    def __init__(
        self,
        source: BlockSource,
        lake_dir: Path,
        settings: IngestSections,
        *,
        workers: Workers | None = None,
        log: LogReader | None = None,
    ) -> None:
        """Read only zero states; ``log`` is a reader of the lake's log, if there is one."""
        self.source = source
        self.lake_dir = lake_dir
        self.settings = settings
        self.workers = workers
        self.log = log or LogReader(lake_dir)
        self.cells = cells = CellFinder(lake_dir, settings, self.log)
        self.currencies = CurrencyRegistry(cells)
        self.libraries = LibraryRegistry(lake_dir, settings.lake, cells)
        self.contracts = (
            ContractFinder(lake_dir, settings, cells) if settings.ingest.detect_contracts else None
        )
        self.traces = TraceFiles(lake_dir, workers or HERE)
        self.versions = VersionRegistry(source, self.log)
        self.zero_states = source.zero_states()
        self.newest: McHead | None = None
        self.pack_rows = 0
        """Commits of tables with at most this many rows each become one file; see ``DataFile``."""
        self._borders: Borders = {}
        self.chain = LakeChain([], {})
        self.on_progress: Callable[[Progress], None] | None = None
        self.done = 0
        self.total = 0
        self.report = IngestReport("")
        self._stop_at_hole = False

    def close(self) -> None:
        """Stop processes of the run, and close the lake."""
        self.cells.close()
        if self.contracts is not None:
            self.contracts.close()

    def bring(
        self,
        requested: Span,
        on_progress: Callable[[Progress], None] | None = None,
        *,
        stop_at_hole: bool = False,
    ) -> IngestReport:
        """Like ``ingest``; with ``stop_at_hole`` any unavailable block ends the ingest."""
        self._stop_at_hole = stop_at_hole
        self.on_progress = on_progress
        self.chain = read_chain(self.log, requested, self._borders)
        self.done = 0
        todo = list(missing_spans(requested, self.chain.covered))
        self.total = sum(map(len, todo))
        shared = list_shared(requested, self.chain.covered)
        self.report = IngestReport(str(requested), skipped=shared)
        if shared:
            check_origin(self.source, self.lake_dir, self.log.read(), requested)
        for span in todo:
            self._bring_span(span)
            if self.report.stopped_at is not None:
                break
        if todo and self.report.committed:
            later = [span for span in self.chain.covered if span.first > todo[0].first]
            if later:
                last = max(todo[-1].last, *(span.last for span in later))
                self._derive_later([Span(min(later).first, last)])
        return self.report

    def _derive_later(self, later: list[Span]) -> None:
        """Derive again the rows after a range of this run, which could not take it into account.

        Those of this run itself are among them: they follow rows that are derived only now.
        """
        completed = complete_states(self.lake_dir, self.settings.lake, self.cells, later)
        if self.contracts is None:
            return
        if completed is not None:  # cached contracts are outdated
            self.contracts.close()
            self.contracts = ContractFinder(self.lake_dir, self.settings, self.cells)
        scope = Scope(within=later)
        for stage in (each for each in STAGES if each.follows_earlier):
            if not rebuild(stage.name, self.lake_dir, self.settings, scope):
                break  # the input of later stages is unchanged

    def _bring_span(self, span: Span) -> None:
        batch = Batch(self.settings.ingest)
        for outcome in (item for chunk in self._read(span) for item in chunk):
            if isinstance(outcome, Hole):
                if outcome.kind == NOT_YET:
                    self.report.stopped_at = outcome.mc_seqno
                    self.report.stop_reason = outcome.reason
                    break
                self._flush(batch)
                self.report.holes.append(outcome)
                self.done += 1
                self._show_progress()
                if self._stop_at_hole:
                    self.report.stopped_at = outcome.mc_seqno
                    break
                continue
            for piece in split_by_day(outcome):
                if not batch.add(piece):
                    self._flush(batch)
                    batch.add(piece)
        self._flush(batch)

    def _read(self, span: Span) -> Iterator[list[Piece | Hole]]:
        if self.workers is not None:
            return self.workers.read(span, self.settings.ingest)
        return read_pieces(self.source, span, self.settings.ingest, self.versions)

    def _flush(self, batch: Batch) -> None:
        if not batch:
            return
        first, last = batch.pieces[0].first, batch.pieces[-1].last
        tables = join_tables(batch.pieces)
        self.chain.extend(tables["blocks"], Span(first, last))
        if first == 1 and self.zero_states:
            zero = decode_zero_states(self.zero_states)
            tables |= {name: pa.concat_tables([rows, tables[name]]) for name, rows in zero.items()}
        spread, cells = self.workers or HERE, tables["state_cells"]
        if cells.column("hash").num_chunks > 1:  # of blocks decoded at once, cells occur once
            tables["state_cells"] = spread.submit(keep_first_cells, cells).result()
        tables["account_states"] = self.currencies.complete(tables)
        tables["libraries"] = self.libraries.complete(tables, first, last)
        commit = commit_range(
            self.lake_dir,
            tables,
            first_mc_seqno=first,
            last_mc_seqno=last,
            day=batch.day,
            source=self.source.describe(),
            network=self._network(tables["blocks"]),
            settings=self.settings.lake,
            derive=derive_in_order(self._list_steps(), at_once=self.workers is not None),
            log=self.log,
            submit=self.workers.submit if self.workers else None,
            pack_rows=self.pack_rows,
        )
        self._learn(tables, commit)
        self.report.commits += 1
        self.report.committed.append(str(Span(first, last)))
        self.report.lacks_zero_state |= first == 1 and not commit.zero_state
        for name, rows in tables.items():
            self.report.rows[name] = self.report.rows.get(name, 0) + rows.num_rows
        self.done += last - first + 1
        batch.clear()
        del tables, rows, cells
        self._show_progress()  # which may build an index segment

    def _learn(self, tables: dict[str, pa.Table], commit: Commit) -> None:
        """Cache what the next commits are likely to look up."""
        self.traces.learn(commit)
        if self.contracts is not None and self.workers is None:  # workers seldom look up a cell
            self.cells.learn(tables["state_cells"], commit)
            self.contracts.learn(commit)
        self.newest = list_heads(tables["blocks"])[commit.last_mc_seqno]
        for file in commit.added:
            if file.table == "blocks":
                keep_border(self._borders, file.path, read_place(file.path), self.chain.links)

    def derive_ahead(self, bundle: McBundle) -> dict[str, pa.Table]:
        """Return rows of ``STREAMED`` tables of blocks as if committed next, if they have any."""
        tables = decode_bundles((self.versions.attach(bundle),))
        if not tables[schema.TRANSACTIONS.name].num_rows:
            return {}
        tables["account_states"] = CurrencyRegistry(self.cells).complete(tables)
        rows = {name: table for name, table in tables.items() if table.num_rows}
        state = self.log.read()
        place = Place(bundle.mc_seqno, bundle.mc_seqno, find_newest_day(state))
        steps = self._list_steps()
        del steps["bodies"]
        with (
            Lease(self.lake_dir, state.number),
            nullcontext() if self.contracts is None else self.contracts.set_apart(),
        ):
            for derived in derive_in_order(steps)(state, dict(rows), place):
                rows |= {file.table: file.rows for file in derived.files if file.place == place}
        return {name: rows[name] for name in STREAMED if name in rows}

    def _list_steps(self) -> dict[str, Step]:
        spread = self.workers or HERE
        bodies = partial(derive_bodies, spread=spread)
        steps: dict[str, Step] = {"traces": self.traces, "bodies": bodies}
        if self.contracts is not None:
            self.contracts.spread = spread
            steps["contracts"] = self.contracts
        if self.settings.ingest.classify_actions:
            steps["actions"] = ActionFiles(self.lake_dir, self.settings.lake, spread)
        return steps

    def _network(self, blocks: pa.Table) -> NetworkId:
        global_id = blocks["global_id"][0].as_py()
        for state in self.zero_states:
            if state.workchain == MASTERCHAIN:
                return NetworkId(global_id, state.root_hash.hex(), state.file_hash.hex())
        is_first = pc.and_(pc.equal(blocks["workchain"], MASTERCHAIN), pc.equal(blocks["seqno"], 1))
        first = blocks.filter(is_first)
        if first.num_rows:
            root, file = (first[name][0].as_py() for name in ("prev_root_hash", "prev_file_hash"))
            if root is not None and file is not None:
                return NetworkId(global_id, root.hex(), file.hex())
        return NetworkId(global_id)

    def _show_progress(self) -> None:
        if self.on_progress is not None:
            transactions = self.report.rows.get("transactions", 0)
            self.on_progress(Progress(self.done, self.total, transactions))
