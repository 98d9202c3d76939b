"""Ingests days of the public data set into a lake, with the derivations of every other source."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from datetime import date
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow.compute as pc

from tonlake.ingest.dataset.day import Day
from tonlake.ingest.dataset.files import DataSet
from tonlake.ingest.decode.block.header import find_child, find_parent
from tonlake.ingest.decode.piece import Hole, Piece
from tonlake.ingest.decode.rows import Row
from tonlake.ingest.run.pipeline import IngestReport, Pipeline, Progress
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.span import Span
from tonlake.lake.commit.delta import publish
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.disk import make_folder
from tonlake.lake.log.place import list_files_between
from tonlake.lake.log.state import LOG_FOLDER, LogState
from tonlake.lake.schema import BLOCKS, CONFIG_PARAMS, SHARD_BLOCKS

_MASK = (1 << 64) - 1

Shard = tuple[int, int]
"""Workchain, and shard as a signed integer."""


class Top(NamedTuple):
    """The newest known block of a shard, with the columns of ``shard_blocks``."""

    workchain: int
    shard: int
    seqno: int
    root_hash: bytes
    file_hash: bytes
    start_lt: int
    end_lt: int
    gen_utime: int


class Tops:
    """The newest block of every shard as of the last masterchain block that was added."""

    def __init__(self) -> None:
        self._last = 0
        self._tops: dict[Shard, Top] = {}

    def read(self, lake_dir: Path, state: LogState, mc_seqno: int) -> None:
        """Continue after a masterchain block of the lake, if the lake has it."""
        if mc_seqno == self._last:
            return
        self._last, self._tops = mc_seqno, {}
        is_then = pc.field("mc_seqno") == mc_seqno
        for file in list_files_between(state, mc_seqno, mc_seqno, SHARD_BLOCKS.name):
            for row in read_rows(lake_dir, file, Top._fields, is_then).to_pylist():
                self._tops[row["workchain"], row["shard"]] = Top(**row)

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
        tops = [(mc_seqno, *top) for _shard, top in sorted(self._tops.items())]
        return rows, tops

    def _replace(self, block: Mapping[str, Any]) -> dict[str, Any]:
        """Make a block the top of its shard; return the columns about those before it."""
        workchain, shard = block["workchain"], block["shard"]
        parents = [shard]
        if block["after_merge"]:
            parents = [find_child(shard, right=right) for right in (False, True)]
        elif block["after_split"]:
            parents = [find_parent(shard)]
        found: dict[str, Any] = {}
        for prefix, parent in zip(("prev", "prev2"), parents, strict=False):
            top = self._tops.get((workchain, parent))
            is_exact = not block["after_merge"]
            if top is not None and (
                top.seqno >= block["seqno"] or (is_exact and top.seqno != block["seqno"] - 1)
            ):
                raise ValueError(
                    f"block ({workchain},{shard & _MASK:016x},{block['seqno']}) follows block"
                    f" {top.seqno} of its shard: blocks between them are missing"
                )
            found |= {
                f"{prefix}_shard": parent,
                f"{prefix}_seqno": top.seqno if top else block["seqno"] - 1 if is_exact else None,
                f"{prefix}_root_hash": top and top.root_hash,
                f"{prefix}_file_hash": top and top.file_hash,
            }
        # After a split the parent stays until both children have a block.
        others = (find_child(find_parent(shard), right=right) for right in (False, True))
        if not block["after_split"] or all(
            other == shard or (workchain, other) in self._tops for other in others
        ):
            for parent in parents:
                self._tops.pop((workchain, parent), None)
        self._tops[workchain, shard] = Top(*(block[name] for name in Top._fields))
        return found


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
        self._tops = Tops()

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
