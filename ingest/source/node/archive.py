"""Reads masterchain blocks and the shard blocks they commit from the archive of a node."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.blocks import BlockId, McBundle, McHead, RawBlock
from tonlake.ingest.decode.block.validator import Signers
from tonlake.ingest.errors import (
    BlockCorrupt,
    BlockNeverHad,
    BlockPruned,
    BlockUnavailable,
    SourceError,
)
from tonlake.ingest.source.node.bundle import (
    Tops,
    TopsCache,
    check_followers,
    check_signed,
    collect_committed,
    make_missing_error,
    naming_corrupt,
    read_block,
    read_proven_block,
)
from tonlake.ingest.source.node.handle import name_mc_block
from tonlake.ingest.source.node.slice import Slice, SliceCache, name_index, name_package_folder
from tonlake.ingest.source.node.zerofile import read_zero_block
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from tonlake.ingest.source.node.globalindex import GlobalIndex, SliceRecord


class Archive:
    """Reads bundles by masterchain seqno, up to the end of the archive.

    Methods raise SourceError if an index is damaged.
    """

    def __init__(
        self, db_dir: Path, index: GlobalIndex, slices: SliceCache, *, proofs: bool = False
    ) -> None:
        """Read the slices that ``index`` lists; with ``proofs``, blocks include their proofs."""
        self._read_block = read_proven_block if proofs else read_block
        self.db_dir = db_dir
        self.index = index
        self.slices = slices
        self._tops = TopsCache()
        self._read_tops = partial(self._tops.read, with_extra=proofs)
        self.signers = Signers(self._read_key_block)

    def refresh(self, *, rolled_back: bool) -> None:
        """Catch up with the node; after a roll-back, reopen all indexes and packages."""
        if rolled_back:
            self.slices.close()
            self.signers.forget()
        self.index.refresh()
        self.slices.refresh()
        self._tops.clear()

    def close(self) -> None:
        """Close every store."""
        self.slices.close()
        self.index.store.close()

    def find_first(self) -> int:
        """Return the first masterchain block of the oldest slice present; 1 if none is."""
        record = next(self._kept(self.index.slice_ids), None)
        if record is None:
            return 1
        if not self.slices.exists(record.id):
            return record.first_mc_seqno  # reading it reports the missing index
        first, opened = record.first_mc_seqno, self.slices.open(record.id)
        # A wrong record would silently hide blocks.
        earlier = sorted(one for one in opened.list_mc_seqnos() if 0 < one < first)
        return next((one for one in earlier if _has_data(opened, one)), first)

    def find_last(self) -> int:
        """Return the newest masterchain block in the slices' indexes; 0 if there is none."""
        for record in self._kept(reversed(self.index.slice_ids)):
            if self.slices.exists(record.id):
                last = self.slices.open(record.id).last_mc_seqno()
                if last is not None:
                    return last
        return 0

    def find_head(self, mc_seqno: int) -> McHead | None:
        """Return the archive's masterchain block at a seqno; None if it has none."""
        opened = self._find_slice(mc_seqno)
        handle = opened.find_root_handle(MASTERCHAIN, mc_seqno) if opened else None
        return None if handle is None else McHead(mc_seqno, handle.id.root_hash, handle.unixtime)

    def has_conflicting(self, block_id: BlockId) -> bool:
        """Return whether the archive has a different masterchain block with the same seqno."""
        opened = self._find_slice(block_id.seqno)
        if opened is None or opened.find_handle(block_id) is not None:
            return False
        return opened.find_root_handle(MASTERCHAIN, block_id.seqno) is not None

    def find_zero_states(self, workchains: Iterable[int]) -> list[BlockId]:
        """Return the ids of the zero states with a handle in the archive's first slice."""
        if 0 not in self.index.slice_ids or not self.slices.exists(0):
            return []
        handles = (self.slices.open(0).find_root_handle(workchain, 0) for workchain in workchains)
        return [handle.id for handle in handles if handle is not None]

    def read_bundle(self, mc_seqno: int, *, check_files: bool = True) -> McBundle:
        """Return a masterchain block and the shard blocks it commits.

        Without ``check_files`` the file hashes of shard blocks are not verified.

        Raises:
            BlockPruned: its slice was deleted.
            BlockNeverHad: it, or a block it commits, is not in the archive.
            BlockCorrupt: the archive contradicts itself, or the bytes are wrong.
        """
        opened, mc_block = self._read_mc_block(mc_seqno)
        tops = self._read_tops(mc_block)
        absent: list[BlockId] = []
        earlier: list[BlockId] = []

        def find_prev(block_id: BlockId) -> tuple[BlockId, ...] | None:
            handle = opened.find_handle(block_id)
            if handle is None or handle.masterchain_ref is None:
                absent.append(block_id)
                return None
            if handle.masterchain_ref < mc_seqno and block_id not in tops.new:
                earlier.append(block_id)
                return None
            if handle.masterchain_ref != mc_seqno:
                raise SourceError(
                    f"{opened.store.name}: {block_id} is committed by {mc_seqno}, but its handle"
                    f" says {handle.masterchain_ref}"
                )
            if any(one.seqno == 0 for one in handle.prev) and block_id.seqno != 1:
                raise SourceError(f"{opened.store.name}: {block_id} follows no zero state")
            return handle.prev

        check_signed(opened, mc_block, self.signers, tops.mark.before)
        with naming_corrupt(mc_block.id):
            committed = collect_committed(tops.new, find_prev)
            self._check_earlier(opened, earlier, mc_seqno)
        for block_id in absent:
            self._check_absent(opened, block_id, committed, mc_seqno, tops)
        shards = (
            self._read_block(opened, block_id, mc_seqno, check_file=check_files)
            for block_id in committed
        )
        if mc_block.proof is not None:
            mc_block = msgspec.structs.replace(mc_block, mc_extra=tops.mc_extra)
        return McBundle(mc_seqno, (mc_block, *shards), tops.mark)

    def check_tops(self, mc_seqno: int) -> None:
        """Verify that the newest block of every shard is present, whichever block committed it.

        Otherwise a node that keeps only some shards would look complete at a masterchain block that
        commits no block of the others.

        Raises:
            BlockUnavailable: see ``read_bundle``.
        """
        _opened, mc_block = self._read_mc_block(mc_seqno)
        for block_id, committed_by in self._read_tops(mc_block).committed_by.items():
            try:
                opened = self._open_slice(committed_by)
            except (BlockPruned, BlockNeverHad):
                continue  # committed before the archive begins
            if opened.find_handle(block_id) is None:
                raise make_missing_error(block_id, committed_by, opened)

    def _kept(self, slice_ids: Iterable[int]) -> Iterator[SliceRecord]:
        """Yield the slices that are at least partly present: an index or a first package."""
        for record in map(self.index.record, slice_ids):
            has_package = (self.db_dir / _name_package(record.id)).exists
            if not record.deleted and (self.slices.exists(record.id) or has_package()):
                yield record

    def _find_slice(self, mc_seqno: int) -> Slice | None:
        try:
            return self._open_slice(mc_seqno)
        except (BlockNeverHad, BlockPruned):
            return None
        except BlockCorrupt as error:
            raise SourceError(str(error)) from error

    def _open_slice(self, mc_seqno: int) -> Slice:
        block = name_mc_block(mc_seqno)
        record = self.index.find_slice(mc_seqno)
        if record is None or mc_seqno <= 0:
            first = self.find_first()
            reason = f"the node's archive begins with masterchain block {first}"
            raise BlockNeverHad(reason, block=block, file=self.index.store.name)
        name = name_index(record.id)
        if record.deleted:
            raise BlockPruned(f"the node deleted slice {record.id}", block=block, file=name)
        if not self.slices.exists(record.id):
            package = _name_package(record.id)
            if (self.db_dir / package).exists():
                reason = f"the index is missing, although {package} is there"
                raise BlockCorrupt(reason, block=block, file=name)
            raise BlockPruned(f"slice {record.id} is gone", block=block, file=name)
        with naming_corrupt(block):
            return self.slices.open(record.id)

    def tops_before(self, mc_seqno: int) -> AbstractSet[BlockId] | None:
        """Return all shard tops before a masterchain block; None if the archive begins with it."""
        before = mc_seqno - 1
        if before == 0:
            return frozenset()
        if before not in self._tops:
            try:
                self._read_tops(self._read_mc_block(before)[1])
            except (BlockPruned, BlockNeverHad):
                return None
        return self._tops[before].committed_by.keys()

    def _check_earlier(self, opened: Slice, earlier: list[BlockId], mc_seqno: int) -> None:
        """Verify that the blocks in ``earlier`` were committed before ``mc_seqno``, as handles say.

        They have successors in this block, so they must be tops of the previous masterchain block.
        """
        try:
            before = self.tops_before(mc_seqno) if earlier else None
        except BlockCorrupt:
            return  # reported when that block is read
        for block_id in earlier:
            if before is not None and block_id not in before:
                raise SourceError(
                    f"{opened.store.name}: {block_id} leads to a block that {mc_seqno} commits,"
                    " but its handle names an earlier masterchain block, which does not contain it"
                )

    def _check_absent(
        self, opened: Slice, block_id: BlockId, committed: list[BlockId], mc_seqno: int, tops: Tops
    ) -> None:
        """Accept a block without a handle only if an earlier masterchain block committed it.

        That is the case if the previous masterchain block names it as a top; or, if the archive
        begins with this block, unless this one is the first to name it.
        """
        before = self.tops_before(mc_seqno)
        is_new = block_id in tops.new
        if before is not None and block_id in before and not is_new:
            return
        with naming_corrupt(name_mc_block(mc_seqno)):
            check_followers(opened, block_id, committed, mc_seqno)
        if before is not None or is_new:
            raise make_missing_error(block_id, mc_seqno, opened)

    def _read_mc_block(self, mc_seqno: int) -> tuple[Slice, RawBlock]:
        block = name_mc_block(mc_seqno)
        opened = self._open_slice(mc_seqno)
        with naming_corrupt(block):
            handle = opened.find_root_handle(MASTERCHAIN, mc_seqno)
        if handle is None:
            raise BlockNeverHad("the index has no such block", block=block, file=opened.store.name)
        return opened, self._read_block(opened, handle.id, mc_seqno)

    def _read_key_block(self, key_seqno: int) -> RawBlock | None:
        """Return a key block, the zero state for 0; None if the node does not have it."""
        try:
            if key_seqno == 0:
                return read_zero_block(self.db_dir, self.find_zero_states((MASTERCHAIN,)))
            opened = self._open_slice(key_seqno)
            handle = opened.find_root_handle(MASTERCHAIN, key_seqno)
            return None if handle is None else read_block(opened, handle.id, key_seqno)
        except (SourceError, BlockUnavailable):
            return None  # reported when that block is read


def _name_package(slice_id: int) -> str:
    return f"{name_package_folder(slice_id)}/archive.{slice_id:05d}.pack"


def _has_data(opened: Slice, mc_seqno: int) -> bool:
    handle = opened.find_root_handle(MASTERCHAIN, mc_seqno)
    return handle is not None and opened.locate(handle.id, mc_seqno) is not None
