"""The archive of a node: masterchain blocks with what they commit, out of slices and packages."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from ingest.errors import (
    BlockCorrupt,
    BlockNeverHad,
    BlockPruned,
    BocError,
    DecodeError,
    EntryFlaw,
    SourceError,
)
from ingest.node.bundle import Tops, collect_committed, read_tops
from ingest.node.handle import MASTERCHAIN, name_mc_block
from ingest.node.package import read_block_entry, read_proof_entry
from ingest.node.slice import Slice, SliceCache, name_index, name_package_folder
from ingest.source import BlockId, McBundle, McHead, RawBlock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ingest.node.globalindex import GlobalIndex, SliceRecord

TOPS_KEPT = 4


class Archive:
    """Reads bundles by the masterchain block's seqno, whatever the node says is complete."""

    def __init__(
        self, db_dir: Path, index: GlobalIndex, slices: SliceCache, *, proofs: bool = False
    ) -> None:
        """Join the list of slices and the open ones; with ``proofs`` blocks come with theirs."""
        self._read_block = _read_proven_block if proofs else _read_block
        self.db_dir = db_dir
        self.index = index
        self.slices = slices
        self._tops: dict[int, Tops] = {}

    def refresh(self, *, rolled_back: bool) -> None:
        """Catch up with the node; after a roll-back indexes and packages are other ones."""
        if rolled_back:
            self.slices.close()
        self.index.refresh()
        self.slices.refresh()
        self._tops.clear()

    def close(self) -> None:
        """Let go of every store."""
        self.slices.close()
        self.index.store.close()

    def find_first(self) -> int:
        """Return the first masterchain block of the first slice that is kept; 1 if none is."""
        return next((record.first_mc_seqno for record in self._kept(self.index.slice_ids)), 1)

    def find_last(self) -> int:
        """Return the newest masterchain block in the slices' indexes; 0 if there is none."""
        for record in self._kept(reversed(self.index.slice_ids)):
            last = self.slices.open(record.id).last_mc_seqno()
            if last is not None:
                return last
        return 0

    def find_head(self, mc_seqno: int) -> McHead | None:
        """Return which masterchain block has a seqno; None if the archive has none.

        Raises:
            SourceError: the index is damaged.
        """
        try:
            handle = self._open_slice(mc_seqno).find_root_handle(MASTERCHAIN, mc_seqno)
        except (BlockNeverHad, BlockPruned):
            return None
        except BlockCorrupt as error:
            raise SourceError(str(error)) from error
        return None if handle is None else McHead(mc_seqno, handle.id.root_hash, handle.unixtime)

    def find_zero_states(self, workchains: Iterable[int]) -> list[BlockId]:
        """Return the ids of the zero states that the archive's first slice knows."""
        if 0 not in self.index.slice_ids or not self.slices.exists(0):
            return []
        handles = (self.slices.open(0).find_root_handle(workchain, 0) for workchain in workchains)
        return [handle.id for handle in handles if handle is not None]

    def read_bundle(self, mc_seqno: int) -> McBundle:
        """Return a masterchain block and the shard blocks it commits.

        Raises:
            BlockPruned: its slice was deleted.
            BlockNeverHad: it, or a block it commits, is not in the archive.
            BlockCorrupt: the archive contradicts itself, or the bytes are wrong.
        """
        opened, mc_block = self._read_mc_block(mc_seqno)
        tops = self._read_tops(mc_block)
        absent: list[BlockId] = []

        def find_prev(block_id: BlockId) -> tuple[BlockId, ...] | None:
            handle = opened.find_handle(block_id)
            if handle is None or handle.masterchain_ref is None:
                absent.append(block_id)
                return None
            if handle.masterchain_ref < mc_seqno and block_id not in tops.new:
                return None
            if handle.masterchain_ref != mc_seqno:
                raise SourceError(
                    f"{opened.store.name}: {block_id} is committed by {mc_seqno}, but its handle"
                    f" says {handle.masterchain_ref}"
                )
            return handle.prev

        with _corrupt(mc_block.id):
            committed = collect_committed(tops.new, find_prev)
        for block_id in absent:
            if not self._is_earlier(block_id, mc_seqno, tops):
                raise _missing(block_id, mc_seqno, opened)
        shards = (self._read_block(opened, block_id, mc_seqno) for block_id in committed)
        if mc_block.proof is not None:
            mc_block = msgspec.structs.replace(mc_block, mc_extra=tops.mc_extra)
        return McBundle(mc_seqno, (mc_block, *shards))

    def check_tops(self, mc_seqno: int) -> None:
        """Make sure that the newest block of every shard is there, whoever committed it.

        Without this a node that keeps some shards only would look whole at a masterchain block
        that happens to commit no block of the others.

        Raises:
            BlockUnavailable: as ``read_bundle``.
        """
        _opened, mc_block = self._read_mc_block(mc_seqno)
        for block_id, committed_by in self._read_tops(mc_block).committed_by.items():
            try:
                opened = self._open_slice(committed_by)
            except (BlockPruned, BlockNeverHad):
                continue  # committed before the archive begins
            if opened.find_handle(block_id) is None:
                raise _missing(block_id, committed_by, opened)

    def _kept(self, slice_ids: Iterable[int]) -> Iterator[SliceRecord]:
        records = (self.index.record(slice_id) for slice_id in slice_ids)
        return (one for one in records if not one.deleted and self.slices.exists(one.id))

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
            package = f"{name_package_folder(record.id)}/archive.{record.id:05d}.pack"
            if (self.db_dir / package).exists():
                reason = f"the index is missing, although {package} is there"
                raise BlockCorrupt(reason, block=block, file=name)
            raise BlockPruned(f"slice {record.id} is gone", block=block, file=name)
        with _corrupt(block):
            return self.slices.open(record.id)

    def _read_tops(self, mc_block: RawBlock) -> Tops:
        mc_seqno = mc_block.id.seqno
        if mc_seqno not in self._tops:
            with _corrupt(mc_block.id):
                self._tops[mc_seqno] = read_tops(mc_block.data, mc_seqno)
            while len(self._tops) > TOPS_KEPT:
                del self._tops[next(iter(self._tops))]
        return self._tops[mc_seqno]

    def _is_earlier(self, block_id: BlockId, mc_seqno: int, tops: Tops) -> bool:
        """Whether a block without a handle was committed before this masterchain block.

        That is so if the one before it names the block as a top. If the archive begins here, so
        that nobody can tell, it is so unless this one is the first to name the block.
        """
        if block_id in tops.new or mc_seqno == 1:
            return False
        try:
            _opened, earlier = self._read_mc_block(mc_seqno - 1)
        except (BlockPruned, BlockNeverHad):
            return True
        return block_id in self._read_tops(earlier).committed_by

    def _read_mc_block(self, mc_seqno: int) -> tuple[Slice, RawBlock]:
        block = name_mc_block(mc_seqno)
        opened = self._open_slice(mc_seqno)
        with _corrupt(block):
            handle = opened.find_root_handle(MASTERCHAIN, mc_seqno)
        if handle is None:
            raise BlockNeverHad("the index has no such block", block=block, file=opened.store.name)
        return opened, self._read_block(opened, handle.id, mc_seqno)


