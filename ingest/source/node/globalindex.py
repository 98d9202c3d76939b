"""Reads ``files/globalindex``, the list of archive slices and whether each was deleted."""

from __future__ import annotations

import bisect
import struct
from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.errors import SourceError
from tonlake.ingest.source.node.tl import (
    BOOL_FALSE,
    INDEX_KEY,
    INDEX_VALUE,
    PACKAGE_KEY,
    PACKAGE_VALUE,
    TlReader,
    pack_constructor,
)
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from tonlake.ingest.source.node.followed import FollowedStore


_FIRST_BLOCK = struct.Struct("<iqiIq")
"""``db.files.package.firstBlock``: workchain, shard, seqno, unixtime, lt."""


class SliceRecord(msgspec.Struct, frozen=True):
    """The record of one slice (``db.files.package.value``)."""

    id: int
    first_mc_seqno: int
    """The first masterchain block of the slice, at least 1: seqno 0 is the zero state."""
    deleted: bool


class GlobalIndex:
    """The slices of the archive by id; an id is the seqno of a masterchain block."""

    def __init__(self, store: FollowedStore) -> None:
        """Read the list of slices."""
        self.store = store
        self.slice_ids: list[int] = []
        self._records: dict[int, SliceRecord] = {}
        self._read()

    def refresh(self) -> None:
        """Catch up with slices that were added or deleted."""
        if self.store.catch_up():
            self._read()

    def find_slice(self, mc_seqno: int) -> SliceRecord | None:
        """Return the slice that covers a masterchain block and its shard blocks; None if none."""
        place = bisect.bisect_right(self.slice_ids, mc_seqno)
        return self.record(self.slice_ids[place - 1]) if place else None

    def record(self, slice_id: int) -> SliceRecord:
        """Return the record of a listed slice."""
        if slice_id not in self._records:
            self._records[slice_id] = self._read_record(slice_id)
        return self._records[slice_id]

    def _read(self) -> None:
        self._records.clear()
        value = self.store.get(pack_constructor(INDEX_KEY))
        if value is None:
            raise SourceError(f"{self.store.name}: no list of packages: an empty node?")
        reader = TlReader(value, f"{self.store.name}: db.files.index")
        reader.read_constructor(INDEX_VALUE)
        self.slice_ids = sorted(reader.read_vector(reader.read_int))
        reader.read_vector(reader.read_int)  # packages of key blocks
        reader.read_vector(reader.read_int)  # temporary packages
        reader.expect_end()

    def _read_record(self, slice_id: int) -> SliceRecord:
        key = struct.pack("<Ii", PACKAGE_KEY, slice_id) + BOOL_FALSE + BOOL_FALSE
        value = self.store.get(key)
        if value is None:
            raise SourceError(f"{self.store.name}: slice {slice_id} is listed without a record")
        reader = TlReader(value, f"{self.store.name}: slice {slice_id}")
        reader.read_constructor(PACKAGE_VALUE)
        found_id, _key, _temp = reader.read_int(), reader.read_bool(), reader.read_bool()
        if found_id != slice_id:
            raise reader.fail(f"the record of slice {found_id}")

        # db.files.package.firstBlock: workchain, shard, seqno, unixtime, lt
        first_blocks = reader.read_vector(
            lambda: _FIRST_BLOCK.unpack(reader.read_bytes(_FIRST_BLOCK.size))
        )
        stored = [seqno for workchain, _, seqno, _, _ in first_blocks if workchain == MASTERCHAIN]
        first = max(1, min(stored, default=slice_id))
        record = SliceRecord(slice_id, first, deleted=reader.read_bool())
        reader.expect_end()
        return record
