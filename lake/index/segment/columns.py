"""Reads columns of messages as Arrow arrays, straight from the records of a segment."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tonlake.lake.index.segment.record import MESSAGE_COLUMNS
from tonlake.lake.schema import MESSAGES

if TYPE_CHECKING:
    from collections.abc import Sequence

_OF_TRANSACTION = {
    name: at - 6
    for at, name in enumerate(("tx_workchain", "tx_account", "tx_lt", "tx_hash", "mc_seqno", "now"))
}
"""Columns that a message takes from its transaction, and the numbers by which the C extension reads
them."""

_VARIABLE = -1


class _Read(NamedTuple):
    """How the extension reads a column: its place and width, and its type.

    Amounts are read as digits.
    """

    code: tuple[int, int]
    type: pa.DataType
    field: pa.Field


@cache
def _plan(name: str) -> _Read:
    field = MESSAGES.arrow.field(name)
    kind = pa.string() if pa.types.is_decimal(field.type) else field.type
    is_variable = pa.types.is_string(kind) or kind == pa.binary()
    width = _VARIABLE if is_variable else kind.bit_width // 8
    place = _OF_TRANSACTION.get(name)
    return _Read((MESSAGE_COLUMNS.index(name) if place is None else place, width), kind, field)


def read_columns(
    source: Any,  # noqa: ANN401 - of the extension
    places: Sequence[tuple[int, int | bytes]],
    names: Sequence[str],
) -> pa.Table:
    """Return columns of messages, given by row and place, or by row and hash if unknown."""
    plans = [_plan(name) for name in names]
    count, columns = source.read_columns(list(places), tuple(plan.code for plan in plans))
    arrays = []
    for plan, buffers in zip(plans, columns, strict=True):
        validity, offsets, data = (None if one is None else pa.py_buffer(one) for one in buffers)
        held = [validity, data] if offsets is None else [validity, offsets, data]
        array = pa.Array.from_buffers(plan.type, count, held)
        arrays.append(array if plan.type == plan.field.type else array.cast(plan.field.type))
    return pa.Table.from_arrays(arrays, schema=pa.schema([plan.field for plan in plans]))
