"""The rows that a scan returns: of one table, or of several, in chain order.

Rows of several tables are returned as one table: each row has its masterchain block, and its
columns as a struct named after its table; the structs of the other tables are NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.scan.rows import Part, RowReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tonlake.lake.log.ranges import Range
    from tonlake.lake.scan.file import OpenFiles
    from tonlake.lake.scan.plan import Plan
    from tonlake.lake.scan.rows import Select, SnapshotFiles

HEIGHT = "mc_seqno"
"""The column with the masterchain block, in rows of several tables."""


class RowSource(Protocol):
    """The rows that a scan returns: their columns, and how they are read.

    ``held_schema`` has the column ``height``, the masterchain block of a row, in addition to the
    returned columns.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The returned columns, in order."""

    @property
    def height(self) -> str:
        """The column with the masterchain block of a row."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the returned columns."""

    @property
    def held_schema(self) -> pa.Schema:
        """The schema of the rows as they are read."""

    def read(
        self, source: SnapshotFiles, files: OpenFiles, select: Select, span: Range
    ) -> Iterator[Part]:
        """Yield the rows of masterchain blocks; the height of the last part is the last block.

        Raises:
            LakeCorrupt: a file is missing or damaged.
        """

    def take_misfits(self) -> dict[str, int]:
        """Return how many bodies read since the last call do not fit their signature.

        Counts are by the signature's table, without zeroes.
        """


class TableRows:
    """Rows of one table."""

    def __init__(self, plan: Plan) -> None:
        """Take the plan of the scan."""
        self._plan = plan
        self.columns, self.height = plan.columns, plan.height
        self.schema, self.held_schema = plan.schema, plan.held_schema

    def read(
        self, source: SnapshotFiles, files: OpenFiles, select: Select, span: Range
    ) -> Iterator[Part]:
        """Yield the rows, as ``RowSource.read``."""
        return RowReader(source, self._plan, files, select).read(span)

    def take_misfits(self) -> dict[str, int]:
        """Return nothing: the table is not defined by a signature."""
        return {}


class JointRows:
    """Rows of several tables; within a masterchain block they are in the order of the tables."""

    def __init__(self, tables: Mapping[str, RowSource]) -> None:
        """Take the tables by name, in the order of their columns."""
        self._tables = tables
        self.columns, self.height = (HEIGHT, *tables), HEIGHT
        # The struct of another table is NULL, and so are its fields.
        self._inner = {
            name: [field.with_nullable(True) for field in each.schema]  # noqa: FBT003 - pyarrow's signature
            for name, each in tables.items()
        }
        fields = [pa.field(name, pa.struct(inner)) for name, inner in self._inner.items()]
        self.schema = self.held_schema = pa.schema(
            [pa.field(HEIGHT, pa.int64(), nullable=False), *fields]
        )

    def read(
        self, source: SnapshotFiles, files: OpenFiles, select: Select, span: Range
    ) -> Iterator[Part]:
        """Yield the rows, as ``RowSource.read``, up to the block that all tables have reached."""
        streams = [
            _Stream(each, each.read(source, files, select, span), span[0] - 1)
            for each in self._tables.values()
        ]
        reached = span[0] - 1
        while reached < span[1]:
            least = min(streams, key=lambda stream: stream.height)
            if least.height == reached:
                least.advance()
                continue
            reached = least.height
            yield Part(self._join([stream.cut(reached) for stream in streams]), reached)

    def take_misfits(self) -> dict[str, int]:
        """Return the counts of all tables."""
        found: dict[str, int] = {}
        for each in self._tables.values():
            found |= each.take_misfits()
        return found

    def _join(self, found: list[pa.Table]) -> pa.Table:
        """Return rows of the tables as one table, in the order of their blocks."""
        tables = list(zip(self._tables.items(), found, strict=True))
        heights = pa.concat_arrays(
            [rows[each.height].combine_chunks().cast(pa.int64()) for (_, each), rows in tables]
        )
        order = pc.sort_indices(heights).cast(pa.int64())  # the sort is stable
        arrays, first = [heights.take(order)], 0
        for (name, each), rows in tables:
            last = first + rows.num_rows
            is_own = pc.and_(pc.greater_equal(order, first), pc.less(order, last))
            at = pc.if_else(is_own, pc.subtract(order, first), pa.scalar(None, pa.int64()))
            columns = [rows[column].combine_chunks() for column in each.columns]
            arrays.append(pa.StructArray.from_arrays(columns, fields=self._inner[name]).take(at))
            first = last
        return pa.Table.from_arrays(arrays, schema=self.schema)


class _Stream:
    """Rows of one table that were read but not returned; it was read up to ``height``."""

    def __init__(self, source: RowSource, parts: Iterator[Part], height: int) -> None:
        self.height = height
        self._source, self._parts = source, parts
        self._rows = source.held_schema.empty_table()

    def advance(self) -> None:
        """Read the next part."""
        part = next(self._parts)
        if part.rows.num_rows:
            self._rows = pa.concat_tables([self._rows, part.rows])
        self.height = part.height

    def cut(self, height: int) -> pa.Table:
        """Return the rows up to a block, and keep the rest."""
        count = pc.sum(pc.less_equal(self._rows[self._source.height], height)).as_py() or 0
        rows, self._rows = self._rows.slice(0, count), self._rows.slice(count)
        return rows
