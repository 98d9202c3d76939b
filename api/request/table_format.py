"""Writes rows in the format that a client requests: JSON, CSV, Arrow stream or Parquet."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.params import Arguments, ConversionError, parse_bool
from tonlake.lake.duck.answer import write_csv, write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable

JSON, CSV, ARROW, PARQUET = "json", "csv", "arrow", "parquet"

MEDIA_TYPES = {
    JSON: "application/json",
    CSV: "text/csv",
    ARROW: "application/vnd.apache.arrow.stream",
    PARQUET: "application/vnd.apache.parquet",
}
"""Content-Type of each format."""

HTML = "html"
SAFE_CSV = "csv_safe"
"""CSV without text that a spreadsheet would run as a formula; also the parameter for it."""

_ACCEPTED = {
    "application/json": JSON,
    "text/json": JSON,
    "text/csv": CSV,
    "application/csv": CSV,
    "application/vnd.apache.arrow.stream": ARROW,
    "application/x-apache-arrow-stream": ARROW,
    "application/vnd.apache.parquet": PARQUET,
    "application/x-parquet": PARQUET,
    "text/html": HTML,
}


def choose_format(accept: str) -> str | None:
    """Return the known format that an Accept header prefers; None if it accepts none.

    Among equal weights the first one wins; ``q=0`` excludes a format.
    """
    return None if accept in _ANYTHING else _weigh(accept)


_ANYTHING = ("", "*/*")
"""The Accept headers of almost every API client."""


def name_media_type(form: str) -> str:
    """Return the Content-Type of a format."""
    return MEDIA_TYPES[CSV if form == SAFE_CSV else form]


def refine_format(form: str, arguments: Arguments) -> str:
    """Return the format as refined by parameters: CSV that is safe in spreadsheets.

    Raises:
        RequestInvalid: the parameter is not a boolean.
    """
    text = arguments.last(SAFE_CSV)
    if form != CSV or text is None:
        return form
    try:
        return SAFE_CSV if parse_bool(text) else form
    except ConversionError as error:
        raise RequestInvalid('schema: error converting value for "csv_safe"') from error


def _weigh(accept: str) -> str | None:
    best, best_weight = None, 0.0
    for part in accept.split(","):
        media, *options = (piece.strip().lower() for piece in part.split(";"))
        weight = _read_weight(options)
        if media in _ACCEPTED and weight > best_weight:
            best, best_weight = _ACCEPTED[media], weight
    return best


def _read_weight(options: list[str]) -> float:
    text = next((each[2:] for each in options if each.startswith("q=")), "1")
    try:
        return min(float(text), 1.0)
    except ValueError:
        return 0.0


def write_csv_text(batches: pa.RecordBatchReader) -> bytes:
    """Return CSV with a header; NULL is an empty field, bytes are hex, nested values JSON."""
    stream = io.StringIO()
    write_csv(batches, stream)
    return stream.getvalue().encode()


def write_safe_csv_text(batches: pa.RecordBatchReader) -> bytes:
    """Return CSV like ``write_csv_text``, with ``'`` before text that looks like a formula."""
    table = batches.read_all()
    columns = [
        pc.replace_substring_regex(column, _FORMULA, r"'\1") if _is_text(column.type) else column
        for column in table.columns
    ]
    names = [mark_formula(name) for name in table.column_names]
    return write_csv_text(pa.Table.from_arrays(columns, names=names).to_reader())


def mark_formula(text: str) -> str:
    """Return text with ``'`` in front if a spreadsheet would run it as a formula."""
    return _FORMULA_START.sub(r"'\1", text)


_FORMULA = r"\A([=+\-@\t\r])"
_FORMULA_START = re.compile(_FORMULA)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def write_arrow_stream(batches: pa.RecordBatchReader) -> bytes:
    """Return an Arrow IPC stream."""
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, batches.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return stream.getvalue()


def write_parquet_file(batches: pa.RecordBatchReader) -> bytes:
    """Return a Parquet file."""
    stream = io.BytesIO()
    write_parquet(batches, stream)
    return stream.getvalue()


WRITERS: dict[str, Callable[[pa.RecordBatchReader], bytes]] = {
    CSV: write_csv_text,
    SAFE_CSV: write_safe_csv_text,
    ARROW: write_arrow_stream,
    PARQUET: write_parquet_file,
}
"""Writers by format; JSON is written by the callers, which add the object around the rows."""
