"""Selections of rows give the same result as lists of Python values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.lake.index.rowgroup.decoded import Decoded
from tonlake.lake.index.rowgroup.selection import Selection
from tonlake.lake.index.segment.native import NATIVE

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the extension is not built")

SCHEMA = pa.schema([("lt", pa.int64()), ("kind", pa.string()), ("ids", pa.list_(pa.binary()))])
ROWS = st.fixed_dictionaries(
    {
        "lt": st.integers(0, 9),
        "kind": st.sampled_from(("a", "b", None)),
        "ids": st.lists(st.binary(max_size=2), max_size=2),
    }
)
GROUPS = st.lists(st.lists(ROWS, min_size=1, max_size=30), max_size=4)


def order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: repr([row[name] for name in SCHEMA.names]))


@given(GROUPS, st.data())
def test_rows_are_selected_as_from_a_list(
    groups: list[list[dict[str, Any]]], data: st.DataObject
) -> None:
    first_lt, most = data.draw(st.integers(0, 9)), data.draw(st.integers(-1, 40))
    descending = data.draw(st.booleans())
    parts = [Decoded(pa.Table.from_pylist(rows, schema=SCHEMA)) for rows in groups]
    found = Selection([(part, part.find({"lt": (first_lt, 9)})) for part in parts])
    wanted = [row for rows in groups for row in rows if row["lt"] >= first_lt]
    assert len(found) == len(wanted)
    assert found.values("kind") == [row["kind"] for row in wanted]
    assert found.rows(SCHEMA.names) == wanted
    assert found.values("lacking") == [None] * len(wanted)

    places = data.draw(st.permutations(range(len(wanted))))[: data.draw(st.integers(0, 120))]
    assert found.pick(places, SCHEMA.names) == [wanted[at] for at in places]
    some = found.where("kind", lambda kind: kind != "a")
    assert some.rows(SCHEMA.names) == [row for row in wanted if row["kind"] != "a"]

    near = found.nearest("lt", most, descending=descending).rows(SCHEMA.names)
    ordered = sorted((row["lt"] for row in wanted), reverse=descending)[: max(most, 0)]
    last = ordered[-1:]
    like_last = [row for row in wanted if row["lt"] in ordered or row["lt"] in last]
    assert order(near) == order(like_last)


def test_all_rows_of_a_group_are_picked_in_any_order() -> None:
    rows: list[dict[str, Any]] = [{"lt": lt, "kind": None, "ids": []} for lt in range(20)]
    group = Decoded(pa.Table.from_pylist(rows, schema=SCHEMA))
    found = Selection([(group, group.find({}))])
    assert found.pick(reversed(range(len(rows))), SCHEMA.names) == rows[::-1]
