"""Get-methods of known codes, answered from the data cell as the code itself would."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingest.contract.stack import Cell, Value

Reader = Callable[[Cell, Cell, Sequence[Value]], Sequence[Value]]
"""From the code cell, the data cell and the arguments of a get-method to the stack it leaves."""

READERS: dict[tuple[bytes, str], Reader] = {}


def find_reader(code_hash: bytes, method: str) -> Reader | None:
    """Return what answers a method for a code (the library itself where it is one), if known."""
    return READERS.get((code_hash, method))
