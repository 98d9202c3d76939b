"""Rows and keys of a segment are read as they were written."""

import io
import random
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.index.page import has_row
from tonlake.lake.index.segment import rows as module
from tonlake.lake.index.segment.declared import Record
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


ONE_CELL = bytes.fromhex("b5ee9c7201010101002200004000")[:13]
FAR = st.sampled_from((0, (1 << 16) - 40, 1 << 16))
PARTS = st.lists(st.tuples(st.booleans(), st.integers(0, 40), st.integers(0, 7)), max_size=5)


def begin_at(value: bytes, bit: int) -> bytes:
    return (int.from_bytes(value) << 8 - bit).to_bytes(len(value) + 1)


def make_record(number: int) -> Record:
    value = bytes((number,)) * 32
    row = dict.fromkeys(dict(module.OF_BAG), value) | {"prev_trans_hash": None}
    line = dict.fromkeys(dict(module.OF_BAG_MESSAGE), value) | {"body": ONE_CELL + value}
    lines = [SimpleNamespace(**each) for each in (line, line | {"body": None})]
    return Record(SimpleNamespace(**row), lines[: number % 3], None, None)


def list_known(records: Iterable[Record]) -> list[list[bytes]]:
    """Return what is left out of the bags of records."""
    records = list(records)
    lines = [line for record in records for line in record.messages]
    own = {name: [getattr(each.row, name) for each in records] for name, _ in module.OF_BAG}
    ends = {name: [getattr(line, name) for line in lines] for name, _ in module.OF_BAG_MESSAGE}
    return list(module.list_known(own, ends, [len(record.messages) for record in records]))


@given(st.lists(st.none() | PARTS, max_size=3 * module.TOGETHER), st.booleans(), FAR)
def test_bags_are_read_as_they_were_written(
    drawn: list[Any],
    packed: bool,  # noqa: FBT001
    far: int,
) -> None:
    records = list(map(make_record, range(len(drawn))))
    bags = [
        None
        if parts is None
        else bytes(far * (at == 1))
        + b"".join(begin_at(bytes((at if own else n,)) * 32, bit) for own, n, bit in parts)
        for at, parts in enumerate(drawn)
    ]
    order = np.random.default_rng(1).permutation(len(drawn))
    writer = SegmentWriter()
    with mock.patch.object(module, "_MIN_BYTES", 1_000):
        module.write_bags(
            writer,
            pa.array(bags, pa.large_binary()),
            pa.array(order),
            lambda rows: list_known(records[at] for at in rows.to_pylist()),
            packed=packed,
        )
    held = module.SegmentBags(close(writer))
    places = [*range(len(drawn)), *reversed(range(len(drawn)))]
    rows = order[places].tolist()
    assert held.read(places, [records[at] for at in rows]) == [bags[at] for at in rows]


@pytest.mark.parametrize("bit", [0, 2, 3, 4, 7])
def test_what_a_row_has_of_a_bag_is_left_out(bit: int) -> None:
    value = random.Random(bit).randbytes(32)  # noqa: S311 - the same value each time
    row, line = (
        SimpleNamespace(**dict.fromkeys(dict(names), value))
        for names in (module.OF_BAG, module.OF_BAG_MESSAGE)
    )
    record = Record(row, [line], None, None)
    writer = SegmentWriter()
    bags, order = pa.array([begin_at(value, bit)], pa.large_binary()), pa.array([0])
    module.write_bags(writer, bags, order, lambda _rows: list_known([record]), packed=True)
    (frame,) = writer.arrays[module.BAGS].to_pylist()
    known = list_known([record])[0]
    assert len(frame) < len(value) + 2 * len(known)
    assert module.SegmentBags(close(writer)).read([0], [record]) == bags.to_pylist()


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
        write_postings(writer, name, pa.array(values, kind), np.arange(len(values)))
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
