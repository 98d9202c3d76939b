"""Joins rows of other tables to those of a scan, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.scan.plan import EXTERNAL_IN

if TYPE_CHECKING:
    from tonlake.lake.scan.plan import Join

_LEFT, _RIGHT = "left row", "right row"


def append_joined(
    rows: pa.Table, join: Join, columns: tuple[str, ...], others: pa.Table
) -> pa.Table:
    """Return ``rows`` with columns of the rows joined to them; NULL without a match.

    Of several matches, the last by ``join.order`` is joined.
    """
    others = others.sort_by([(join.order, "ascending")])
    at = _find_rows(rows, others, join)
    for column in columns:
        rows = rows.append_column(f"{join.name}.{column}", others[column].take(at))
    return rows


def _find_rows(rows: pa.Table, others: pa.Table, join: Join) -> pa.Array:
    """Return the number of the joined row for each row, or NULL."""
    left = pa.table([_read_key(rows, own) for own, _other in join.keys], names=_name_keys(join))
    right = pa.table([others[other] for _own, other in join.keys], names=_name_keys(join))
    right = right.append_column(_RIGHT, pa.array(range(right.num_rows), pa.int64()))
    right = right.group_by(_name_keys(join), use_threads=False).aggregate([(_RIGHT, "max")])
    left = left.append_column(_LEFT, pa.array(range(left.num_rows), pa.int64()))
    found = left.join(right, _name_keys(join), use_threads=False)
    return found.sort_by(_LEFT)[f"{_RIGHT}_max"].combine_chunks()


def _name_keys(join: Join) -> list[str]:
    return [f"key {number}" for number in range(len(join.keys))]


def _read_key(rows: pa.Table, own: str) -> pa.ChunkedArray:
    return pc.equal(rows["kind"], "ext_in") if own == EXTERNAL_IN else rows[own]
