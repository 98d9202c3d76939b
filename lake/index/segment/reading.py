"""Opens a segment for the extension, which reads its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.lake.index.segment.native import NATIVE
from tonlake.lake.index.segment.record import BODY, IN_HASH, KINDS, MESSAGE_HASH, Record

if TYPE_CHECKING:
    from collections.abc import Mapping

_ARRAYS = (
    *("records", "record.at", "hash", "hash_after", "lt", "now", "mc_seqno", "root", "other"),
    *("account.row", "account.id", "state.at", "state", "ended.at", "ended.data"),
)

_Shape = tuple[int, bytes, tuple[Any, ...]]


def open_source(arrays: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of the extension
    """Return what reads the records of an open run.

    Raises:
        ValueError: its shapes are damaged.
        KeyError: it lacks an array.
    """
    named = tuple(getattr(arrays[name], "data", arrays[name]) for name in _ARRAYS)
    found, hashes = msgspec.msgpack.decode(
        arrays["shape"], type=tuple[list[_Shape], tuple[bytes, ...]]
    )
    if any(len(shape[1]) != len(shape[2]) for shape in found):
        raise ValueError("a shape of the run is damaged")
    types = (*(kind.row_type for kind in KINDS), Record)
    widths = tuple(kind.width for kind in KINDS)
    places = IN_HASH, MESSAGE_HASH, BODY
    return NATIVE.Source(named, tuple(found), hashes, types, widths, places)
