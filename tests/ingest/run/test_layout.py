"""Tables by their layout: equal for any columns, with buffers in files or inline."""

import io
import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.ingest.run.process import TablePickler, TableUnpickler

KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.binary(4), st.binary(min_size=4, max_size=4)),
    (pa.binary(), st.binary()),
    (pa.string(), st.text()),
    (pa.null(), st.none()),
    (pa.list_(pa.binary(2)), st.lists(st.none() | st.binary(min_size=2, max_size=2))),
    (pa.list_(pa.string()), st.lists(st.text())),
    (pa.list_(pa.list_(pa.int32())), st.lists(st.lists(st.integers(0, 9)))),
    (pa.struct({"a": pa.int8()}), st.fixed_dictionaries({"a": st.integers(0, 9)})),
    (pa.dictionary(pa.int32(), pa.string()), st.text()),
]
COLUMNS = [st.lists(st.none() | values, max_size=12) for _kind, values in KINDS]


@st.composite
def draw_table(draw: st.DrawFn) -> pa.Table:
    """Return a table with a column of each kind, cut and joined."""
    parts = []
    for _ in range(draw(st.integers(0, 3))):
        columns = [draw(column) for column in COLUMNS]
        size = min(map(len, columns))
        arrays = [
            pa.array(column[:size], kind)
            for (kind, _values), column in zip(KINDS, columns, strict=True)
        ]
        part = pa.table(arrays, names=[str(at) for at in range(len(arrays))])
        parts.append(part.slice(draw(st.integers(0, 3)), draw(st.integers(0, 12))))
    fields = pa.schema([(str(at), kind) for at, (kind, _values) in enumerate(KINDS)])
    return pa.concat_tables([fields.empty_table(), *parts])


@given(table=draw_table(), in_file=st.booleans())
def test_tables_of_all_kinds_are_equal(table: pa.Table, *, in_file: bool) -> None:
    whole = bytearray()

    def locate(buffer: pa.Buffer) -> tuple[int, int, int] | bytes:
        if not in_file:
            return bytes(buffer)
        whole.extend(bytes(-len(whole) % 64))
        at = len(whole)
        whole.extend(buffer)
        return 0, at, buffer.size

    stream = io.BytesIO()
    TablePickler(stream, locate).dump({"table": table, "few": [table.select(["1"]), 5]})
    found = TableUnpickler(stream.getvalue(), [pa.py_buffer(bytes(whole))]).load()
    assert found == {"table": table, "few": [table.select(["1"]), 5]}
    found["table"].validate(full=True)
    assert found["table"].schema.equals(table.schema)


def test_a_table_is_read_by_its_own_reader_alone() -> None:
    stream = io.BytesIO()
    TablePickler(stream, bytes).dump(pa.table({"a": [1]}))
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(stream.getvalue())  # noqa: S301 - our own bytes
