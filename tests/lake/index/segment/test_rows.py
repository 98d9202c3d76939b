"""Rows and keys of a segment are read as they were written."""

import io
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.index.page import has_row
from tonlake.lake.index.segment import rows as module
from tonlake.lake.index.segment.file import SegmentFile, SegmentWriter
from tonlake.lake.index.segment.segment import Postings, write_postings

HASH = pa.binary(32)
HASHES = st.integers(0, 40).map(lambda number: number.to_bytes(2) * 16)


def close(writer: SegmentWriter) -> SegmentFile:
    stream = io.BytesIO()
    writer.write(stream, (3, 9))
    file = SegmentFile(stream.getvalue(), "made")
    assert file.mc_range == (3, 9)
    return file


PARTS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from((0, 4))), min_size=1, max_size=5)


@given(st.lists(st.none() | PARTS, max_size=3 * module.TOGETHER), st.booleans())
def test_bags_are_read_as_they_were_written(drawn: list[Any], packed: bool) -> None:  # noqa: FBT001
    rows = range(len(drawn))
    hashes = [(row % 9).to_bytes(4) * 8 for row in rows]
    moved = [{by: (int.from_bytes(each) << by).to_bytes(33) for by in (0, 4)} for each in hashes]
    bags = [p and b"".join(moved[max(at - n, 0)][by] for n, by in p) for at, p in enumerate(drawn)]
    writer, values = SegmentWriter(), pa.array(hashes, HASH)
    numbers = dict.fromkeys(("account.transaction", "transactions.state"), pa.array(rows, "u4"))
    writer.arrays |= numbers | {"hash": values, "dictionary": pa.array([], pa.uint8())}
    with mock.patch.object(module, "_MIN_BYTES", 1_000):
        module.write_bags(
            writer,
            pa.array(bags, pa.large_binary()),
            pa.array(rows),
            (values, values),
            packed=packed,
        )
    file = close(writer)
    held = module.SegmentBags(file, module.SegmentRows(file), file.numbers("transactions.state"))
    assert held.read([*rows, *rows[::-1]]) == bags + bags[::-1]


@given(
    st.lists(
        st.tuples(
            st.none() | HASHES,
            st.integers(-(1 << 63), (1 << 63) - 1),
            st.none() | st.integers(0, (1 << 120) - 1),
            st.lists(HASHES, max_size=3),
            st.text(max_size=9),
        ),
        max_size=60,
    ),
    st.booleans(),
)
def test_rows_are_read_as_they_were_written(rows: list[tuple[Any, ...]], packed: bool) -> None:  # noqa: FBT001
    kinds = (HASH, pa.int64(), pa.decimal128(38, 0), pa.list_(HASH), pa.string())
    names = tuple("abcde")
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    table = pa.table(
        [pa.array(list(column), kind) for column, kind in zip(columns, kinds, strict=True)], names
    )
    writer, pool = SegmentWriter(), module.Pool()
    first = pa.table([pa.array([bytes(32)], HASH)], ["first"])
    copies = module.encode_rows(module.list_columns(pool.number([first, table])[1], names))
    with mock.patch.object(module, "_MIN_BYTES", 1_000), mock.patch.object(module, "_SAMPLES", 8):
        many = [b"as if it were a row %d" % at for at in range(2_000)]
        module.write_rows(writer, {"t": copies, "more": many if packed else []}, packed=packed)
    writer.add(module.HASHES, pool.values)
    file = close(writer)
    held = module.SegmentRows(file)
    found = list(held.read(*file.rows("t.rows"), range(len(rows))))
    held.fill(found, (0,))
    module.read_amounts(found, (2,))
    for values in found:
        values[3] = list(map(held.hash_of, values[3]))
    assert [tuple(values) for values in found] == rows
    assert held.hash_of(0) == bytes(32)


@given(st.lists(st.none() | HASHES, max_size=80), st.lists(st.none() | st.integers(-9, 9)))
def test_postings_find_the_rows_of_each_value(
    hashes: list[bytes | None], numbers: list[int | None]
) -> None:
    writer = SegmentWriter()
    for name, kind, values in (("h", HASH, hashes), ("n", pa.int32(), numbers)):
        write_postings(writer, name, pa.array(values, kind), pa.array(range(len(values))))
    file = close(writer)
    for name, values in (("h", hashes), ("n", numbers)):
        postings = Postings(file, name)
        for value in {*values, *([bytes(32)] if name == "h" else [77])} - {None}:
            wanted = [row for row, each in enumerate(values) if each == value]
            assert list(postings.find(value)) == wanted


@given(st.lists(st.sets(st.integers(0, 20)), min_size=1, max_size=3), st.integers(0, 20))
def test_rows_that_all_lists_have(lists: list[set[int]], row: int) -> None:
    assert has_row(map(sorted, lists), row) == all(row in each for each in lists)


def test_a_missing_array_is_named() -> None:
    with pytest.raises(LakeCorrupt, match="it lacks the array x"):
        close(SegmentWriter()).numbers("x")
