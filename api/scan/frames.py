"""Serialises batches of a scan as an Arrow stream, Parquet, NDJSON or CSV."""

import io
from collections.abc import Callable

import msgspec
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from tonlake.api.request.table_format import ARROW, CSV, MEDIA_TYPES, PARQUET, write_csv_text
from tonlake.lake.duck.answer import ENCODER, plain_rows

NDJSON = "ndjson"
SCAN_TYPES = {
    ARROW: MEDIA_TYPES[ARROW],
    PARQUET: MEDIA_TYPES[PARQUET],
    NDJSON: "application/x-ndjson",
    CSV: MEDIA_TYPES[CSV],
}
"""Media types of scan responses by format, the default first."""

MARK = "@batch"
"""The only field of an NDJSON line that is not a row but the mark of the rows before it."""

FOOTER = b"tonlake.batch"
"""The key of the mark in a Parquet footer."""

MAX_CHUNKS = 16
"""Maximum record batches written for one batch; beyond that, rows are copied into one."""


class BatchMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """Metadata of a batch: cursor, height, first and last undone block, misfits by table."""

    cursor: str
    height: int
    undone: tuple[int, int] | None = None
    misfits: dict[str, int] = {}


class Frames:
    """Serialises the batches of one scan; each call returns complete rows."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema, self._sink = schema, io.BytesIO()

    def begin(self) -> bytes:
        """Return the bytes before the first batch."""
        return self._take()

    def write(self, rows: pa.Table, mark: BatchMark) -> bytes:
        """Return the bytes of a batch."""
        raise NotImplementedError

    def end(self) -> bytes:
        """Return the bytes after the last batch."""
        return b""

    def _take(self) -> bytes:
        """Return what was written to the sink since the last call."""
        data = self._sink.getvalue()
        self._sink.seek(0)
        self._sink.truncate()
        return data


class _ArrowFrames(Frames):
    """One or more record batches per batch; the last has ``BatchMark`` as custom metadata, as text.

    ``undone`` is written ``first-last``, ``misfits`` as JSON.
    """

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        self._writer = pa.ipc.new_stream(self._sink, schema)

    def write(self, rows: pa.Table, mark: BatchMark) -> bytes:
        metadata = {"cursor": mark.cursor, "height": str(mark.height)}
        if mark.undone:
            metadata["undone"] = "-".join(map(str, mark.undone))
        if mark.misfits:
            metadata["misfits"] = msgspec.json.encode(mark.misfits).decode()
        if rows.num_columns and rows.column(0).num_chunks > MAX_CHUNKS:
            rows = rows.combine_chunks()
        parts = rows.to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
        for part in parts[:-1]:
            self._writer.write_batch(part)
        self._writer.write_batch(parts[-1], custom_metadata=metadata)
        return self._take()

    def end(self) -> bytes:
        self._writer.close()
        return self._take()


class _ParquetFrames(Frames):
    """One file per scan; its footer has the mark of the last batch."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        self._writer = pq.ParquetWriter(self._sink, schema, compression="zstd")
        self._mark: BatchMark | None = None

    def write(self, rows: pa.Table, mark: BatchMark) -> bytes:
        self._mark = mark
        if rows.num_rows:
            self._writer.write_table(rows)
        return self._take()

    def end(self) -> bytes:
        self._writer.add_key_value_metadata({FOOTER: msgspec.json.encode(self._mark)})
        self._writer.close()
        return self._take()


class _LineFrames(Frames):
    """An object per row, and after each batch one with its mark."""

    def write(self, rows: pa.Table, mark: BatchMark) -> bytes:
        plain = plain_rows(rows.to_reader())
        lines = [ENCODER.encode(dict(zip(rows.schema.names, row, strict=True))) for row in plain]
        lines.append(msgspec.json.encode({MARK: mark}))
        return b"".join(line + b"\n" for line in lines)


class _CsvFrames(Frames):
    """A header and rows, without marks, which CSV has no place for."""

    def begin(self) -> bytes:
        return write_csv_text(self._schema.empty_table().to_reader())

    def write(self, rows: pa.Table, mark: BatchMark) -> bytes:  # noqa: ARG002 - no place for it
        return write_csv_text(rows.to_reader()).partition(b"\n")[2]


FRAMES: dict[str, Callable[[pa.Schema], Frames]] = {
    ARROW: _ArrowFrames,
    PARQUET: _ParquetFrames,
    NDJSON: _LineFrames,
    CSV: _CsvFrames,
}
"""The serialiser of each format."""

MARKED = frozenset({ARROW, NDJSON})
"""Formats that can report undone blocks, and so can follow the chain."""