def _missing(block_id: BlockId, mc_seqno: int, opened: Slice) -> BlockNeverHad:
    return BlockNeverHad(
        f"masterchain block {mc_seqno} commits it, but the node does not have it: the node does"
        " not monitor this shard, or its folder was not copied whole",
        block=block_id,
        file=opened.store.name,
    )


def _read_block(opened: Slice, block_id: BlockId, mc_seqno: int) -> RawBlock:
    with _corrupt(block_id):
        place = opened.locate(block_id, mc_seqno)
        if place is not None:
            return RawBlock(block_id, read_block_entry(place, block_id))
    reason = "the index has a handle, but no place for the block's data"
    raise BlockNeverHad(reason, block=block_id, file=opened.store.name)


def _read_proven_block(opened: Slice, block_id: BlockId, mc_seqno: int) -> RawBlock:
    """Return a block with its proof; without, where the node has none."""
    block = _read_block(opened, block_id, mc_seqno)
    with _corrupt(block_id):
        place = opened.locate_proof(block_id, mc_seqno)
        if place is None:
            return block
        return msgspec.structs.replace(block, proof=read_proof_entry(place, block_id))


@contextmanager
def _corrupt(block: BlockId) -> Iterator[None]:
    """Turn damage that shows while a block is looked for into the error that names the block."""
    try:
        yield
    except EntryFlaw as flaw:
        raise BlockCorrupt(flaw.reason, block=block, file=flaw.file, offset=flaw.offset) from flaw
    except (SourceError, BocError, DecodeError) as error:
        raise BlockCorrupt(str(error), block=block) from error
