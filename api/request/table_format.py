"""Writes rows in the format that a client requests: JSON, CSV, Arrow stream or Parquet.

The list of a response is flattened into a table. Columns follow from the type of the list's items,
so an empty page has them too. A field of a nested object is ``outer.inner``; lists and objects
without fixed fields are JSON text; numbers that are text in JSON, such as amounts and logical
times, stay text.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
from msgspec import inspect

from tonlake.lake.duck.answer import write_csv, write_parquet

JSON, CSV, ARROW, PARQUET = "json", "csv", "arrow", "parquet"

MEDIA_TYPES = {
    JSON: "application/json",
    CSV: "text/csv",
    ARROW: "application/vnd.apache.arrow.stream",
    PARQUET: "application/vnd.apache.parquet",
}
"""Content-Type of each format."""

_WEIGHT = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")
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
    best, best_weight = None, 0.0
    if accept in ("", "*/*"):  # those of almost every API client
        return best
    for media, weight in read_weights(accept):
        if media in _ACCEPTED and weight > best_weight:
            best, best_weight = _ACCEPTED[media], weight
    return best


def read_accept(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return what a request accepts: repeated headers are one list (RFC 9110, 5.3)."""
    return ",".join(value.decode("latin-1") for name, value in headers if name == b"accept")


def read_weights(accepted: str) -> Iterator[tuple[str, float]]:
    """Yield what an Accept header lists, in lower case, with the weights; an invalid one is 0."""
    for part in accepted.lower().split(","):
        name, *options = (piece.strip() for piece in part.split(";"))
        text = next((each[2:].strip() for each in options if each.startswith("q=")), "1")
        yield name, float(text) if _WEIGHT.fullmatch(text) else 0.0


def write_csv_text(batches: pa.RecordBatchReader) -> bytes:
    """Return CSV with a header; NULL is an empty field, bytes are hex, nested values JSON."""
    stream = io.StringIO()
    write_csv(batches, stream)
    return stream.getvalue().encode()


def write_safe_csv_text(batches: pa.RecordBatchReader) -> bytes:
    """Return CSV like ``write_csv_text``, with ``'`` before text that looks like a formula."""
    table = batches.read_all()
    texts = (pa.string(), pa.large_string())
    columns = [
        pc.replace_substring_regex(column, _FORMULA, r"'\1") if column.type in texts else column
        for column in table.columns
    ]
    names = [mark_formula(name) for name in table.column_names]
    return write_csv_text(pa.Table.from_arrays(columns, names=names).to_reader())


def mark_formula(text: str) -> str:
    """Return text with ``'`` in front if a spreadsheet would run it as a formula."""
    return _FORMULA_START.sub(r"'\1", text)


_FORMULA = r"\A([=+\-@\t\r])"
_FORMULA_START = re.compile(_FORMULA)


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


_SCALARS: dict[type[inspect.Type], pa.DataType] = {
    inspect.StrType: pa.string(),
    inspect.IntType: pa.int64(),
    inspect.FloatType: pa.float64(),
    inspect.BoolType: pa.bool_(),
}


class Leaf(msgspec.Struct, frozen=True):
    """A column: the path of fields that leads to it, and its type; None for JSON text."""

    path: tuple[str, ...]
    type: pa.DataType | None

    @property
    def name(self) -> str:
        """Name of the column."""
        return ".".join(self.path)


def list_rows(answer: object) -> list[Any] | None:
    """Return the list in a response: itself, or its first field of structs; None without."""
    return _take_list(answer)[0]


def has_list(kind: type) -> bool:
    """Return whether responses of a type have a list that ``tabulate`` can flatten."""
    return issubclass(kind, msgspec.Struct) and _find_list(kind) is not None


def tabulate(answer: object) -> pa.Table | None:
    """Return the list of a response as a table; None if it has no list."""
    rows, item = _take_list(answer)
    if item is None:
        return None
    leaves = list_leaves(item)
    # Some items are already JSON, so all items are parsed from the JSON that would be sent.
    plain = msgspec.json.decode(msgspec.json.encode(rows))
    columns = [pa.array(_pick(plain, leaf), leaf.type or pa.string()) for leaf in leaves]
    return pa.table(columns, names=[leaf.name for leaf in leaves])


def _take_list(answer: object) -> tuple[list[Any] | None, type[msgspec.Struct] | None]:
    """Return the list in a response, and the struct of its items; None for what it lacks."""
    if isinstance(answer, list):
        return answer, type(answer[0]) if answer and isinstance(answer[0], msgspec.Struct) else None
    found = _find_list(type(answer)) if isinstance(answer, msgspec.Struct) else None
    return (None, None) if found is None else (getattr(answer, found[0]), found[1])


@cache
def list_leaves(item: type[msgspec.Struct]) -> tuple[Leaf, ...]:
    """Return the columns of a struct's fields."""
    return tuple(_walk(inspect.type_info(item), (), ()))


def _walk(kind: inspect.Type, path: tuple[str, ...], above: tuple[type, ...]) -> Iterator[Leaf]:
    known = _strip(kind)
    if isinstance(known, inspect.StructType) and known.cls not in above:
        for field in known.fields:
            yield from _walk(field.type, (*path, field.encode_name), (*above, known.cls))
        return
    yield Leaf(path, None if known is None else _SCALARS.get(type(known)))


def _strip(kind: inspect.Type) -> inspect.Type | None:
    """Return the type of an optional value; None if it has several types."""
    if isinstance(kind, inspect.Metadata):
        return _strip(kind.type)
    if not isinstance(kind, inspect.UnionType):
        return kind
    found = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
    return _strip(found[0]) if len(found) == 1 else None


def _pick(rows: Sequence[Any], leaf: Leaf) -> Iterable[Any]:
    for row in rows:
        value = row
        for name in leaf.path:
            value = value.get(name) if isinstance(value, dict) else None
        if leaf.type is None and value is not None and not isinstance(value, str):
            yield msgspec.json.encode(value).decode()
        else:
            yield value


@cache
def _find_list(kind: type[msgspec.Struct]) -> tuple[str, type[msgspec.Struct]] | None:
    """Return the name and the struct of the first field that is a list of structs."""
    info = inspect.type_info(kind)
    for field in info.fields if isinstance(info, inspect.StructType) else ():
        known = _strip(field.type)
        item = _strip(known.item_type) if isinstance(known, inspect.ListType) else None
        if isinstance(item, inspect.StructType):
            return field.name, item.cls
    return None
