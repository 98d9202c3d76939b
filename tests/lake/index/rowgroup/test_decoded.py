"""The extension finds and reads the same rows as Arrow, for every column type."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.lake.index.rowgroup.decoded import Decoded
from tonlake.lake.index.rowgroup.predicate import AnyOf, Bounds
from tonlake.lake.index.segment.native import NATIVE
from tonlake.lake.schema.column import ARROW_TYPES

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the extension is not built")

HASHES = st.one_of(
    st.binary(min_size=32, max_size=32), st.sampled_from((bytes(32), b"\xff" + bytes(31)))
)
TEXTS = st.text(max_size=3)


def integers(bits: int) -> st.SearchStrategy[int]:
    limit = 1 << bits - 1
    return st.one_of(st.integers(-limit, limit - 1), st.integers(-3, 3))


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": integers(8),
    "int32": integers(32),
    "int64": integers(64),
    "ints": st.lists(integers(32), max_size=3),
    "hash": HASHES,
    "hashes": st.lists(HASHES, max_size=3),
    "bytes": st.binary(max_size=3),
    "text": TEXTS,
    "texts": st.lists(TEXTS, max_size=3),
    "json": TEXTS,
    "amount": st.decimals(0, 10**20, places=0),
    "time": st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001 - as stored
    "date": st.dates(date(2020, 1, 1), date(2030, 1, 1)),
    "double": st.floats(allow_nan=False),
    "scaled": st.decimals(0, 10**9, places=9),
}
COMPARED = ("bool", "int8", "int32", "int64", "hash", "bytes", "text")


def make_rows(data: st.DataObject, name: str) -> pa.Table:
    """Draw a column, sometimes as a slice with further rows before and after."""
    column = pa.array(
        data.draw(st.lists(st.one_of(st.none(), VALUES[name]), min_size=3, max_size=40)),
        ARROW_TYPES[name],
    )
    return pa.table({"before": range(len(column)), name: column})[1 : len(column) - 1]


def test_every_type_of_column_is_drawn() -> None:
    assert VALUES.keys() == ARROW_TYPES.keys()


@given(st.sampled_from(sorted(VALUES)), st.data())
def test_values_are_those_of_arrow(name: str, data: st.DataObject) -> None:
    table = make_rows(data, name)
    group, wanted = Decoded(table), table.to_pylist()
    numbers = data.draw(st.lists(st.integers(0, len(wanted) - 1), max_size=10))
    assert group.values(numbers, name) == [wanted[at][name] for at in numbers]
    found = group.rows(numbers, (name, "lacking", "before"))
    assert found == [
        {name: wanted[at][name], "lacking": None, "before": wanted[at]["before"]} for at in numbers
    ]
    assert {type(row[name]) for row in found} == {type(wanted[at][name]) for at in numbers}


@given(st.sampled_from(COMPARED), st.data())
def test_rows_within_bounds_are_those_of_a_list(name: str, data: st.DataObject) -> None:
    table = make_rows(data, name)
    held = table[name].to_pylist()
    there = [value for value in held if value is not None]
    draw = st.one_of(VALUES[name], st.sampled_from(there)) if there else VALUES[name]
    some = data.draw(st.lists(draw, min_size=1, max_size=6))
    low, high = sorted([data.draw(draw), data.draw(draw)])
    first = data.draw(st.integers(0, 3))
    group = Decoded(table)
    cases: list[tuple[Bounds, Any]] = [
        (AnyOf(some), lambda value: value in some),
        ((low, high), lambda value: low <= value <= high),
        ((low, low), lambda value: value == low),
    ]
    for bound, is_within in cases:
        wanted = [at for at, value in enumerate(held) if value is not None and is_within(value)]
        assert group.find({name: bound}) == wanted
        both: dict[str, Bounds] = {"before": (first, 99), name: bound}
        assert group.find(both) == [at for at in wanted if at + 1 >= first]


def test_what_is_not_there_is_refused() -> None:
    group = Decoded(pa.table({"lt": [1, 2], "fee": [Decimal(1), None]}))
    with pytest.raises(KeyError):
        group.find({"lacking": (1, 1)})
    with pytest.raises(TypeError):
        group.find({"fee": (1, 1)})
    with pytest.raises(TypeError):
        group.find({"lt": (b"", b"")})
    with pytest.raises(OverflowError):
        group.find({"lt": (1 << 63, 1 << 63)})
    for number in (-1, 2, 1 << 70):
        with pytest.raises((IndexError, OverflowError)):
            group.values([number], "lt")
        with pytest.raises((IndexError, OverflowError)):
            group.rows([number], ("fee",))
    raw = NATIVE.Group(pa.RecordBatch.from_pydict({"lt": [1, 2]}))
    find: Any
    inputs: tuple[Any, ...]
    for find, inputs in (
        (raw.values, (1, [0])),
        (raw.find, (-1, [1], False, None)),
        (raw.rows, (("lt",), (1,), [0])),
        (raw.rows, (("lt", "fee"), (0,), [0])),
    ):
        with pytest.raises(IndexError):
            find(*inputs)
    for find, inputs in (
        (raw.find, (0, [1], True, None)),
        (raw.find, (0, [1], False, (0,))),
        (raw.values, (0, ["0"])),
        (NATIVE.Group, ([1],)),
        (NATIVE.Group, (pa.array([1]),)),
    ):
        with pytest.raises((TypeError, AttributeError)):
            find(*inputs)


def test_bytes_that_are_no_text_are_an_error() -> None:
    texts = pa.array([b"\xff"]).view(pa.string())
    with pytest.raises(UnicodeDecodeError):
        Decoded(pa.table({"kind": texts})).values([0], "kind")
