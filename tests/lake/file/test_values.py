"""Column values equal those of pyarrow, for any number of rows."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.lake.file.values import iter_dicts, iter_tuples, list_values

HASHES = st.binary(min_size=4, max_size=4)
KINDS: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.binary(32): HASHES.map(lambda each: each * 8),
    pa.binary(4): HASHES,
    pa.binary(): st.binary(max_size=5),
    pa.int64(): st.integers(-(1 << 63), (1 << 63) - 1),
    pa.list_(pa.binary(32)): st.lists(st.none() | HASHES.map(lambda each: each * 8), max_size=3),
    pa.list_(pa.string()): st.lists(st.text(max_size=2), max_size=3),
}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(data=st.data())
def test_values_are_those_of_arrow(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | KINDS[kind], max_size=40))
    cut, start = data.draw(st.integers(0, 40)), data.draw(st.integers(0, 20))
    column = pa.chunked_array([values[:cut], values[cut:]], type=kind).slice(start)
    assert list_values(column) == values[start:]
    assert list_values(pa.array(values, kind).slice(start)) == values[start:]


def test_rows_are_those_of_arrow() -> None:
    rows = pa.table({"a": [bytes([each]) for each in range(40)], "b": list(range(40))})
    rows = rows.cast(pa.schema({"a": pa.binary(1), "b": pa.int64()}))
    assert list(iter_dicts(rows)) == rows.to_pylist()
    assert list(iter_tuples(rows, ("b", "a"))) == [(each, bytes([each])) for each in range(40)]
    assert list(iter_dicts(rows.slice(0, 0))) == []
