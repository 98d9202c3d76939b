"""Finds masterchain blocks by hash: of a block, or of an action.

``<table>.<column>`` are postings by hash whose rows are the masterchain seqnos that commit a block,
or the last transaction of an action's trace.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from tonlake.lake.file.values import item_bytes
from tonlake.lake.index.segment.postings import KEY_BYTES, Postings, write_postings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from tonlake.lake.index.segment.file import SegmentWriter

PLACED: dict[str, tuple[str, ...]] = {
    "blocks": ("root_hash", "file_hash"),
    "actions": ("action_id",),
}
"""Tables, and their hash columns that rows are found by."""

_HASH_BYTES = 32


def write_places(writer: SegmentWriter, parts: Iterable[tuple[str, pa.Table]]) -> None:
    """Write the postings of all tables; rows come in parts."""
    listed = list(parts)
    for name, columns in PLACED.items():
        tables = [part for table, part in listed if table == name]
        seqnos = array("q")
        for part in tables:
            seqnos.extend(part["mc_seqno"].to_pylist())
        for column in columns:
            keys = array("Q")
            for part in tables:
                keys.extend(_cut_hashes(part[column]))
            found = {"key": keys, "row": seqnos}
            write_postings(writer, f"{name}.{column}", found, hashed=True)


def _cut_hashes(column: pa.ChunkedArray) -> array[int]:
    """Return the keys of hashes; see ``cut_hash``."""
    words = memoryview(item_bytes(column)).cast("Q")[:: _HASH_BYTES // KEY_BYTES]
    keys = array("Q", words)
    keys.byteswap()
    return keys


def open_places(arrays: Mapping[str, Any]) -> dict[str, Postings]:
    """Return the postings of an open segment by table and column.

    Raises:
        KeyError: an array is missing.
    """
    names = (f"{name}.{column}" for name, columns in PLACED.items() for column in columns)
    return {name: Postings(arrays, name) for name in names}
