"""What a worker of Spark does: masterchain blocks of a range into rows, as Arrow in Arrow.

A piece of decoding work has rows of twenty tables, and what Spark carries has one schema; so each
table travels as one value: an Arrow stream.
"""

from __future__ import annotations

from contextlib import closing
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tonlake.ingest.assemble.chunk import explain_hole, read_chunks
from tonlake.ingest.assemble.version import VersionRegistry
from tonlake.ingest.decode.parallel import Hole, Piece, decode_chunk
from tonlake.ingest.span import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tonlake.ingest.settings import IngestSections
    from tonlake.ingest.source.origin import Origin

SCHEMA = pa.schema(
    [
        pa.field("first", pa.int64(), nullable=False),
        pa.field("last", pa.int64(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("rows", pa.binary()),
        pa.field("reason", pa.string()),
    ]
)
"""A table of a piece: its name and its rows; or a hole: its kind and its reason."""

SPARK_SCHEMA = "first bigint, last bigint, name string, rows binary, reason string"
"""The same for Spark."""

_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")


def make_decoder(
    origin: Origin, settings: IngestSections
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for ``mapInArrow``: from spans (``first``, ``last``) to their rows."""

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spans = [Span(**row) for batch in batches for row in batch.to_pylist()]
        if not spans:
            return
        with closing(origin.open(settings)) as source:
            versions = VersionRegistry(source)
            for span in spans:
                for chunk in read_chunks(source, span, settings.ingest, versions):
                    outcomes = [chunk] if isinstance(chunk, Hole) else decode_chunk(chunk)
                    for outcome in outcomes:
                        if isinstance(outcome, Hole):
                            yield pack_outcome(explain_hole(source, outcome))
                        else:
                            yield pack_outcome(outcome)

    return decode


def pack_outcome(outcome: Piece | Hole) -> pa.RecordBatch:
    """Return a piece or a hole in the form that Spark carries."""
    if isinstance(outcome, Hole):
        at = outcome.mc_seqno
        rows: list[tuple[Any, ...]] = [(at, at, outcome.kind, None, outcome.reason)]
    else:
        rows = [
            (outcome.first, outcome.last, name, _pack(table), None)
            for name, table in outcome.tables.items()
        ]
    columns = zip(*rows, strict=True)
    arrays = [
        pa.array(values, type=kind) for values, kind in zip(columns, SCHEMA.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def unpack_outcomes(table: pa.Table) -> Iterator[Piece | Hole]:
    """Yield what ``pack_outcome`` packed, by masterchain block."""
    rows = sorted(table.to_pylist(), key=lambda row: row["first"])
    for first, group in groupby(rows, key=lambda row: row["first"]):
        members = list(group)
        if members[0]["rows"] is None:
            yield Hole(first, members[0]["name"], members[0]["reason"])
            continue
        tables = {row["name"]: pa.ipc.open_stream(row["rows"]).read_all() for row in members}
        yield Piece(first, members[0]["last"], tables)


def _pack(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed
