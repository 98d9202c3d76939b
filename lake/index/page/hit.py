"""Transactions found in segments; their columns are read by name on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.lake.index.segment.segment import Segment


class Hit(msgspec.Struct, frozen=True, gc=False):
    """A transaction found: its ``Segment`` and its row there; columns are read by name."""

    segment: Any
    row: int

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a column
        """Return a column of ``transaction_traces``."""
        return _COLUMNS[name](self.segment, self.row)


_COLUMNS: dict[str, Callable[[Segment, int], Any]] = {
    "hash": lambda segment, row: segment.hash_of(row),
    "lt": lambda segment, row: segment.lt[row],
    "workchain": lambda segment, row: segment.account_of(segment.account_number(row))[0],
    "account": lambda segment, row: segment.account_of(segment.account_number(row))[1],
    "trace_id": lambda segment, row: segment.traces.trace_of(row),
    "parent_hash": lambda segment, row: segment.traces.parents_of([row])[0],
}
